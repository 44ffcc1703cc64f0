"""Memory, its filter and drafts."""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.field_mask_pb2 import FieldMask

from lot_grpc.domain.languages import language_name
from lot_grpc.domain.memory import (
    ConversationSummary,
    Details,
    Memory,
    MemoryContent,
    MemoryKind,
    Project,
)
from lot_grpc.domain.passages import MOST_PASSAGES
from lot_grpc.domain.query import MemoryFilter
from lot_grpc.pb.lot.v1 import memory_pb2 as pb
from lot_grpc.pb.lot.v1 import memory_service_pb2 as service_pb
from lot_grpc.pb.lot.v1 import outcome_pb2, pattern_service_pb2
from lot_grpc.server.convert.outcomes import score_parts_to_pb
from lot_grpc.server.convert.patterns import same_id
from lot_grpc.server.convert.values import (
    EnumCodec,
    micros_from_pb,
    struct_from_json,
    struct_from_pb,
    time_from_pb,
    time_to_pb,
)
from lot_grpc.server.masks import updated_paths
from lot_grpc.services.memories.drafts import Created, MemoryDraft, MemoryEdit
from lot_grpc.services.memories.passages import Passage
from lot_grpc.services.recall.recall import Hit

KIND = EnumCodec(pb.MemoryKind.DESCRIPTOR, MemoryKind, "MEMORY_KIND_")

_OUTPUT_ONLY = {"memory_id", "namespace", "etag", "create_time", "update_time"}
_FIELD_OF = {
    "conversation_summary": "details",
    "project": "details",
    "expiration": "expire_time",
    "ttl": "expire_time",
}
"""The field of a content that a field of the message goes into, where it has another name."""

_DETAILS: dict[str, type[Details]] = {
    "conversation_summary": ConversationSummary,
    "project": Project,
}


def memory_to_pb(memory: Memory) -> pb.Memory:
    """A stored memory."""
    content = memory.content
    message = pb.Memory(
        memory_id=memory.memory_id,
        kind=KIND.to_pb(content.kind),
        title=content.title,
        content=content.content,
        language=content.language,
        tags=content.tags,
        labels=content.labels,
        importance=content.importance,
        pinned=content.pinned,
        source_uri=content.source_uri,
        namespace=memory.namespace,
        etag=memory.etag,
        create_time=time_to_pb(memory.create_time),
        update_time=time_to_pb(memory.update_time),
    )
    if content.metadata:
        message.metadata.CopyFrom(struct_from_json(content.metadata))
    if content.expire_time is not None:
        message.expire_time.CopyFrom(time_to_pb(content.expire_time))
    if isinstance(content.details, ConversationSummary):
        message.conversation_summary.CopyFrom(_summary_to_pb(content.details))
    elif isinstance(content.details, Project):
        message.project.CopyFrom(_project_to_pb(content.details))
    return message


def _summary_to_pb(details: ConversationSummary) -> pb.ConversationSummaryDetails:
    return pb.ConversationSummaryDetails(
        key_decisions=details.key_decisions, user_feedback=details.user_feedback
    )


def _project_to_pb(details: Project) -> pb.ProjectDetails:
    message = pb.ProjectDetails(
        path=details.path, tech_stack=details.tech_stack, status=details.status
    )
    if details.last_accessed_time is not None:
        message.last_accessed_time.CopyFrom(time_to_pb(details.last_accessed_time))
    return message


def _details_from_pb(message: pb.Memory) -> ConversationSummary | Project | None:
    if message.HasField("conversation_summary"):
        summary = message.conversation_summary
        return ConversationSummary(tuple(summary.key_decisions), summary.user_feedback)
    if message.HasField("project"):
        project = message.project
        return Project(
            project.path,
            tuple(project.tech_stack),
            project.status or "active",
            time_from_pb(project, "last_accessed_time", "memory.project"),
        )
    return None


def _kind_from_pb(message: pb.Memory) -> MemoryKind:
    """The kind given, else that of the details, else NOTE."""
    given = KIND.from_pb(message.kind)
    if given is not None:
        return given
    if message.HasField("project"):
        return MemoryKind.PROJECT
    if message.HasField("conversation_summary"):
        return MemoryKind.CONVERSATION_SUMMARY
    return MemoryKind.NOTE


