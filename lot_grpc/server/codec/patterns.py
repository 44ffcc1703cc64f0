"""Patterns: contents, drafts, filters and hits."""

from __future__ import annotations

from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from lot_grpc.domain.errors import invalid
from lot_grpc.domain.feedback import FeedbackCounts
from lot_grpc.domain.languages import language_name
from lot_grpc.domain.pattern import Pattern, PatternContent
from lot_grpc.domain.query import PatternFilter
from lot_grpc.pb.lot.v1 import feedback_pb2, outcome_pb2
from lot_grpc.pb.lot.v1 import pattern_pb2 as pb
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as service_pb
from lot_grpc.server.codec.generic import Decoder, Encoder, Whole
from lot_grpc.server.codec.notices import (
    held_back_notices,
    merged_notices,
    text_notices,
    unchanged_notices,
)
from lot_grpc.server.codec.origin import check_origin, editor_of
from lot_grpc.server.codec.outcomes import (
    explain_hit,
    outcomes_to_pb,
)
from lot_grpc.server.codec.pairs import fields_beside
from lot_grpc.server.codec.record_messages import RecordMessages
from lot_grpc.server.codec.values import (
    check_list_size,
    edited_fields,
    struct_from_pb,
    time_to_pb,
    ttl_of,
)
from lot_grpc.services.distillation.distiller import Distilled, DistilledGroup, DistillRequest
from lot_grpc.services.extraction.code_extraction import CodeDraft, Extracted
from lot_grpc.services.extraction.pattern_extraction import ExtractionDraft
from lot_grpc.services.lineage.lineage import Relative
from lot_grpc.services.patterns.drafts import PatternDraft, Saved
from lot_grpc.services.patterns.feedback import FeedbackDraft
from lot_grpc.services.patterns.pattern_stats import PatternStats
from lot_grpc.services.patterns.patterns import PatternEdit, Updated
from lot_grpc.services.patterns.pruner import Pruned, PruneDraft
from lot_grpc.services.recall.recall import Hit
from lot_grpc.services.recall.targets import RecallOptions
from lot_grpc.services.records.feedback import FeedbackEntry

_OUTPUT_ONLY = fields_beside(pb.Pattern, PatternContent) - {"ttl"}

# --- stored, given, edited ------------------------------------------------------------------------

_counts_to_pb = Encoder(FeedbackCounts, feedback_pb2.PatternFeedback)

pattern_to_pb = Encoder(
    Pattern,
    pb.Pattern,
    flatten=("content",),
    values={
        "outcomes": outcomes_to_pb,
        "feedback": lambda counts: _counts_to_pb(counts) if counts.feedback_count else None,
    },
    omit={"ttl", "revision"},
)

_content = Decoder(
    pb.Pattern,
    PatternContent,
    path="pattern",
    values={"language": language_name},
    omit={*_OUTPUT_ONLY, "ttl"},
)
_draft = Decoder(
    service_pb.SavePatternRequest, PatternDraft, omit={"namespace", "pattern", "content", "ttl"}
)
_draft_of_item = Decoder(
    service_pb.SavePatternItem, PatternDraft, omit={"pattern", "content", "ttl"}
)


def content_from_pb(message: pb.Pattern) -> PatternContent:
    """The content that a caller gave; output-only fields and ``ttl`` are ignored."""
    check_list_size(message.actions, "pattern.actions")
    return _content(message)


def same_id(resource_kind: str, inside: str, beside: str) -> None:
    """Refuse an id inside the message that differs from the one next to it."""
    if inside and inside != beside:
        raise invalid(
            f"{resource_kind}.{resource_kind}_id",
            f"{resource_kind}_id.beside",
            f"set the ID in {resource_kind}_id next to {resource_kind}; inside, it must be empty "
            "or the same",
        )


def draft_from_pb(
    message: service_pb.SavePatternRequest | service_pb.SavePatternItem,
) -> PatternDraft:
    """A pattern to save."""
    same_id("pattern", message.pattern.pattern_id, message.pattern_id)
    check_origin(message.pattern, "pattern")
    content, ttl = content_from_pb(message.pattern), ttl_of(message.pattern, "pattern")
    if isinstance(message, service_pb.SavePatternItem):
        return _draft_of_item(message, content=content, ttl=ttl)
    return _draft(message, content=content, ttl=ttl)


