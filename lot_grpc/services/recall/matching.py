"""The probability that a hit fits the query, from its text and the model's cosine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from lot_grpc.domain.error_found import ErrorFound
from lot_grpc.domain.errors import MatchUnavailableError
from lot_grpc.domain.match_probability import (
    CALIBRATED_MODEL,
    ERROR_WEIGHTS,
    JUDGED,
    WEIGHTS,
    Likeness,
    match_probability,
)
from lot_grpc.domain.search_text import SearchText, joined
from lot_grpc.lexical.contrast import contrast
from lot_grpc.ports import Embedder

V = TypeVar("V")


def likeness_of(query: str, text: SearchText, similarity: float) -> Likeness:
    """The evidence that a text is for the same task as a query, including their cosine."""
    compared = contrast(query, text.text)
    return Likeness(
        similarity, compared.likeness, compared.differ, compared.opposed, bare=text.bare
    )


def match_of(
    embedder: Embedder,
    query: str,
    text: SearchText,
    similarity: float,
    weights: Sequence[float] = WEIGHTS,
) -> float | None:
    """The probability, or None for a model on whose cosines it was not calibrated."""
    if embedder.contract.model != CALIBRATED_MODEL:
        return None
    return match_probability(likeness_of(query, text, similarity), weights)


def rated(embedder: Embedder, query: str, hits: Sequence[ErrorFound]) -> list[ErrorFound]:
    """The hits; those with another signature have the probability that they fix this error."""
    return [
        hit
        if hit.exact
        else replace(
            hit, match=match_of(embedder, query, error_text(hit), hit.similarity, ERROR_WEIGHTS)
        )
        for hit in hits
    ]


def error_text(hit: ErrorFound) -> SearchText:
    """The error that was solved, without its solution."""
    content = hit.error_solution.content
    return SearchText(joined(content.error_type, content.error_message))


def judged(embedder: Embedder, min_match: float | None, limit: int) -> int:
    """How many of the best have to be ranked so that those that fit fill a page of ``limit``.

    Raises MatchUnavailableError if a minimum is given for a model that was not calibrated.
    """
    model = embedder.contract.model
    if min_match is not None and model != CALIBRATED_MODEL:
        raise MatchUnavailableError(model)
    return max(limit, JUDGED) if min_match else limit


class Lazy(Generic[V]):
    """A value that is computed when it is first used."""

    __slots__ = ("_compute", "values")

    def __init__(self, compute: Callable[[], V]) -> None:
        self._compute = compute
        self.values: list[V] = []
        """Holds the value once it is computed, and nothing of what it is computed from."""

    def __call__(self) -> V:
        """The value."""
        if not self.values:
            self.values.append(self._compute())
        return self.values[0]
