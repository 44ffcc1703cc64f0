"""ErrorSolution ⇄ Record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lot_grpc.domain.error_solution import (
    ErrorSolution,
    ErrorSolutionContent,
    ErrorSolutionFilter,
)
from lot_grpc.domain.error_text.signature import VERSION
from lot_grpc.domain.ids import point_id
from lot_grpc.domain.languages import language_name
from lot_grpc.ports import EXPIRES_KEY, Condition, Payload, Record, Vector
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.records.counters import (
    outcomes_from_payload,
    outcomes_payload,
    uncounted,
)
from lot_grpc.services.records.fields import (
    FieldCodec,
    after,
    all_of,
    any_of,
    at_least,
    before,
    equals,
    label_keys,
    label_pairs,
)

_CONTENT = FieldCodec(
    ErrorSolutionContent,
    always={"worked", "pinned"},  # since filters name them
    rename={"expire_time": EXPIRES_KEY},
)
_SOLUTION = FieldCodec(
    ErrorSolution,
    sparse=False,
    skip={"namespace", "content", "signature", "outcomes", "signed_by"},
)


def error_solution_point(namespace: str, error_solution_id: str) -> str:
    """The point id of an error solution."""
    return point_id(namespace, "error_solution", error_solution_id)


def content_payload(content: ErrorSolutionContent) -> Payload:
    """The keys of a content."""
    return {**_CONTENT.write(content), **label_keys(content.labels)}


def signature_payload(content: ErrorSolutionContent) -> Payload:
    """The keys that this version derives from an error; the caller sets none of them."""
    signatures = [one.text for one in content.error.signatures]
    return {
        "signature": signatures[0] if signatures else "",
        "signatures": signatures,
        "signed_by": VERSION,
    }


def error_solution_record(
    solution: ErrorSolution,
    sort_key: int,
    vectors: Mapping[str, Vector],
    preserved: Mapping[str, Any] | None = None,
) -> Record:
    """Encode it whole. ``preserved``: keys of the replaced record (``preserved_in_edits``)."""
    payload = {
        **content_payload(solution.content),
        **outcomes_payload(solution.outcomes),
        **(preserved or uncounted()),
        **signature_payload(solution.content),
        **_SOLUTION.write(solution),
        SORT_KEY: sort_key,
    }
    point = error_solution_point(solution.namespace, solution.error_solution_id)
    return Record(point, solution.namespace, payload, vectors)


def error_solution_from_record(record: Record) -> ErrorSolution:
    """Decode the error solution of a record."""
    payload = record.payload
    return _SOLUTION.read(
        payload,
        namespace=record.namespace,
        content=_CONTENT.read(payload),
        signature=payload["signature"],
        outcomes=outcomes_from_payload(payload),
        signed_by=payload.get("signed_by", 0),
    )


def error_texts(record: Record) -> tuple[str, str]:
    """The type of an error, "" if not given, and its message."""
    return record.payload.get("error_type", ""), record.payload["error_message"]


def error_solution_conditions(criteria: ErrorSolutionFilter) -> list[Condition]:
    """A filter as conditions."""
    return [
        *any_of("error_type", criteria.error_types),
        *any_of("language", tuple(language_name(given) for given in criteria.languages)),
        *any_of("categories", criteria.categories),
        *any_of("signature", criteria.signatures),
        *any_of("tags", criteria.tags_any),
        *all_of("label_pairs", label_pairs(criteria.labels)),
        *after("create_time", criteria.created_after),
        *before("create_time", criteria.created_before),
        *equals("worked", criteria.worked),
        *at_least("success_rate", criteria.min_success_rate),
        *at_least("usage_count", criteria.min_usage_count),
        *equals("pinned", criteria.pinned),
    ]
