"""The kind ``pattern``: what it stores, and how the general parts treat it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import PatternNotFoundError
from lot_grpc.domain.outcomes import OutcomeStats
from lot_grpc.domain.pattern import Pattern, PatternContent, search_text, search_text_of
from lot_grpc.domain.search_text import SearchText
from lot_grpc.ports import Equals, Missing, Not, Payload, Record, Vector
from lot_grpc.services.outcomes.logs import logs_of, logs_of_kind
from lot_grpc.services.patterns.lineage import NOTE_KIND
from lot_grpc.services.patterns.ranked import NOT_PINNED, RANK_KEYS, pattern_rank
from lot_grpc.services.records.collections import (
    CODE_VECTOR,
    FEEDBACK,
    PATTERNS,
    REQUESTS,
    SORT_KEY,
    SPARSE_VECTOR,
    TEXT_VECTOR,
)
from lot_grpc.services.records.counters import PENDING, STATS_REVISION
from lot_grpc.services.records.feedback import feedback_from_record
from lot_grpc.services.records.outcomes import APPLIED
from lot_grpc.services.records.patterns import (
    PENDING_FEEDBACK,
    pattern_conditions,
    pattern_from_record,
    pattern_point,
    pattern_record,
)
from lot_grpc.services.resource_spec import (
    CHANGE_INDEXES,
    COMMON_INDEXES,
    Bound,
    ExportRule,
    Place,
    RecordSet,
    ResourceCollection,
    ResourceSpec,
    RetentionRule,
    SeedRule,
    WatchRule,
    indexes,
)

_SOURCES = ("source_episode_ids", "source_pattern_ids")
_LEARNED_KINDS = ("learned", "distilled")
_OF_PATTERNS = Not(Missing("pattern_id"))


def _text_of(record: Record) -> SearchText:
    read = record.payload.get
    return search_text_of(
        read("title", ""), read("task", ""), read("context", ""), read("code", "")
    )


def _pattern_of(namespace: str, payload: Payload) -> Place:
    return PATTERNS, pattern_point(namespace, payload["pattern_id"])


def _feedback_point(namespace: str, payload: Payload) -> str:
    return feedback_from_record(Record("", namespace, payload)).given.point


def _learned(payload: Payload) -> bool:
    return payload["kind"] in _LEARNED_KINDS or any(payload.get(key) for key in _SOURCES)


def _logs_of(record: Record) -> tuple[RecordSet, ...]:
    theirs = Equals("pattern_id", record.payload["pattern_id"])
    return (*logs_of(record), RecordSet(FEEDBACK, (theirs,)))


def _seeded(
    namespace: str,
    pattern_id: str,
    content: PatternContent,
    now: int,
    sort_key: int,
    vectors: Mapping[str, Vector],
) -> Record:
    pattern = Pattern(namespace, pattern_id, content, OutcomeStats(), 1, now, now)
    return pattern_record(pattern, sort_key, vectors)


PATTERN: Final = ResourceSpec(
    kind=ResourceKind.PATTERN,
    id_key="pattern_id",
    point=pattern_point,
    read=pattern_from_record,
    conditions=pattern_conditions,
    missing=PatternNotFoundError,
    method="SavePattern",
    counted=True,
    unchanged_as_seen=(STATS_REVISION,),
    seen_keys=("pattern_id", "supersedes", "revision", STATS_REVISION, SORT_KEY),
    collection=ResourceCollection(
        name=PATTERNS,
        description="A pattern, with its outcomes and feedback added up.",
        dense=(TEXT_VECTOR, CODE_VECTOR),
        sparse=(SPARSE_VECTOR,),
        text_of=_text_of,
        expires=True,
        indexes=COMMON_INDEXES
        | CHANGE_INDEXES
        | indexes(
            keyword=(
                "kind code_kind pattern_type language category task_type "
                "task_type_pattern complexity approach tools supersedes "
                "parent_pattern_id"
            ),
            boolean="pinned superseded",
            floating="success_rate reliability",
            integer="last_used_time update_time group_level",
            faceted="success_permille usage_count success_count failure_count",
        ),
        export=ExportRule(
            dropped=frozenset({PENDING_FEEDBACK}),
            done={PENDING: []},
        ),
    ),
    parts=(
        ResourceCollection(
            name=FEEDBACK,
            description="One feedback on a pattern.",
            key="`feedback_id`",
            indexes=indexes(keyword="pattern_id", boolean="applied", integer=SORT_KEY),
            read=feedback_from_record,
            export=ExportRule(
                point=_feedback_point,
                id_keys=("feedback_id",),
                parents=(PATTERNS,),
                parent=_pattern_of,
                excluded=lambda payload: not payload[APPLIED],
            ),
        ),
    ),
    belongings=_logs_of,
    watch=WatchRule(learned_keys=("kind", *_SOURCES), learned=_learned),
    retention=RetentionRule(
        bound=lambda policy: Bound(policy.max_patterns, policy.max_pattern_age),
        touched=(NOT_PINNED,),
        age_keys=("update_time", "last_used_time"),
        keys=RANK_KEYS,
        rank=pattern_rank,
    ),
    seed=SeedRule(
        entries=lambda pack: pack.patterns,
        text_of=search_text,
        record=_seeded,
    ),
    cleared_along=(
        *logs_of_kind(ResourceKind.PATTERN),
        # The claims on contents, and the notes of lineage.
        RecordSet(REQUESTS, (_OF_PATTERNS,)),
        RecordSet(REQUESTS, (Equals("kind", NOTE_KIND),)),
    ),
)
