"""Patterns worth asking for feedback on: much used, with an undecided confidence."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

from lot_grpc.domain.feedback import teaching_score
from lot_grpc.domain.pattern import Pattern, PatternContent
from lot_grpc.domain.query import PatternFilter
from lot_grpc.ports import Condition, IdIn, Not, Order, Range, Record, VectorStore
from lot_grpc.services.patterns.patterns import Patterns
from lot_grpc.services.records.collections import PATTERNS, SORT_KEY
from lot_grpc.services.records.fields import all_conditions
from lot_grpc.services.records.origin import recalled
from lot_grpc.services.records.patterns import pattern_filters
from lot_grpc.services.time_slice import TimeSlice

MOST_EXAMINED = 1000
"""How many patterns are looked at, the most used first."""

_BATCH = 100
_MOST_USED_FIRST = Order("usage_count", descending=True)
_KEYS = ("pattern_id", "usage_count", "confidence", SORT_KEY)
_UNSAID = PatternContent("").confidence
"""The confidence of a record that leaves it out."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Patterns with their scores, best first.

    ``examined`` were looked at; ``exact`` is whether none beyond them can score higher than one
    that is given.
    """

    patterns: list[tuple[Pattern, float]]
    examined: int
    exact: bool


@dataclass(slots=True)
class _Best:
    """The best so far, by score, then use, then age. A heap with the worst first."""

    limit: int
    heap: list[tuple[float, int, int, str]]

    def add(self, record: Record) -> None:
        payload = record.payload
        usage: int = payload["usage_count"]
        score = teaching_score(usage, payload.get("confidence", _UNSAID))
        if score <= 0:
            return
        heapq.heappush(self.heap, (score, usage, payload[SORT_KEY], payload["pattern_id"]))
        if len(self.heap) > self.limit:
            heapq.heappop(self.heap)

    def worst(self) -> float:
        """The score that another one must exceed; 0 while there is room."""
        return self.heap[0][0] if len(self.heap) == self.limit else 0.0


class FeedbackCandidates:
    """Finds the patterns most worth asking for feedback on.

    Patterns come most used first, and a score is at most the root of the use. So once enough are
    found that score above the root of the next one's use, no further one is read.
    """

    def __init__(self, store: VectorStore, patterns: Patterns) -> None:
        self._store = store
        self._patterns = patterns

    async def find(self, namespace: str, criteria: PatternFilter, limit: int) -> Candidates:
        """The best ``limit`` patterns that match the filter."""
        criteria_met = all_conditions(recalled(pattern_filters(criteria)))
        where = [*criteria_met, Range("usage_count", gte=1)]
        best = _Best(limit, [])
        examined, exact = 0, True
        bound = math.inf
        edge: int | None = None
        seen: tuple[str, ...] = ()
        time_slice = TimeSlice()
        while examined < MOST_EXAMINED and bound >= best.worst():
            records = await self._batch(namespace, where, edge, seen)
            for record in records:
                best.add(record)
            examined += len(records)
            if len(records) < _BATCH:
                bound = 0.0
                break
            last: int = records[-1].payload["usage_count"]
            at_edge = tuple(r.id for r in records if r.payload["usage_count"] == last)
            seen = at_edge + (seen if last == edge else ())
            edge, bound = last, math.sqrt(last)
            await time_slice.give_way()
        exact = bound <= best.worst()
        scores = {one[3]: one[0] for one in sorted(best.heap, reverse=True)}
        found = await self._patterns.get_many(namespace, tuple(scores))
        return Candidates([(one, scores[one.pattern_id]) for one in found], examined, exact)

    async def _batch(
        self, namespace: str, where: list[Condition], edge: int | None, seen: tuple[str, ...]
    ) -> list[Record]:
        behind: list[Condition] = []
        if edge is not None:
            behind = [Range("usage_count", lte=edge), Not(IdIn(seen))]
        return await self._store.scroll(
            PATTERNS,
            namespace,
            [*where, *behind],
            limit=_BATCH,
            order=_MOST_USED_FIRST,
            payload=_KEYS,
        )