def content_from_pb(memory: pb.Memory) -> MemoryContent:
    """What a caller gave of a memory; output-only fields and ``ttl`` are not read."""
    return MemoryContent(
        content=memory.content,
        kind=_kind_from_pb(memory),
        title=memory.title,
        language=language_name(memory.language),
        tags=tuple(memory.tags),
        labels=dict(memory.labels),
        metadata=struct_from_pb(memory.metadata, "memory.metadata"),
        importance=memory.importance if memory.HasField("importance") else 0.5,
        pinned=memory.pinned,
        source_uri=memory.source_uri,
        details=_details_from_pb(memory),
        expire_time=time_from_pb(memory, "expire_time", "memory"),
    )


def draft_from_pb(
    message: service_pb.CreateMemoryRequest | service_pb.CreateMemoryItem,
) -> MemoryDraft:
    """A memory to create."""
    same_id("memory", message.memory.memory_id, message.memory_id)
    return MemoryDraft(
        content_from_pb(message.memory),
        message.memory_id,
        message.request_id,
        micros_from_pb(message.memory, "ttl", "memory"),
        once=message.dedupe == pattern_service_pb2.DEDUPE_EXACT,
    )


def edit_from_pb(message: pb.Memory, mask: FieldMask) -> MemoryEdit:
    """An edit: the paths that the mask names, or those that the memory has populated."""
    paths = updated_paths(message, mask, _OUTPUT_ONLY)
    fields: set[str] = set()
    leaves: dict[type[Details], frozenset[str]] = {}
    for path in paths:
        name, _, leaf = path.partition(".")
        if name in _DETAILS and (leaf or not mask.paths):
            kind = _DETAILS[name]
            leaves[kind] = leaves.get(kind, frozenset()) | ({leaf} - {""})
        else:
            fields.add(_FIELD_OF.get(name, name))
    ttl = micros_from_pb(message, "ttl", "memory") if "expire_time" in fields else None
    return MemoryEdit(content_from_pb(message), frozenset(fields), ttl, leaves)


def created_to_pb(created: Created) -> service_pb.CreateMemoryResponse:
    """What became of a create."""
    return service_pb.CreateMemoryResponse(
        memory=memory_to_pb(created.memory),
        created=created.created,
        notices=[
            *unread_notices(truncated=created.truncated),
            *_unchanged_notices(created.unchanged_fields),
        ],
    )


def unread_notices(*, truncated: bool) -> list[outcome_pb2.Notice]:
    """Tells that not all of a content was read."""
    if not truncated:
        return []
    return [
        outcome_pb2.Notice(
            code=outcome_pb2.NOTICE_CODE_TEXT_TRUNCATED,
            field="memory.content",
            message=f"longer than the {MOST_PASSAGES} passages read of a content: it is stored "
            "whole and found by all of its words, but the rest does not affect similarity; "
            "split it into several memories",
        )
    ]


def _unchanged_notices(unchanged_fields: Iterable[str]) -> list[outcome_pb2.Notice]:
    """Tells which fields a repeat gave otherwise, in vain."""
    return [
        outcome_pb2.Notice(
            code=outcome_pb2.NOTICE_CODE_FIELDS_UNCHANGED,
            field=f"memory.{name}",
            message="this content is already stored and retains its own; use UpdateMemory to "
            "change it, or dedupe NONE to store another one",
        )
        for name in unchanged_fields
    ]


def memory_hit_to_pb(
    hit: Hit[Memory], passage: Passage | None, *, explain: bool = False
) -> pb.MemoryHit:
    """A memory that was found, and the passage that answers best."""
    message = pb.MemoryHit(
        memory=memory_to_pb(hit.thing),
        score=hit.score,
        similarity=hit.similarity,
        score_parts=score_parts_to_pb(hit.parts) if explain else (),
    )
    if passage is not None:
        message.passage.text = passage.text
        message.passage.start_offset, message.passage.end_offset = passage.span
    return message


def filter_from_pb(message: pb.MemoryFilter) -> MemoryFilter:
    """A filter."""
    has_maximum = message.HasField("max_importance")
    return MemoryFilter(
        kinds=KIND.all_from_pb(message.kinds),
        languages=tuple(message.languages),
        tags_any=tuple(message.tags_any),
        tags_all=tuple(message.tags_all),
        labels=dict(message.labels),
        source_uris=tuple(message.source_uris),
        project_statuses=tuple(message.project_statuses),
        tech_stack=tuple(message.tech_stack),
        min_importance=message.min_importance,
        max_importance=message.max_importance if has_maximum else None,
        created_after=time_from_pb(message, "created_after", "filter"),
        created_before=time_from_pb(message, "created_before", "filter"),
        pinned=message.pinned if message.HasField("pinned") else None,
    )
