"""The kind ``outcome``: the log that patterns and error solutions count on."""

from __future__ import annotations

from typing import Final

from lot_grpc.domain.change import ResourceKind
from lot_grpc.ports import Payload, Record
from lot_grpc.services.records.collections import ERROR_SOLUTIONS, OUTCOMES, PATTERNS, SORT_KEY
from lot_grpc.services.records.error_solutions import error_solution_point
from lot_grpc.services.records.outcomes import APPLIED, outcome_from_record
from lot_grpc.services.records.patterns import pattern_point
from lot_grpc.services.resource_spec import (
    ExportRule,
    Place,
    ResourceCollection,
    ResourceSpec,
    indexes,
)


def _point(namespace: str, payload: Payload) -> str:
    return outcome_from_record(Record("", namespace, payload)).point


def _parent(namespace: str, payload: Payload) -> Place:
    if "error_solution_id" in payload:
        return ERROR_SOLUTIONS, error_solution_point(namespace, payload["error_solution_id"])
    return PATTERNS, pattern_point(namespace, payload["pattern_id"])


OUTCOME: Final = ResourceSpec(
    kind=ResourceKind.OUTCOME,
    id_key="outcome_id",
    read=outcome_from_record,
    collection=ResourceCollection(
        name=OUTCOMES,
        description="One outcome of a pattern or an error solution, or a correction of one.",
        key="`outcome_id` or `corrects_outcome_id`, `pattern_id` or `error_solution_id`",
        indexes=indexes(
            keyword="pattern_id error_solution_id outcome_id",
            boolean="applied",
            integer=SORT_KEY,
        ),
        export=ExportRule(
            point=_point,
            done={APPLIED: True},
            parents=(PATTERNS, ERROR_SOLUTIONS),
            parent=_parent,
        ),
    ),
    cleared_with=(ResourceKind.PATTERN, ResourceKind.ERROR_SOLUTION),
)