def edit_from_pb(message: pb.Pattern, mask: FieldMask) -> PatternEdit:
    """An edit: the paths in the mask, or else those populated in the pattern."""
    fields, ttl = edited_fields(message, mask, _OUTPUT_ONLY, "pattern")
    editor, others = editor_of(message, mask, fields)
    named = "confidence" in mask.paths
    return PatternEdit(
        content_from_pb(message), frozenset(others), ttl, sets_confidence=named, editor=editor
    )


def saved_to_pb(saved: Saved) -> service_pb.SavePatternResponse:
    """The result of a save."""
    why = (
        "the stored pattern retains its own; this save counted as a success of it. Use "
        "UpdatePattern to change it"
    )
    return service_pb.SavePatternResponse(
        pattern=pattern_to_pb(saved.pattern),
        created=saved.created,
        notices=[
            *_unread_notices(saved),
            *held_back_notices("pattern", saved.pattern.review, created=saved.created),
            *unchanged_notices("pattern", saved.unchanged_fields, why),
            *merged_notices("pattern", saved.pattern.pattern_id, saved.merged_at),
        ],
    )


def updated_to_pb(updated: Updated) -> service_pb.UpdatePatternResponse:
    """The result of an edit."""
    why = (
        "feedback has adjusted it, so this update did not change it; "
        "name it in update_mask to set it"
    )
    return service_pb.UpdatePatternResponse(
        pattern=pattern_to_pb(updated.pattern),
        notices=[
            *_unread_notices(updated),
            *unchanged_notices("pattern", updated.unchanged_fields, why),
        ],
    )


def _unread_notices(stored: Saved | Updated) -> list[outcome_pb2.Notice]:
    return [
        *text_notices("pattern.task", truncated=stored.text_truncated),
        *text_notices("pattern.code", truncated=stored.code_truncated),
    ]


# --- asked for and found --------------------------------------------------------------------------

filter_from_pb = Decoder(pb.PatternFilter, PatternFilter, path="filter")

request_from_pb = Decoder(
    service_pb.RecallPatternsRequest,
    RecallOptions,
    defaults={"limit": 5},
    omit={"namespace", "filter", "read_mask", "legs", "as_of"},
)

_hit: Encoder[Hit[Pattern], service_pb.PatternHit] = Encoder(
    Hit,
    service_pb.PatternHit,
    rename={"match_probability": "match"},
    omit={
        "pattern",
        "record",
        "resource",
        "lazy_thing",
        "lazy_match",
        "parts",
        "score_parts",
        "evidence",
        "outcome_evidence",
    },
)
_messages = RecordMessages()


def pattern_hit_to_pb(hit: Hit[Pattern], *, explain: bool = False) -> service_pb.PatternHit:
    """A pattern found by recall."""
    message = _hit(hit)
    message.pattern.MergeFromString(_messages.of(hit.record, lambda: pattern_to_pb(hit.thing)))
    if explain:
        explain_hit(message, hit)
    return message


def _named(counts: dict[str, int]) -> dict[str, int]:
    """Counts by enum name, without the prefix."""
    return {name.upper(): count for name, count in counts.items()}


stats_to_pb = Encoder(
    PatternStats,
    service_pb.GetPatternStatsResponse,
    rename={
        "total_count": "total",
        "total_usage_count": "total_usage",
        "used_count": "used",
        "total_success_count": "total_success",
        "total_failure_count": "total_failure",
        "total_partial_count": "total_partial",
        "pinned_count": "pinned",
    },
    values={"by_kind": _named, "by_pattern_type": _named, "by_code_kind": _named},
)

# --- feedback and pruning -------------------------------------------------------------------------

feedback_from_pb = Decoder(
    service_pb.RecordPatternFeedbackRequest, FeedbackDraft, omit={"namespace"}
)

feedback_entry_to_pb = Encoder(
    FeedbackEntry,
    feedback_pb2.FeedbackEntry,
    flatten=("given", "step"),
    omit={"namespace", "pattern_id"},
)

