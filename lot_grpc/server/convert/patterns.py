"""Pattern, its filter, drafts and edits."""

from __future__ import annotations

from google.protobuf.field_mask_pb2 import FieldMask

from lot_grpc.domain.errors import invalid
from lot_grpc.domain.languages import language_name
from lot_grpc.domain.pattern import (
    Action,
    CodeKind,
    Pattern,
    PatternContent,
    PatternKind,
    PatternType,
)
from lot_grpc.domain.query import PatternFilter
from lot_grpc.pb.lot.v1 import pattern_pb2 as pb
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as service_pb
from lot_grpc.server.convert.feedback import counts_to_pb
from lot_grpc.server.convert.outcomes import COMPLEXITY, outcomes_to_pb
from lot_grpc.server.convert.values import (
    EnumCodec,
    check_list_size,
    edited_fields,
    micros_from_pb,
    struct_from_json,
    struct_from_pb,
    time_from_pb,
    time_to_pb,
)
from lot_grpc.services.patterns.drafts import Dedupe, PatternDraft
from lot_grpc.services.patterns.patterns import PatternEdit

KIND = EnumCodec(pb.PatternKind.DESCRIPTOR, PatternKind, "PATTERN_KIND_")
CODE_KIND = EnumCodec(pb.CodeKind.DESCRIPTOR, CodeKind, "CODE_KIND_")
PATTERN_TYPE = EnumCodec(pb.PatternType.DESCRIPTOR, PatternType, "PATTERN_TYPE_")
DEDUPE = EnumCodec(service_pb.Dedupe.DESCRIPTOR, Dedupe, "DEDUPE_")

_OUTPUT_ONLY = frozenset(
    {
        "pattern_id",
        "outcomes",
        "namespace",
        "etag",
        "create_time",
        "update_time",
        "feedback",
        "superseded_by",
    }
)


def pattern_to_pb(pattern: Pattern) -> pb.Pattern:
    """A stored pattern."""
    content = pattern.content
    message = pb.Pattern(
        pattern_id=pattern.pattern_id,
        kind=KIND.to_pb(content.kind),
        code_kind=CODE_KIND.to_pb(content.code_kind),
        pattern_type=PATTERN_TYPE.to_pb(content.pattern_type),
        title=content.title,
        task=content.task,
        context=content.context,
        actions=[_action_to_pb(action) for action in content.actions],
        code=content.code,
        language=content.language,
        category=content.category,
        task_type=content.task_type,
        task_type_pattern=content.task_type_pattern,
        complexity=COMPLEXITY.to_pb(content.complexity),
        approach=content.approach,
        success_indicators=content.success_indicators,
        failure_indicators=content.failure_indicators,
        recommended_context=content.recommended_context,
        success_factors=content.success_factors,
        tools=content.tools,
        tags=content.tags,
        labels=content.labels,
        pinned=content.pinned,
        confidence=content.confidence,
        outcomes=outcomes_to_pb(pattern.outcomes),
        source_episode_ids=content.source_episode_ids,
        source_pattern_ids=content.source_pattern_ids,
        parent_pattern_id=content.parent_pattern_id,
        supersedes=content.supersedes,
        namespace=pattern.namespace,
        etag=pattern.etag,
        create_time=time_to_pb(pattern.create_time),
        update_time=time_to_pb(pattern.update_time),
        feedback=counts_to_pb(pattern.feedback),
        superseded_by=pattern.superseded_by,
    )
    if content.metadata:
        message.metadata.CopyFrom(struct_from_json(content.metadata))
    if content.expire_time is not None:
        message.expire_time.CopyFrom(time_to_pb(content.expire_time))
    return message


def _action_to_pb(action: Action) -> pb.Action:
    message = pb.Action(tool=action.tool, note=action.note)
    if action.args:
        message.args.CopyFrom(struct_from_json(action.args))
    return message


