"""Facts and aggregates: outcomes are counted once, whatever dies in between.

There is no transaction over points of different collections, so (a) the outcome is written as a
fact, insert-only and unsettled; (b) a compare-and-set of the pattern's counters adds the numbers
and the fact's id to ``unsettled_ids``, in the same point; (c) the fact is marked settled; (d) the
id is dropped by the next count of that pattern. From wherever it stopped, doing it again is safe:
a fact whose id stands in ``unsettled_ids`` is counted already, and an id is dropped only after its
fact was settled.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence

from lot_grpc.domain.errors import ContentionError
from lot_grpc.ports import Equals, Record, VectorStore
from lot_grpc.services.moments import Moments
from lot_grpc.services.records.collections import OUTCOMES, PATTERNS
from lot_grpc.services.records.outcomes import (
    SETTLED,
    OutcomeFact,
    outcome_from_record,
    outcome_record,
)
from lot_grpc.services.records.patterns import (
    STATS_REVISION,
    UNSETTLED,
    outcomes_from_payload,
    outcomes_payload,
    pattern_point,
)

_TRIES = 50
_LONGEST_PAUSE = 0.2
_REMEMBERED = 10_000


async def pause_before_retry(attempt: int) -> None:
    """Wait a little, at random and longer each time, before the next compare-and-set."""
    await asyncio.sleep(random.uniform(0, min(_LONGEST_PAUSE, 0.001 * 2**attempt)))  # noqa: S311


class Counting:
    """Takes outcomes into the counters of patterns."""

    def __init__(self, store: VectorStore, moments: Moments) -> None:
        self._store = store
        self._moments = moments
        self._settled_here: dict[str, None] = {}
        """Facts that this process settled lately: they stay so, and need no look."""

    async def count(
        self, facts: Sequence[OutcomeFact], known: Mapping[str, Record] | None = None
    ) -> dict[str, Record]:
        """Count each fact once; return the patterns' records by pattern id.

        Facts that were written before (a retry) are not written again. A pattern that is gone is
        left out. ``known`` are the patterns' records by pattern id, as read before this call; they
        spare a read. Raises ContentionError; the facts are kept then, and counted by the next
        retry or sweep.
        """
        fresh = await self._store.insert(
            OUTCOMES, [outcome_record(fact, self._moments.sort_key()) for fact in facts]
        )
        counted = {}
        for fact in facts:
            before = (known or {}).get(fact.pattern_id) if fact.point in fresh else None
            record = await self._take_in(fact, before)
            if record is not None:
                counted[fact.pattern_id] = record
            await self._settle(fact)
        return counted

    async def roll_forward(self, before: int, limit: int = 1000) -> int:
        """Count what was written before ``before`` and never settled; return how many facts."""
        rows = await self._store.scroll(OUTCOMES, None, [Equals(SETTLED, False)], limit=limit)
        late = [row for row in rows if row.payload["create_time"] <= before]
        for row in late:
            fact = outcome_from_record(row)
            await self._take_in(fact)
            await self._settle(fact)
        return len(late)

    async def _settle(self, fact: OutcomeFact) -> None:
        point = fact.point
        await self._store.update(OUTCOMES, fact.namespace, point, set={SETTLED: True})
        self._settled_here[point] = None
        if len(self._settled_here) > _REMEMBERED:
            del self._settled_here[next(iter(self._settled_here))]

    async def _take_in(self, fact: OutcomeFact, before: Record | None = None) -> Record | None:
        """Count a fact if it is not counted; return the pattern's record, None without one.

        ``before`` is the record as it was before the fact was written. Who counted the fact since
        has changed its revision.
        """
        point, fact_point = pattern_point(fact.namespace, fact.pattern_id), fact.point
        for attempt in range(_TRIES):
            record = before if attempt == 0 else None
            asked = [] if record else [fact_point]
            if record is None:
                record = (await self._store.get(PATTERNS, fact.namespace, [point])).get(point)
            if record is None:
                return None
            unsettled: list[str] = record.payload[UNSETTLED]
            # Read after the counters: an id that was dropped since changes their revision.
            settled = await self._settled(fact.namespace, [*asked, *unsettled])
            if fact_point in unsettled or fact_point in settled:
                return record
            outcomes = outcomes_from_payload(record.payload).record(
                fact.outcome, fact.create_time, fact.duration
            )
            revision = record.payload[STATS_REVISION]
            changed = {
                **outcomes_payload(outcomes),
                STATS_REVISION: revision + 1,
                UNSETTLED: [*(one for one in unsettled if one not in settled), fact_point],
            }
            if await self._store.update(
                PATTERNS,
                fact.namespace,
                point,
                set=changed,
                when=[Equals(STATS_REVISION, revision)],
            ):
                return Record(point, fact.namespace, {**record.payload, **changed})
            await pause_before_retry(attempt)
        raise ContentionError("pattern", fact.pattern_id)

    async def _settled(self, namespace: str, points: Sequence[str]) -> set[str]:
        """Those of the facts that are settled, or gone with their time."""
        settled = {point for point in points if point in self._settled_here}
        if others := [point for point in points if point not in settled]:
            facts = await self._store.get(OUTCOMES, namespace, others)
            settled |= {p for p in others if p not in facts or facts[p].payload[SETTLED]}
        return settled
