"""Pattern ⇄ Record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lot_grpc.domain.feedback import FeedbackCounts
from lot_grpc.domain.ids import point_id
from lot_grpc.domain.languages import language_name
from lot_grpc.domain.pattern import (
    Action,
    Pattern,
    PatternContent,
    dedupe_hash,
)
from lot_grpc.domain.query import PatternFilter
from lot_grpc.kernel.create import SIGNATURE
from lot_grpc.ports import EXPIRES_KEY, Condition, Equals, Not, Payload, Record, Vector
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.records.counters import (
    PENDING,
    STATS_REVISION,
    outcomes_from_payload,
    outcomes_payload,
    uncounted,
)
from lot_grpc.services.records.fields import (
    FieldCodec,
    Filters,
    after,
    all_conditions,
    all_of,
    any_of,
    at_least,
    before,
    equals,
    label_keys,
    label_pairs,
)

PENDING_FEEDBACK = "pending_feedback"
"""How feedback counted whose own row may not be updated yet (``services.patterns.feedback``)."""
SUPERSEDED = "superseded"
SUPERSEDED_BY = "superseded_by"
"""Derived from another pattern's ``supersedes`` (services.patterns.lineage)."""
LEARNED_FIELDS = "learned_fields"
"""On a LEARNED pattern: a hash of each field as extraction last wrote it, to detect edits."""


_PRESERVED = (
    STATS_REVISION, PENDING, PENDING_FEEDBACK, SIGNATURE, LEARNED_FIELDS,
    SUPERSEDED, SUPERSEDED_BY, "group_level", "group_key", "group_made", "inherited",
)  # fmt: skip
"""Keys of no field that outlive an edit; those of groups are explained in ``records.groups``."""

_CONTENT = FieldCodec(
    PatternContent,
    always={"kind", "pattern_type", "pinned"},  # since filters name them
    rename={"expire_time": EXPIRES_KEY},
    values={"actions": FieldCodec(Action, always={"args", "note"})},
)
_FEEDBACK = FieldCodec(FeedbackCounts)
_PATTERN = FieldCodec(
    Pattern, sparse=False, skip={"namespace", "content", "outcomes", "feedback", SUPERSEDED_BY}
)


def pattern_point(namespace: str, pattern_id: str) -> str:
    """The point id of a pattern."""
    return point_id(namespace, "pattern", pattern_id)


def claim_point(namespace: str, content: PatternContent) -> str:
    """The point id of the claim on a content; its holder is the one pattern with that content."""
    return point_id(namespace, "unique_content", dedupe_hash(content))


def content_payload(content: PatternContent) -> Payload:
    """The keys that an edit writes."""
    return {**_CONTENT.write(content), **label_keys(content.labels)}


def feedback_payload(feedback: FeedbackCounts) -> Payload:
    """The keys that a feedback writes besides the confidence; none without feedback."""
    return _FEEDBACK.write(feedback)


def pattern_record(
    pattern: Pattern,
    sort_key: int,
    vectors: Mapping[str, Vector],
    preserved: Mapping[str, Any] | None = None,
) -> Record:
    """Encode it whole. ``preserved``: keys of the replaced record (``preserved_in_edits``)."""
    payload = {
        **content_payload(pattern.content),
        **outcomes_payload(pattern.outcomes),
        **feedback_payload(pattern.feedback),
        **(preserved or uncounted()),
        **_PATTERN.write(pattern),
        SORT_KEY: sort_key,
    }
    point = pattern_point(pattern.namespace, pattern.pattern_id)
    return Record(point, pattern.namespace, payload, vectors)


def preserved_in_edits(payload: Mapping[str, Any]) -> Payload:
    """The keys of a record that belong to no field of a pattern and outlive an edit."""
    return {key: payload[key] for key in _PRESERVED if key in payload}


def pattern_from_record(record: Record) -> Pattern:
    """Decode the pattern of a record."""
    payload = record.payload
    return _PATTERN.read(
        payload,
        namespace=record.namespace,
        content=_CONTENT.read(payload),
        outcomes=outcomes_from_payload(payload),
        feedback=_FEEDBACK.read(payload),
        superseded_by=payload.get(SUPERSEDED_BY, ""),
    )


def pattern_filters(criteria: PatternFilter) -> Filters:
    """A filter as conditions, by the request field that sets them."""
    return {
        "languages": any_of(
            "language", tuple(language_name(given) for given in criteria.languages)
        ),
        "kinds": any_of("kind", criteria.kinds),
        "code_kinds": any_of("code_kind", criteria.code_kinds),
        "pattern_types": any_of("pattern_type", criteria.pattern_types),
        "task_types": any_of("task_type", criteria.task_types),
        "categories": any_of("category", criteria.categories),
        "complexities": any_of("complexity", criteria.complexities),
        "tools": any_of("tools", criteria.tools),
        "approaches": any_of("approach", criteria.approaches),
        "tags_any": any_of("tags", criteria.tags_any),
        "tags_all": all_of("tags", criteria.tags_all),
        "labels": all_of("label_pairs", label_pairs(criteria.labels)),
        "created_after": after("create_time", criteria.created_after),
        "created_before": before("create_time", criteria.created_before),
        "min_success_rate": at_least("success_rate", criteria.min_success_rate),
        "min_reliability": at_least("reliability", criteria.min_reliability),
        "min_usage_count": at_least("usage_count", criteria.min_usage_count),
        "pinned": equals("pinned", criteria.pinned),
        "superseded": _superseded(criteria.superseded),
    }


def _superseded(include: bool | None) -> list[Condition]:
    """Only superseded ones, or only the others; the mark is stored only if true."""
    marked = Equals(SUPERSEDED, True)
    return [] if include is None else [marked if include else Not(marked)]


def pattern_conditions(criteria: PatternFilter) -> list[Condition]:
    """A filter as conditions."""
    return all_conditions(pattern_filters(criteria))