prune_draft_from_pb = Decoder(
    service_pb.PrunePatternsRequest,
    PruneDraft,
    rename={"filter": "criteria"},
    defaults={"criteria": PatternFilter()},
    values={"filter": filter_from_pb},
    omit={"namespace"},
)
pruned_to_pb = Encoder(
    Pruned,
    service_pb.PrunePatternsResponse,
    rename={"deleted_count": "deleted", "skipped_count": "skipped", "remaining_count": "remaining"},
)

# --- extraction, distillation and lineage ---------------------------------------------------------

_MAX_METRICS_BYTES = 64 * 1024
_MAX_DEPTH = 15
"""One less than the limit of metadata, in which they are stored."""
_MOST_GROUPS = 200
_MOST_MEMBERS = 1000

extraction_draft_from_pb = Decoder(
    service_pb.ExtractPatternsRequest,
    ExtractionDraft,
    rename={"task_type_pattern": "regex"},
    omit={"namespace"},
)
_code_draft = Decoder(
    service_pb.ExtractPatternsFromCodeRequest, CodeDraft, omit={"namespace", "success_metrics"}
)


def code_draft_from_pb(message: service_pb.ExtractPatternsFromCodeRequest) -> CodeDraft:
    """The code, and the fields of each extracted pattern."""
    if (size := message.success_metrics.ByteSize()) > _MAX_METRICS_BYTES:
        raise invalid(
            "success_metrics",
            "struct.max_bytes",
            f"must be at most {_MAX_METRICS_BYTES:,} bytes, is {size:,}",
        )
    metrics = struct_from_pb(message.success_metrics, "success_metrics")
    if _depth(metrics) > _MAX_DEPTH:
        raise invalid(
            "success_metrics", "struct.depth", f"must not nest more than {_MAX_DEPTH} levels deep"
        )
    return _code_draft(message, success_metrics=metrics)


def _depth(value: Any) -> int:
    """Nesting depth of Structs and lists; 1 without any inside. It is at most 16."""
    inner = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(inner, list):
        return 0
    return 1 + max((_depth(one) for one in inner), default=0)


def code_notices(extracted: Extracted) -> list[outcome_pb2.Notice]:
    """Notices of what was not read, and what stayed unchanged."""
    why = "existing patterns retain their own; use UpdatePattern to change it"
    return [
        *text_notices("patterns.task", truncated=extracted.text_truncated),
        *text_notices("patterns.code", truncated=extracted.code_truncated),
        *unchanged_notices("patterns", extracted.unchanged_fields, why),
    ]


distill_request_from_pb = Decoder(
    service_pb.DistillPatternsRequest,
    DistillRequest,
    rename={"filter": "narrowed"},
    values={"filter": filter_from_pb},
    omit={"namespace"},
)


def _groups_to_pb(groups: list[DistilledGroup]) -> list[service_pb.DistilledGroup]:
    return [_group_to_pb(group) for group in groups]


_group_to_pb = Encoder(
    DistilledGroup,
    service_pb.DistilledGroup,
    rename={"member_pattern_ids": "member_ids", "member_count": "member_ids"},
    values={
        "pattern": pattern_to_pb,
        "member_pattern_ids": lambda ids: ids[:_MOST_MEMBERS],
        "member_count": len,
        "groups": _groups_to_pb,
    },
    omit={"size"},
)
distilled_to_pb = Encoder(
    Distilled,
    service_pb.DistillPatternsResponse,
    rename={
        "group_count": "groups",
        "pattern_count": "looked_at",
        "omitted_count": "left_out",
        "created_count": "created",
        "extended_count": "extended",
    },
    values={"groups": lambda groups: _groups_to_pb(groups[:_MOST_GROUPS]), "group_count": len},
    omit={"notices"},
)
lineage_to_pb: Encoder[Relative[Pattern], service_pb.LineageEntry] = Encoder(
    Relative,
    service_pb.LineageEntry,
    values={
        "pattern_id": Whole(lambda one: one.thing.pattern_id),
        "task": Whole(lambda one: one.thing.content.task),
        "outcomes": Whole(lambda one: outcomes_to_pb(one.thing.outcomes)),
        "create_time": Whole(lambda one: time_to_pb(one.thing.create_time)),
    },
    omit={"thing"},
)
