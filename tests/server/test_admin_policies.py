"""GetNamespacePolicy and UpdateNamespacePolicy on the wire."""

from __future__ import annotations

from datetime import timedelta

import pytest
from google.protobuf.duration_pb2 import Duration

from lot_grpc.pb.lot.v1 import namespace_policy_pb2 as pb
from lot_grpc.pb.lot.v1 import origin_pb2 as pb_origin
from tests.server.patterns import saved
from tests.server.wire import failure


async def test_the_default_keeps_everything_and_tells_its_thresholds(lot):
    policy = (await lot.admin.GetNamespacePolicy()).policy
    assert policy == pb.NamespacePolicy(
        similarity_threshold=0.3, confidence_boost=1, namespace=lot.namespace,
        action_learning_rate=0.1, action_discount=0.95,
        retrieval_queries=pb.RETRIEVAL_QUERIES_TEXT,
    )  # fmt: skip


async def test_every_field_is_set_and_given_back(lot):
    given = pb.NamespacePolicy(
        max_episodes=1, max_error_solutions=2, max_patterns=3, max_memories=4,
        max_episode_age=Duration(seconds=5), max_error_solution_age=Duration(seconds=6),
        max_pattern_age=Duration(seconds=7), max_memory_age=Duration(nanos=1_500_000),
        similarity_threshold=0.25, confidence_boost=0.0,
        action_learning_rate=0.5, action_discount=0.0, max_retrieval_age=Duration(seconds=8),
        retrieval_queries=pb.RETRIEVAL_QUERIES_HASH, holdout_share=0.5,
        record_quota=10, byte_quota=11,
        review_origins=[pb_origin.ORIGIN_KIND_MODEL, pb_origin.ORIGIN_KIND_IMPORT],
    )  # fmt: skip
    answer = await lot.admin.UpdateNamespacePolicy(policy=given)
    stored = answer.policy
    assert stored.etag
    assert stored.update_time.seconds > 0
    assert (await lot.admin.GetNamespacePolicy()).policy == stored
    for field in given.DESCRIPTOR.fields:
        if field.name not in ("namespace", "etag", "update_time"):
            assert getattr(stored, field.name) == getattr(given, field.name), field.name
    other = (await lot.on("elsewhere").admin.GetNamespacePolicy()).policy
    assert not other.etag


async def test_a_mask_names_what_is_set_and_what_is_cleared(lot):
    first = await lot.admin.UpdateNamespacePolicy(
        policy={"max_patterns": 3, "max_memory_age": timedelta(days=1), "confidence_boost": 2}
    )
    answer = await lot.admin.UpdateNamespacePolicy(
        policy={"max_episodes": 9, "max_patterns": 4},
        update_mask={"paths": ["max_patterns", "max_memory_age"]},
        etag=first.policy.etag,
    )
    policy = answer.policy
    assert (policy.max_patterns, policy.max_episodes, policy.confidence_boost) == (4, 0, 2)
    assert not policy.HasField("max_memory_age")
    failed = await failure(
        lot.admin.UpdateNamespacePolicy(policy={"max_patterns": 5}, etag=first.policy.etag)
    )
    assert failed.reason == "ETAG_MISMATCH"
    star = await lot.admin.UpdateNamespacePolicy(
        policy={"max_memories": 1}, update_mask={"paths": ["*"]}
    )
    assert (star.policy.max_memories, star.policy.max_patterns) == (1, 0)
    assert star.policy.confidence_boost == 1


async def test_what_is_wrong_with_a_request_is_told(lot):
    failed = await failure(lot.admin.UpdateNamespacePolicy())
    assert failed.reason == "REQUEST_INVALID"
    assert "policy or preset must be set" in str(failed.fields) + failed.message
    failed = await failure(
        lot.admin.UpdateNamespacePolicy(
            policy={}, update_mask={"paths": ["etag", "nonsense", "max_patterns"]}
        )
    )
    assert failed.fields == {"update_mask": "update_mask.path"}
    failed = await failure(
        lot.admin.UpdateNamespacePolicy(policy={"max_pattern_age": timedelta(days=3_000_000)})
    )
    assert failed.fields == {"policy.max_pattern_age": "duration.range"}


@pytest.mark.parametrize(
    ("preset", "episodes", "solutions"),
    [(pb.POLICY_PRESET_BOUNDED, 1000, 500), (pb.POLICY_PRESET_UNLIMITED, 0, 0)],
)
async def test_a_preset_alone_or_below_a_policy(lot, preset, episodes, solutions):
    await lot.admin.UpdateNamespacePolicy(policy={"max_patterns": 3, "confidence_boost": 2})
    policy = (await lot.admin.UpdateNamespacePolicy(preset=preset)).policy
    assert (policy.max_episodes, policy.max_error_solutions) == (episodes, solutions)
    assert (policy.max_patterns, policy.confidence_boost) == (0, 2)
    both = await lot.admin.UpdateNamespacePolicy(preset=preset, policy={"max_episodes": 7})
    assert (both.policy.max_episodes, both.policy.max_error_solutions) == (7, solutions)


async def test_a_dry_run_tells_what_would_go_and_sets_nothing(lot):
    for number in range(3):
        await saved(lot, f"task {number}")
        await lot.memories.CreateMemory(memory={"content": f"m {number}"})
    requested = {"policy": {"max_patterns": 1, "max_memories": 3}}
    dry = await lot.admin.UpdateNamespacePolicy(**requested, dry_run=True)
    assert dict(dry.pending_delete_counts) == {"PATTERN": 2}
    assert (dry.policy.max_patterns, dry.policy.etag) == (1, "")
    assert (await lot.admin.GetNamespacePolicy()).policy.max_patterns == 0
    done = await lot.admin.UpdateNamespacePolicy(**requested)
    assert done.pending_delete_counts == dry.pending_delete_counts
    assert len((await lot.patterns.ListPatterns()).patterns) == 3
    if lot.own_services:
        await lot.own_services.housekeeping.sweep(lambda *told: None)
        assert len((await lot.patterns.ListPatterns()).patterns) == 1
        again = await lot.admin.UpdateNamespacePolicy(**requested)
        assert not again.pending_delete_counts
