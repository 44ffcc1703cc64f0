"""Namespace policies and edits of them."""

from __future__ import annotations

from dataclasses import fields, replace

from lot_grpc.domain.policy import (
    THRESHOLDS,
    NamespacePolicy,
    PolicyEdit,
    PolicyPreset,
    StoredPolicy,
)
from lot_grpc.pb.lot.v1 import namespace_policy_pb2 as pb
from lot_grpc.server.convert.values import EnumCodec, duration_to_pb, micros_from_pb, time_to_pb
from lot_grpc.server.masks import updated_paths

PRESET = EnumCodec(pb.PolicyPreset.DESCRIPTOR, PolicyPreset, "POLICY_PRESET_")

_EDITABLE = frozenset(field.name for field in fields(NamespacePolicy))
_OUTPUT_ONLY = frozenset(field.name for field in pb.NamespacePolicy.DESCRIPTOR.fields) - _EDITABLE
_AGES = frozenset(name for name in _EDITABLE if name.endswith("_age"))
_MICROS = 1_000_000


def policy_to_pb(stored: StoredPolicy) -> pb.NamespacePolicy:
    """The policy of a namespace. Thresholds are there always, so that the defaults are told."""
    policy = stored.policy
    message = pb.NamespacePolicy(
        max_episodes=policy.max_episodes,
        max_error_solutions=policy.max_error_solutions,
        max_patterns=policy.max_patterns,
        max_memories=policy.max_memories,
        similarity_threshold=policy.similarity_threshold,
        confidence_boost=policy.confidence_boost,
        action_learning_rate=policy.action_learning_rate,
        action_discount=policy.action_discount,
        namespace=stored.namespace,
        etag=stored.etag,
        update_time=time_to_pb(stored.update_time) if stored.revision else None,
    )
    for name in _AGES:
        age: int | None = getattr(policy, name)
        if age is not None:
            getattr(message, name).CopyFrom(duration_to_pb(age / _MICROS))
    return message


def policy_from_pb(message: pb.NamespacePolicy) -> NamespacePolicy:
    """What a caller gave of a policy; what is absent is the default."""
    policy = NamespacePolicy(
        max_episodes=message.max_episodes,
        max_error_solutions=message.max_error_solutions,
        max_patterns=message.max_patterns,
        max_memories=message.max_memories,
        max_episode_age=micros_from_pb(message, "max_episode_age", "policy"),
        max_error_solution_age=micros_from_pb(message, "max_error_solution_age", "policy"),
        max_pattern_age=micros_from_pb(message, "max_pattern_age", "policy"),
        max_memory_age=micros_from_pb(message, "max_memory_age", "policy"),
    )
    present = {field.name for field, _ in message.ListFields()}
    return replace(policy, **{name: getattr(message, name) for name in THRESHOLDS & present})


def edit_from_pb(message: pb.UpdateNamespacePolicyRequest) -> PolicyEdit:
    """An edit: the preset, and the paths that the mask names or that the policy has populated."""
    paths = updated_paths(message.policy, message.update_mask, _OUTPUT_ONLY)
    return PolicyEdit(
        policy_from_pb(message.policy), frozenset(paths), PRESET.from_pb(message.preset)
    )
