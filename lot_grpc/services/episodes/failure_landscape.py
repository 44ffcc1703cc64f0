"""Error vectors whose dot product is the similarity in meaning of two errors.

An error is embedded in plain words (``domain.failures.wording``). What all errors have in common,
the mean of the kinds of failures, is subtracted, since it would otherwise dominate the vector (Mu
and Viswanath, 2018). The vector also has the probabilities that the error is of each kind
(``domain.failures.kinds``) or of none, so that the dot product is the weighted sum of the words'
cosine and the probability that both are of the same kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lot_grpc.domain.extraction.digest import ErrorSeen
from lot_grpc.domain.failures.kinds import KINDS
from lot_grpc.domain.failures.wording import plain_words
from lot_grpc.ports import Embedder
from lot_grpc.services.time_slice import TimeSlice

Floats = NDArray[np.float32]

KINDS_WEIGHT: Final = 0.5
"""Weight of the kinds; the words have the rest."""

_SHARPNESS: Final = 0.08
"""A kind whose similarity is lower than another's by this much is 1/e as likely."""

_NO_KIND: Final = 0.28
"""An error with this similarity to a kind is as likely of that kind as of none."""

_BATCH = 64
_TINY = 1e-9


class FailureLandscape:
    """Makes the vectors. Caches those of the kinds, which depend only on the model."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._kinds: tuple[Floats, Floats] | None = None

    async def vectors(self, words: Sequence[str]) -> Floats:
        """A vector for each error in plain words, in order; no rows if there are none."""
        if not words:
            return np.zeros((0, 0), dtype=np.float32)
        mean, kinds = await self._landmarks()
        return await asyncio.to_thread(_placed, await self._embedded(words), mean, kinds)

    async def _landmarks(self) -> tuple[Floats, Floats]:
        """The mean of all wordings of all kinds, and each one's difference from it."""
        if self._kinds is None:
            embedded = await self._embedded([telling for kind in KINDS for telling in kind])
            mean = embedded.mean(axis=0)
            self._kinds = mean, _unit(embedded - mean)
        return self._kinds

    async def _embedded(self, texts: Sequence[str]) -> Floats:
        rows: list[list[float]] = []
        for start in range(0, len(texts), _BATCH):
            embeddings = await self._embedder.embed_documents(texts[start : start + _BATCH])
            rows += [one.vector for one in embeddings]
        return np.array(rows, dtype=np.float32)


async def in_plain_words(errors: Sequence[ErrorSeen]) -> list[str]:
    """The text to embed for each error. Yields to other tasks."""
    words, time_slice = [], TimeSlice(rest=1.0)
    for error in errors:
        words.append(plain_words(error.type, error.message))
        await time_slice.give_way()
    return words


def _placed(embedded: Floats, mean: Floats, kinds: Floats) -> Floats:
    words = _unit(embedded - mean)
    starts = np.cumsum([0, *(len(kind) for kind in KINDS[:-1])])
    near = np.maximum.reduceat(words @ kinds.T, starts, axis=1)
    odds = np.exp((near - _NO_KIND) / _SHARPNESS)
    likely = odds / (1 + odds.sum(axis=1, keepdims=True))
    both = (np.sqrt(1 - KINDS_WEIGHT) * words, np.sqrt(KINDS_WEIGHT) * likely)
    return np.hstack(both).astype(np.float32)


def _unit(rows: Floats) -> Floats:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Floats = rows / np.maximum(lengths, _TINY)
    return unit
