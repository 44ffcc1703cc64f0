"""Outcomes are counted once, whatever dies in between: see ``services.outcomes.facts``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lot_grpc.domain.errors import ContentionError
from lot_grpc.domain.outcomes import Outcomes
from lot_grpc.ports import Equals, Record, VectorStore
from lot_grpc.services.outcomes.cells import Cells
from lot_grpc.services.outcomes.facts import Facts
from lot_grpc.services.outcomes.history import History
from lot_grpc.services.records.outcomes import OutcomeFact
from lot_grpc.services.records.patterns import (
    STATS_REVISION,
    UNSETTLED,
    outcomes_from_payload,
    outcomes_payload,
)
from lot_grpc.services.time_slice import pause_before_retry

_TRIES = 50


class OutcomeCounter:
    """Takes outcomes into the counters of what was used; those of patterns into cells as well."""

    def __init__(self, store: VectorStore, facts: Facts, cells: Cells, history: History) -> None:
        self._store = store
        self._facts = facts
        self._cells = cells
        self._history = history

    async def count(
        self,
        facts: Sequence[OutcomeFact],
        known: Mapping[str, Record] | None = None,
        vector: Sequence[float] | None = None,
    ) -> dict[str, Record]:
        """Count each fact once; return the records of what was used, by its id.

        Facts that were written before (a retry) are not written again. What is gone is left out.
        ``known`` are the records by id, as read before this call, and ``vector`` is that of the
        facts' query; they spare a read. Raises ContentionError; the facts
        are kept then, and counted by the next retry or sweep.
        """
        fresh = await self._facts.insert(facts)
        counted = {}
        for fact in facts:
            new = fact.point in fresh
            thing_id = fact.counted_by.id
            before = (known or {}).get(thing_id) if new else None
            record = await self._count(fact, before, vector, new=new)
            if record is not None:
                counted[thing_id] = record
        return counted

    async def roll_forward(self, before: int, limit: int = 1000) -> int:
        """Count what was written before ``before`` and never settled; return how many facts."""
        late = await self._facts.unsettled(before, limit)
        for fact in late:
            await self._count(fact)
        return len(late)

    async def _count(
        self,
        fact: OutcomeFact,
        before: Record | None = None,
        vector: Sequence[float] | None = None,
        *,
        new: bool = False,
    ) -> Record | None:
        record = await self._take_in(fact, before)
        if record is not None and fact.query and fact.pattern_id:
            await self._cells.take_in(fact, vector, new=new)
        await self._facts.settle(fact)
        return record

    async def _take_in(self, fact: OutcomeFact, before: Record | None) -> Record | None:
        """Count a fact if it is not counted; return the record of what was used, if it is there.

        ``before`` is the record as it was before the fact was written. Who counted the fact since
        has changed its revision.
        """
        thing, fact_point = fact.counted_by, fact.point
        collection, point = thing.collection, thing.point
        for attempt in range(_TRIES):
            record = before if attempt == 0 else None
            requested = [] if record else [fact_point]
            if record is None:
                record = (await self._store.get(collection, fact.namespace, [point])).get(point)
            if record is None:
                return None
            unsettled: list[str] = record.payload[UNSETTLED]
            settled = await self._facts.settled(fact.namespace, [*requested, *unsettled])
            if fact_point in unsettled or fact_point in settled:
                return record
            revision = record.payload[STATS_REVISION]
            changed = {
                **outcomes_payload(await self._counted(fact, record)),
                STATS_REVISION: revision + 1,
                UNSETTLED: [*(one for one in unsettled if one not in settled), fact_point],
            }
            if await self._store.update(
                collection,
                fact.namespace,
                point,
                set=changed,
                when=[Equals(STATS_REVISION, revision)],
            ):
                return Record(point, fact.namespace, {**record.payload, **changed})
            await pause_before_retry(attempt)
        raise ContentionError(thing.resource_kind, thing.id)

    async def _counted(self, fact: OutcomeFact, record: Record) -> Outcomes:
        """The counters with the fact."""
        outcomes = outcomes_from_payload(record.payload)
        if fact.correction is not None:
            behind = await self._history.behind(fact, record.payload[UNSETTLED])
            return outcomes.correct(fact.correction, fact.outcome, behind.values)
        if fact.outcome is None:
            return outcomes
        return outcomes.record(fact.outcome, fact.create_time, fact.duration)