def content_from_pb(message: pb.Pattern) -> PatternContent:
    """What a caller gave of a pattern; output-only fields and ``ttl`` are not read."""
    check_list_size(message.actions, "pattern.actions")
    return PatternContent(
        task=message.task,
        kind=KIND.from_pb(message.kind) or PatternKind.TASK,
        code_kind=CODE_KIND.from_pb(message.code_kind),
        pattern_type=PATTERN_TYPE.from_pb(message.pattern_type) or PatternType.SUCCESS,
        title=message.title,
        context=message.context,
        actions=tuple(
            Action(
                action.tool,
                struct_from_pb(action.args, f"pattern.actions[{number}].args"),
                action.note,
            )
            for number, action in enumerate(message.actions)
        ),
        code=message.code,
        language=language_name(message.language),
        category=message.category,
        task_type=message.task_type,
        task_type_pattern=message.task_type_pattern,
        complexity=COMPLEXITY.from_pb(message.complexity),
        approach=message.approach,
        success_indicators=tuple(message.success_indicators),
        failure_indicators=tuple(message.failure_indicators),
        recommended_context=message.recommended_context,
        success_factors=tuple(message.success_factors),
        tools=tuple(message.tools),
        tags=tuple(message.tags),
        labels=dict(message.labels),
        metadata=struct_from_pb(message.metadata, "pattern.metadata"),
        pinned=message.pinned,
        confidence=message.confidence if message.HasField("confidence") else 0.5,
        source_episode_ids=tuple(message.source_episode_ids),
        source_pattern_ids=tuple(message.source_pattern_ids),
        parent_pattern_id=message.parent_pattern_id,
        supersedes=message.supersedes,
        expire_time=time_from_pb(message, "expire_time", "pattern"),
    )


def same_id(resource_kind: str, inside: str, beside: str) -> None:
    """Refuse an id inside the message that is not the one beside it."""
    if inside and inside != beside:
        raise invalid(
            f"{resource_kind}.{resource_kind}_id",
            f"{resource_kind}_id.beside",
            f"set the ID in {resource_kind}_id beside {resource_kind}; inside it must be empty or "
            "the same",
        )


def draft_from_pb(
    message: service_pb.SavePatternRequest | service_pb.SavePatternItem,
) -> PatternDraft:
    """A pattern to save."""
    same_id("pattern", message.pattern.pattern_id, message.pattern_id)
    rate = message.initial_success_rate if message.HasField("initial_success_rate") else 1.0
    return PatternDraft(
        content_from_pb(message.pattern),
        pattern_id=message.pattern_id,
        initial_success_rate=rate,
        request_id=message.request_id,
        dedupe=DEDUPE.from_pb(message.dedupe),
        ttl=micros_from_pb(message.pattern, "ttl", "pattern"),
    )


def edit_from_pb(message: pb.Pattern, mask: FieldMask) -> PatternEdit:
    """An edit: the paths that the mask names, or those that the pattern has populated."""
    fields, ttl = edited_fields(message, mask, _OUTPUT_ONLY, "pattern")
    named = "confidence" in mask.paths
    return PatternEdit(content_from_pb(message), fields, ttl, sets_confidence=named)


def filter_from_pb(message: pb.PatternFilter) -> PatternFilter:
    """A filter."""
    return PatternFilter(
        languages=tuple(message.languages),
        kinds=KIND.all_from_pb(message.kinds),
        code_kinds=CODE_KIND.all_from_pb(message.code_kinds),
        pattern_types=PATTERN_TYPE.all_from_pb(message.pattern_types),
        task_types=tuple(message.task_types),
        categories=tuple(message.categories),
        complexities=COMPLEXITY.all_from_pb(message.complexities),
        tools=tuple(message.tools),
        approaches=tuple(message.approaches),
        tags_any=tuple(message.tags_any),
        tags_all=tuple(message.tags_all),
        labels=dict(message.labels),
        min_success_rate=message.min_success_rate,
        min_reliability=message.min_reliability,
        min_usage_count=message.min_usage_count,
        created_after=time_from_pb(message, "created_after", "filter"),
        created_before=time_from_pb(message, "created_before", "filter"),
        pinned=message.pinned if message.HasField("pinned") else None,
        superseded=message.superseded if message.HasField("superseded") else None,
    )
