"""Memory, its filter and drafts."""

from __future__ import annotations

from lot_grpc.domain.languages import language_name
from lot_grpc.domain.memory import (
    ConversationSummary,
    Memory,
    MemoryContent,
    MemoryKind,
    Project,
)
from lot_grpc.domain.query import MemoryFilter
from lot_grpc.pb.lot.v1 import memory_pb2 as pb
from lot_grpc.pb.lot.v1 import memory_service_pb2 as service_pb
from lot_grpc.server.convert.patterns import same_id
from lot_grpc.server.convert.values import (
    EnumCodec,
    micros_from_pb,
    struct_from_json,
    struct_from_pb,
    time_from_pb,
    time_to_pb,
)
from lot_grpc.services.memories.memories import MemoryDraft

KIND = EnumCodec(pb.MemoryKind.DESCRIPTOR, MemoryKind, "MEMORY_KIND_")


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


def draft_from_pb(message: service_pb.CreateMemoryRequest) -> MemoryDraft:
    """A memory to create."""
    memory = message.memory
    same_id("memory", memory.memory_id, message.memory_id)
    content = MemoryContent(
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
    ttl = micros_from_pb(memory, "ttl", "memory")
    return MemoryDraft(content, message.memory_id, message.request_id, ttl)


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
