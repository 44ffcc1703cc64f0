"""Error solutions that were found, with their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.error_solution import ErrorSolution
from lot_grpc.domain.error_text.differences import Compared, Difference, compared
from lot_grpc.domain.error_text.signature import Signature
from lot_grpc.domain.fusion import Relevance
from lot_grpc.domain.ids import ResourceRef
from lot_grpc.domain.ranking import ScorePart
from lot_grpc.domain.retrieval import RetrievedItem

_SIMILARITY: Final = 0.4
_AGREEMENT: Final = 0.59
RELIABILITY: Final = 0.01
"""Weights in the score for the same signature: a different name outweighs any similarity. The
weight of reliability also applies to similar errors; it only decides between near-equal ones."""


@dataclass(frozen=True, slots=True)
class ErrorFound:
    """A solution that was found. ``exact``: it has the same signature.

    ``parts`` add up to the score, if requested. ``differences`` are for the same signature only;
    ``match``, the probability that it fixes the error, is for others only, and None if unknown.
    """

    error_solution: ErrorSolution
    exact: bool
    score: float
    similarity: float
    parts: tuple[ScorePart, ...]
    differences: tuple[Difference, ...] = ()
    match: float | None = None

    @property
    def resource(self) -> ResourceRef:
        """Its kind and id."""
        return ResourceRef(ResourceKind.ERROR_SOLUTION, self.error_solution.error_solution_id)

    def item(self) -> RetrievedItem:
        """It as a retrieval records it, without the solution."""
        one = self.error_solution
        version = (one.create_time, one.update_time, one.revision)
        matches = () if self.match is None else (self.match,)
        return RetrievedItem(
            self.resource, version, self.score, self.similarity, matches, self.parts
        )


def compare_names(given: Signature, stored: Signature) -> Compared:
    """How two errors with equivalent signatures differ."""
    same = given.text == stored.text
    return compared(*((one.left_out if same else one.names) for one in (given, stored)))


def without_reliability(one: Relevance, by: Compared) -> float:
    """The score for the same error, without reliability."""
    return one.similarity * _SIMILARITY + by.agreement * _AGREEMENT


def same_error_found(one: Relevance, solution: ErrorSolution, by: Compared) -> ErrorFound:
    """A hit for the same error."""
    parts = (
        ScorePart("similarity", one.similarity, _SIMILARITY),
        ScorePart("agreement", by.agreement, _AGREEMENT),
        _reliability(solution),
    )
    return ErrorFound(solution, True, _score(parts), one.similarity, parts, by.differences)


def similar_error_found(one: Relevance, solution: ErrorSolution) -> ErrorFound:
    """A hit for another error."""
    parts = (*one.parts, _reliability(solution))
    return ErrorFound(solution, False, _score(parts), one.similarity, parts)


def best_hits(found: Sequence[ErrorFound], limit: int) -> list[ErrorFound]:
    """The best ``limit``, best first."""
    return sorted(found, key=sort_key)[:limit]


def without_parts(hits: Sequence[ErrorFound]) -> list[ErrorFound]:
    """The hits without the parts of their scores, which only an explanation shows."""
    return [replace(hit, parts=()) for hit in hits]


def sort_key(hit: ErrorFound) -> tuple[bool, float, float, int, str]:
    """The same signature first, then best first; of equals the more successful, then the newer."""
    solution = hit.error_solution
    return (
        not hit.exact,
        -hit.score,
        -solution.outcomes.success_rate,
        -solution.create_time,
        solution.error_solution_id,
    )


def _reliability(solution: ErrorSolution) -> ScorePart:
    return ScorePart("reliability", solution.outcomes.reliability, RELIABILITY)


def _score(parts: Sequence[ScorePart]) -> float:
    return sum(part.value * part.weight for part in parts)
