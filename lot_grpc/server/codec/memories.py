"""Memories: contents, drafts, filters and hits."""

from __future__ import annotations

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
from lot_grpc.domain.query import MemoryFilter
from lot_grpc.pb.lot.v1 import memory_pb2 as pb
from lot_grpc.pb.lot.v1 import memory_service_pb2 as service_pb
from lot_grpc.pb.lot.v1 import pattern_service_pb2
from lot_grpc.server.codec.generic import Decoder, Encoder
from lot_grpc.server.codec.notices import (
    conflict_notices,
    held_back_notices,
    passage_notices,
    unchanged_notices,
)
from lot_grpc.server.codec.origin import check_origin, editor_of
from lot_grpc.server.codec.outcomes import explain_hit, outcomes_if_any_to_pb
from lot_grpc.server.codec.patterns import same_id
from lot_grpc.server.codec.values import ttl_of
from lot_grpc.server.masks import updated_paths
from lot_grpc.services.lineage.lineage import Relative
from lot_grpc.services.memories.drafts import Created, MemoryDraft, MemoryEdit, Updated
from lot_grpc.services.memories.passages import Passage
from lot_grpc.services.recall.recall import Hit
from lot_grpc.services.recall.targets import RecallOptions

_OUTPUT_ONLY = frozenset(
    {
        "memory_id",
        "namespace",
        "etag",
        "create_time",
        "update_time",
        "indexing",
        "indexing_problem",
        "superseded_by",
        "superseded_time",
        "outcomes",
        "review",
    }
)
_FIELD_OF = {
    "conversation_summary": "details",
    "project": "details",
    "expiration": "expire_time",
    "ttl": "expire_time",
}
"""The field of a content for each message field with a different name."""

_DETAILS: dict[str, type[Details]] = {
    "conversation_summary": ConversationSummary,
    "project": Project,
}
_KINDS = {ConversationSummary: MemoryKind.CONVERSATION_SUMMARY, Project: MemoryKind.PROJECT}

memory_to_pb = Encoder(
    Memory,
    pb.Memory,
    flatten=("content",),
    values={"outcomes": outcomes_if_any_to_pb},
    omit={"ttl", "revision"},
)

_content = Decoder(
    pb.Memory,
    MemoryContent,
    path="memory",
    values={
        "language": language_name,
        "project": Decoder(pb.ProjectDetails, Project, defaults={"status": "active"}),
    },
    omit=_OUTPUT_ONLY | {"ttl"},
)


def content_from_pb(memory: pb.Memory) -> MemoryContent:
    """The content that a caller gave; output-only fields and ``ttl`` are ignored.

    Without a kind it has that of its details, and without details it is a NOTE.
    """
    if memory.kind:
        return _content(memory)
    named = memory.WhichOneof("details")
    return _content(memory, kind=_KINDS[_DETAILS[named]] if named else MemoryKind.NOTE)


def draft_from_pb(
    message: service_pb.CreateMemoryRequest | service_pb.CreateMemoryItem,
) -> MemoryDraft:
    """A memory to create."""
    same_id("memory", message.memory.memory_id, message.memory_id)
    check_origin(message.memory, "memory")
    return MemoryDraft(
        content_from_pb(message.memory),
        message.memory_id,
        message.request_id,
        ttl_of(message.memory, "memory"),
        unique=message.dedupe == pattern_service_pb2.DEDUPE_EXACT,
    )


def edit_from_pb(message: pb.Memory, mask: FieldMask) -> MemoryEdit:
    """An edit: the paths in the mask, or else those populated in the memory."""
    editor, paths = editor_of(message, mask, updated_paths(message, mask, _OUTPUT_ONLY))
    fields: set[str] = set()
    leaves: dict[type[Details], frozenset[str]] = {}
    for path in paths:
        name, _, leaf = path.partition(".")
        if name in _DETAILS and (leaf or not mask.paths):
            kind = _DETAILS[name]
            leaves[kind] = leaves.get(kind, frozenset()) | ({leaf} - {""})
        else:
            fields.add(_FIELD_OF.get(name, name))
    ttl = ttl_of(message, "memory") if "expire_time" in fields else None
    return MemoryEdit(content_from_pb(message), frozenset(fields), ttl, leaves, editor)


def created_to_pb(created: Created) -> service_pb.CreateMemoryResponse:
    """The result of a create."""
    why = (
        "this content is already stored and retains its own; use UpdateMemory to change it, or "
        "dedupe NONE to store another one"
    )
    return service_pb.CreateMemoryResponse(
        memory=memory_to_pb(created.memory),
        created=created.created,
        notices=[
            *passage_notices(truncated=created.truncated),
            *held_back_notices("memory", created.memory.review, created=created.created),
            *unchanged_notices("memory", created.unchanged_fields, why),
            *conflict_notices(created.conflicts),
        ],
        conflicting_memory_ids=[one.memory_id for one in created.conflicts],
    )


def updated_to_pb(updated: Updated) -> service_pb.UpdateMemoryResponse:
    """The result of an edit."""
    return service_pb.UpdateMemoryResponse(
        memory=memory_to_pb(updated.memory),
        notices=[
            *passage_notices(truncated=updated.truncated),
            *conflict_notices(updated.conflicts),
        ],
        conflicting_memory_ids=[one.memory_id for one in updated.conflicts],
    )


lineage_to_pb: Encoder[Relative[Memory], service_pb.MemoryLineageEntry] = Encoder(
    Relative,
    service_pb.MemoryLineageEntry,
    rename={"memory": "thing"},
    values={"memory": memory_to_pb},
)


filter_from_pb = Decoder(pb.MemoryFilter, MemoryFilter, path="filter")

request_from_pb = Decoder(
    service_pb.SearchMemoriesRequest,
    RecallOptions,
    defaults={"limit": 5},
    omit={"namespace", "filter", "read_mask", "legs"},
)

_hit: Encoder[Hit[Memory], pb.MemoryHit] = Encoder(
    Hit,
    pb.MemoryHit,
    rename={"memory": "thing"},
    values={"memory": memory_to_pb},
    omit={
        "score_parts",
        "parts",
        "evidence",
        "outcome_evidence",
        "resource",
        "record",
        "lazy_thing",
        "lazy_match",
        "match_probability",
        "passage",
    },
)


def memory_hit_to_pb(
    hit: Hit[Memory], passage: Passage | None, *, explain: bool = False, match: bool = False
) -> pb.MemoryHit:
    """A memory found by recall, and the passage that answers best.

    ``match``: with the probability, which takes a while to compute for long texts.
    """
    message = _hit(hit)
    if match and hit.match is not None:
        message.match_probability = hit.match
    if explain:
        explain_hit(message, hit)
    if passage is not None:
        message.passage.text = passage.text
        message.passage.start_offset, message.passage.end_offset = passage.span
    return message
