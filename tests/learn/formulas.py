"""The formulas of ranking alone as a learner: the domain's functions over the pools, no services.

For what the services do not offer (outcomes counted by pattern, whatever was asked) and for what
would take long through them (the trade-off over the gate). Nothing fades with time here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lot_grpc.domain.cells import Cell, Fading, kernel, least_cosine
from lot_grpc.domain.query import Ranking
from lot_grpc.domain.ranking import Candidate, RankingWeights, contenders, rank
from tests.learn.served import Pools


class Memory(Protocol):
    """What is remembered of outcomes."""

    def record(self, query: int, pattern: int, value: float) -> None:
        """Take in an outcome."""

    def recall(self, query: int, pattern: int) -> tuple[float, float]:
        """Successes and trials of a pattern that count for a query."""


@dataclass
class ByPattern:
    """Plain counts of a pattern, whatever was asked: what most systems keep."""

    counts: dict[int, tuple[float, float]] = field(default_factory=dict)

    def record(self, query: int, pattern: int, value: float) -> None:
        successes, trials = self.recall(query, pattern)
        self.counts[pattern] = successes + value, trials + 1.0

    def recall(self, query: int, pattern: int) -> tuple[float, float]:
        return self.counts.get(pattern, (0.0, 0.0))


@dataclass
class ByCell:
    """Cells, as recall reads them. ``cosines``: of each query with each."""

    cosines: NDArray[np.float64]
    weights: RankingWeights
    cells: dict[int, dict[int, Cell]] = field(default_factory=dict)

    def record(self, query: int, pattern: int, value: float) -> None:
        mine = self.cells.setdefault(pattern, {})
        fading = Fading(0.0, self.weights.fading.kept)
        mine[query] = mine.get(query, Cell()).record(value, 0, fading)

    def recall(self, query: int, pattern: int) -> tuple[float, float]:
        least = least_cosine(self.weights.kernel_width)
        successes = trials = 0.0
        for other, cell in self.cells.get(pattern, {}).items():
            cosine = float(self.cosines[query, other])
            if cosine >= least:
                weight = kernel(cosine, self.weights.kernel_width)
                successes += weight * cell.successes
                trials += weight * cell.trials
        return successes, trials


class Formulas:
    """A ``Learner``."""

    def __init__(
        self, pools: Pools, memory: Memory, weights: RankingWeights, ranking: Ranking
    ) -> None:
        self._pools = pools
        self._memory = memory
        self._weights = weights
        self._ranking = ranking

    async def first(self, query: int, seed: int) -> int | None:
        hits = self._pools.hits[query]
        near = contenders([hit.relevance for hit in hits], self._ranking, self._weights, 1)
        # Numbered by their place, so that equal ones stay as the pool has them, whatever ranks.
        candidates = [
            Candidate(f"{place:06}", hit.relevance, *self._memory.recall(query, hit.pattern))
            for place, hit in enumerate(hits[:near])
        ]
        ranked = rank(candidates, self._ranking, self._weights, 1, seed)
        return hits[int(ranked[0].candidate.id)].pattern if ranked else None

    async def took(self, query: int, seed: int) -> int | None:
        return await self.first(query, seed)

    async def tell(self, query: int, pattern: int, *, success: bool) -> None:
        self._memory.record(query, pattern, float(success))


def cosines(pools: Pools) -> NDArray[np.float64]:
    """Of every query with every other."""
    vectors = np.asarray(pools.vectors, dtype=np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found: NDArray[np.float64] = vectors @ vectors.T
    return found
