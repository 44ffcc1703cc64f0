"""The probability that a hit is for the same task as the query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from lot_grpc.domain.match_probability import CALIBRATED_MODEL, Likeness, match_probability
from lot_grpc.domain.search_text import SearchText
from lot_grpc.lexical.contrast import contrast
from lot_grpc.ports import Embedder

V = TypeVar("V")


def likeness_of(query: str, text: SearchText, similarity: float) -> Likeness:
    """The evidence that a text is for the same task as a query, including their cosine."""
    compared = contrast(query, text.text)
    return Likeness(
        similarity, compared.likeness, compared.differ, compared.opposed, bare=text.bare
    )


def match_of(embedder: Embedder, query: str, text: SearchText, similarity: float) -> float | None:
    """The probability, or None for a model on whose cosines it was not calibrated."""
    if embedder.contract.model != CALIBRATED_MODEL:
        return None
    return match_probability(likeness_of(query, text, similarity))


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
