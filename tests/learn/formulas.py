"""The formulas of ranking alone as a learner: the domain's functions over the pools, no services.

For what the services do not offer (outcomes counted by pattern, whatever was asked; the formula of
another system) and for what would take long through them (the trade-off over the margin). Nothing
fades with time here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lot_grpc.domain.context_stats import SAME_QUERY, ContextStats, Fading, kernel, least_cosine
from lot_grpc.domain.outcomes import wilson_lower_bound
from lot_grpc.domain.query import Ranking
from lot_grpc.domain.ranking import POOL_FACTOR, Candidate, RankingWeights, contenders, rank
from tests.learn.served import LIMIT, Pools


class Memory(Protocol):
    """What is remembered of outcomes."""

    def record(self, query: int, pattern: int, value: float) -> None:
        """Take in an outcome."""

    def recall(self, query: int, patterns: Sequence[int]) -> NDArray[np.float64]:
        """A row for each pattern: successes and trials on a query, and those on others."""


@dataclass
class ByPattern:
    """Plain counts of a pattern, whatever was asked: what most systems keep."""

    counts: dict[int, tuple[float, float]] = field(default_factory=dict)

    def record(self, query: int, pattern: int, value: float) -> None:
        successes, trials = self.counts.get(pattern, (0.0, 0.0))
        self.counts[pattern] = successes + value, trials + 1.0

    def recall(self, query: int, patterns: Sequence[int]) -> NDArray[np.float64]:
        nothing = (0.0, 0.0)
        return np.array([(*self.counts.get(pattern, nothing), *nothing) for pattern in patterns])


class ByCell:
    """Cells, as recall reads them."""

    def __init__(self, pools: Pools, weights: RankingWeights) -> None:
        vectors = np.asarray(pools.vectors, dtype=np.float64)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        least, width = least_cosine(weights.kernel_width), weights.kernel_width
        rows = [(near := np.flatnonzero(row >= least), row[near]) for row in vectors @ vectors.T]
        self._rows = [
            (near, row >= SAME_QUERY, np.array([kernel(one, width) for one in row]))
            for near, row in rows
        ]
        self._fading = Fading(0.0, weights.fading.decay)
        self._context_stats: dict[tuple[int, int], ContextStats] = {}
        most = max((hit.pattern for hits in pools.hits for hit in hits), default=0)
        self._sums = np.zeros((2, len(rows), 1 + most))
        """Successes and trials, by query and pattern."""

    def record(self, query: int, pattern: int, value: float) -> None:
        stats = self._context_stats.get((pattern, query), ContextStats()).record(
            value, 0, self._fading
        )
        self._context_stats[pattern, query] = stats
        self._sums[:, query, pattern] = stats.successes, stats.trials

    def recall(self, query: int, patterns: Sequence[int]) -> NDArray[np.float64]:
        near, same, row = self._rows[query]
        successes, trials = self._sums[:, near[:, None], patterns]
        own, other = row * same, row * ~same
        shares = 1.0 / np.maximum(1.0, trials)
        there = other @ (successes * shares), other @ (trials * shares)
        return np.stack([own @ successes, own @ trials, *there], axis=1)


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
        known = self._memory.recall(query, [hit.pattern for hit in hits[:near]])
        # Of those without outcomes or importance only the most relevant can come first. Numbered by
        # their place, so that equal ones stay as the pool has them, whatever ranks.
        plain = [
            place
            for place, row in enumerate(known)
            if not row[1] and not row[3] and hits[place].importance is None
        ]
        later = set(plain[1:])
        candidates = [
            replace(Candidate(f"{place:06}", hit.relevance, *row), importance=hit.importance)
            for place, (hit, row) in enumerate(zip(hits[:near], known.tolist(), strict=True))
            if place not in later
        ]
        ranked = rank(candidates, self._ranking, self._weights, 1, seed)
        return hits[int(ranked[0].candidate.id)].pattern if ranked else None

    async def took(self, query: int, seed: int) -> int | None:
        return await self.first(query, seed)

    async def tell(self, query: int, pattern: int, *, success: bool) -> None:
        self._memory.record(query, pattern, float(success))


WILSON_WEIGHT = 0.25
"""What the lower bound of its success rate adds to the relevance of a pattern that always works."""


class WilsonBoost:
    """A ``Learner``: relevance plus a share of the Wilson lower bound of a pattern's success rate.

    The formula of rust-self-learning-memory (its ADR-082, 2026): counts by pattern, whatever was
    asked, over three times as many candidates as hits, without a margin. What was never tried gets
    nothing, and so does what never worked.
    """

    def __init__(self, pools: Pools, memory: Memory) -> None:
        self._pools = pools
        self._memory = memory

    async def first(self, query: int, seed: int) -> int | None:
        hits = self._pools.hits[query][: POOL_FACTOR * LIMIT]
        known = self._memory.recall(query, [hit.pattern for hit in hits])
        scores = [
            hit.relevance + WILSON_WEIGHT * wilson_lower_bound(*row[:2])
            for hit, row in zip(hits, known, strict=True)
        ]
        return hits[scores.index(max(scores))].pattern if hits else None

    async def took(self, query: int, seed: int) -> int | None:
        return await self.first(query, seed)

    async def tell(self, query: int, pattern: int, *, success: bool) -> None:
        self._memory.record(query, pattern, float(success))
