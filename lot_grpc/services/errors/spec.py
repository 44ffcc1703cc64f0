"""The kind ``error_solution``: its storage, and how the generic services handle it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.error_solution import ErrorSolution, ErrorSolutionContent, search_text
from lot_grpc.domain.errors import ErrorSolutionNotFoundError
from lot_grpc.domain.outcomes import OutcomeStats
from lot_grpc.ports import Payload, Record, Vector
from lot_grpc.services.outcomes.logs import logs_of_kind, outcomes_of
from lot_grpc.services.patterns.ranked import NOT_PINNED, RANK_KEYS, pattern_rank
from lot_grpc.services.records.collections import (
    ERROR_SOLUTIONS,
    SOLVED_VECTOR,
    SORT_KEY,
    SPARSE_VECTOR,
    TEXT_VECTOR,
)
from lot_grpc.services.records.counters import PENDING, STATS_REVISION
from lot_grpc.services.records.error_solutions import (
    error_solution_conditions,
    error_solution_from_record,
    error_solution_point,
    error_solution_record,
)
from lot_grpc.services.resource_spec import (
    CHANGE_INDEXES,
    COMMON_INDEXES,
    Bound,
    ExportRule,
    ResourceCollection,
    ResourceSpec,
    RetentionRule,
    SeedRule,
    WatchRule,
    indexes,
)


def _rank(payload: Payload) -> tuple[float, ...]:
    """As for patterns; with failures only, the bound is 0 up to the rounding of doubles."""
    reliability, *rest = pattern_rank(payload)
    return (round(reliability, 9), *rest)


def _seeded(
    namespace: str,
    error_solution_id: str,
    content: ErrorSolutionContent,
    now: int,
    sort_key: int,
    vectors: Mapping[str, Vector],
) -> Record:
    rate = OutcomeStats(success_rate=content.first_success_rate)
    signature = content.error.signature
    solution = ErrorSolution(namespace, error_solution_id, content, signature, rate, 1, now, now)
    return error_solution_record(solution, sort_key, vectors)


ERROR_SOLUTION: Final = ResourceSpec(
    kind=ResourceKind.ERROR_SOLUTION,
    id_key="error_solution_id",
    point=error_solution_point,
    read=error_solution_from_record,
    conditions=error_solution_conditions,
    missing=ErrorSolutionNotFoundError,
    method="SaveErrorSolution",
    counted=True,
    unchanged_as_seen=(STATS_REVISION,),
    seen_keys=("error_solution_id", "revision", STATS_REVISION, SORT_KEY),
    collection=ResourceCollection(
        name=ERROR_SOLUTIONS,
        description="An error solution, with its outcomes added up.",
        dense=(TEXT_VECTOR, SOLVED_VECTOR),
        sparse=(SPARSE_VECTOR,),
        text_of=lambda record: search_text(error_solution_from_record(record).content),
        expires=True,
        indexes=COMMON_INDEXES
        | CHANGE_INDEXES
        | indexes(
            keyword="signature signatures error_type language categories",
            boolean="worked pinned",
            floating="success_rate",
            integer="usage_count last_used_time update_time",
        ),
        export=ExportRule(done={PENDING: []}),
    ),
    belongings=lambda record: (outcomes_of(record),),
    watch=WatchRule(),
    retention=RetentionRule(
        bound=lambda policy: Bound(policy.max_error_solutions, policy.max_error_solution_age),
        touched=(NOT_PINNED,),
        age_keys=("update_time", "last_used_time"),
        keys=RANK_KEYS,
        rank=_rank,
    ),
    seed=SeedRule(
        entries=lambda pack: pack.error_solutions,
        text_of=search_text,
        record=_seeded,
    ),
    cleared_along=logs_of_kind(ResourceKind.ERROR_SOLUTION),
)
