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
from lot_grpc.ports import EXPIRES_KEY, Condition, Equals, Payload, Range, Record, Vector
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.records.fields import (
    FieldCodec,
    after,
    all_of,
    any_of,
    before,
    label_pairs,
)
from lot_grpc.services.records.patterns import (
    STATS_REVISION,
    UNSETTLED,
    outcomes_from_payload,
    outcomes_payload,
)

_CONTENT = FieldCodec(ErrorSolutionContent, {}, skip=frozenset({"expire_time"}))


def error_solution_point(namespace: str, error_solution_id: str) -> str:
    """Where an error solution lies."""
    return point_id(namespace, "error solution", error_solution_id)


def content_payload(content: ErrorSolutionContent) -> Payload:
    """The keys of a content. ``worked`` is always there, since filters name it."""
    payload = _CONTENT.write(content)
    payload["worked"] = content.worked
    payload["pinned"] = content.pinned
    if content.labels:
        payload["label_pairs"] = label_pairs(content.labels)
    if content.expire_time is not None:
        payload[EXPIRES_KEY] = content.expire_time
    return payload


def signature_payload(content: ErrorSolutionContent) -> Payload:
    """What the rules of this version read of an error; none of it is the caller's."""
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
    kept: Mapping[str, Any] | None = None,
) -> Record:
    """The whole record. ``kept`` are keys of a record that is replaced (``preserved_in_edits``)."""
    payload = content_payload(solution.content)
    payload.update(outcomes_payload(solution.outcomes))
    payload.update(kept or {STATS_REVISION: 0, UNSETTLED: []})
    payload.update(signature_payload(solution.content))
    payload["error_solution_id"] = solution.error_solution_id
    payload["revision"] = solution.revision
    payload["create_time"] = solution.create_time
    payload["update_time"] = solution.update_time
    payload[SORT_KEY] = sort_key
    point = error_solution_point(solution.namespace, solution.error_solution_id)
    return Record(point, solution.namespace, payload, vectors)


def error_solution_from_record(record: Record) -> ErrorSolution:
    """The error solution of a record."""
    payload = record.payload
    content = ErrorSolutionContent(**_CONTENT.read(payload), expire_time=payload.get(EXPIRES_KEY))
    return ErrorSolution(
        namespace=record.namespace,
        error_solution_id=payload["error_solution_id"],
        content=content,
        signature=payload["signature"],
        signed_by=payload.get("signed_by", 0),
        outcomes=outcomes_from_payload(payload),
        revision=payload["revision"],
        create_time=payload["create_time"],
        update_time=payload["update_time"],
    )


def error_solution_conditions(criteria: ErrorSolutionFilter) -> list[Condition]:
    """A filter as conditions."""
    where: list[Condition] = [
        *any_of("error_type", criteria.error_types),
        *any_of("language", tuple(language_name(given) for given in criteria.languages)),
        *any_of("categories", criteria.categories),
        *any_of("signature", criteria.signatures),
        *any_of("tags", criteria.tags_any),
        *all_of("label_pairs", label_pairs(criteria.labels)),
        *after("create_time", criteria.created_after),
        *before("create_time", criteria.created_before),
    ]
    if criteria.worked is not None:
        where.append(Equals("worked", criteria.worked))
    if criteria.min_success_rate > 0:
        where.append(Range("success_rate", gte=criteria.min_success_rate))
    if criteria.min_usage_count > 0:
        where.append(Range("usage_count", gte=criteria.min_usage_count))
    if criteria.pinned is not None:
        where.append(Equals("pinned", criteria.pinned))
    return where
