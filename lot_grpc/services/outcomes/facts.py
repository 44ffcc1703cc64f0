"""The log of outcomes: facts that aggregates take in, each once.

There is no transaction over points of different collections, so (a) the outcome is written as a
fact, insert-only and unsettled; (b) a compare-and-set of each aggregate adds the numbers and the
fact's id to ``unsettled_ids``, in the same point; (c) the fact is marked settled; (d) the id is
dropped by the next outcome that the aggregate takes in. From wherever it stopped, doing it again is
safe: a fact whose id stands in ``unsettled_ids`` is taken in already, and an id is dropped only
after its fact was settled. The aggregates are the counters of the pattern or of the error solution
(``counting``) and the cell of the pattern and the query (``cells``).
"""

from __future__ import annotations

from collections.abc import Sequence

from lot_grpc.ports import Condition, Equals, VectorStore
from lot_grpc.services.records.collections import OUTCOMES, PATTERN_LOGS
from lot_grpc.services.records.outcomes import (
    SETTLED,
    OutcomeFact,
    outcome_from_record,
    outcome_record,
)
from lot_grpc.services.time_source import TimeSource

_REMEMBERED = 10_000


async def forget_logs(store: VectorStore, namespace: str, where: Sequence[Condition]) -> None:
    """Delete what was recorded of a pattern and goes with it."""
    for collection in PATTERN_LOGS:
        await store.delete(collection, namespace, where)


class Facts:
    """The facts of all namespaces."""

    def __init__(self, store: VectorStore, time_source: TimeSource) -> None:
        self._store = store
        self._time = time_source
        self._settled_here: dict[str, None] = {}
        """Facts that this process settled lately: they stay so, and need no look."""

    async def insert(self, facts: Sequence[OutcomeFact]) -> set[str]:
        """Write those that are not there; return the points of those that this call wrote."""
        return await self._store.insert(
            OUTCOMES, [outcome_record(fact, self._time.sort_key()) for fact in facts]
        )

    async def settle(self, fact: OutcomeFact) -> None:
        """Mark a fact as taken in by all of its aggregates."""
        await self._store.update(OUTCOMES, fact.namespace, fact.point, set={SETTLED: True})
        self._settled_here[fact.point] = None
        if len(self._settled_here) > _REMEMBERED:
            del self._settled_here[next(iter(self._settled_here))]

    async def settled(self, namespace: str, points: Sequence[str]) -> set[str]:
        """Those of the facts that are settled, or gone with their time.

        Ask it after reading an aggregate: an id that was dropped since changes its revision.
        """
        settled = {point for point in points if point in self._settled_here}
        if others := [point for point in points if point not in settled]:
            facts = await self._store.get(OUTCOMES, namespace, others)
            settled |= {p for p in others if p not in facts or facts[p].payload[SETTLED]}
        return settled

    async def unsettled(self, before: int, limit: int) -> list[OutcomeFact]:
        """Facts that were written before ``before`` and never settled, in any namespace."""
        rows = await self._store.scroll(OUTCOMES, None, [Equals(SETTLED, False)], limit=limit)
        return [outcome_from_record(row) for row in rows if row.payload["create_time"] <= before]
