"""Outcomes are counted once, whatever dies in between: see ``kernel.apply_once``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lot_grpc.domain.outcomes import Outcomes
from lot_grpc.kernel.apply_once import Target, apply_once
from lot_grpc.kernel.compare_and_set import update_as_read
from lot_grpc.ports import Record, VectorStore
from lot_grpc.services.outcomes.cells import Cells
from lot_grpc.services.outcomes.history import History
from lot_grpc.services.outcomes.pending_outcomes import PendingOutcomes
from lot_grpc.services.records.outcomes import OutcomeFact, outcome_from_record
from lot_grpc.services.records.patterns import (
    STATS_REVISION,
    UNSETTLED,
    outcomes_from_payload,
    outcomes_payload,
)


class OutcomeCounter:
    """Takes outcomes into the counters of what was used; those of patterns into cells as well."""

    def __init__(
        self, store: VectorStore, pending: PendingOutcomes, cells: Cells, history: History
    ) -> None:
        self._store = store
        self._pending = pending
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
        fresh = await self._pending.insert(facts, (known or {}).values())
        counted = {}
        for fact in facts:
            new = fact.point in fresh
            thing_id = fact.counted_by.id
            before = (known or {}).get(thing_id) if new else None
            record = await self._count(fact, before, vector, new=new)
            if record is not None:
                counted[thing_id] = record
        return counted

    async def roll_forward(self, before: int) -> int:
        """Count what was written before a time and is pending; return how many outcomes."""

        async def count(row: Record) -> None:
            await self._count(outcome_from_record(row))

        return await self._pending.recover(before, count)

    async def _count(
        self,
        fact: OutcomeFact,
        before: Record | None = None,
        vector: Sequence[float] | None = None,
        *,
        new: bool = False,
    ) -> Record | None:
        async def count(record: Record | None, pending: list[str]) -> Record | None:
            if record is None:
                return None
            counters = outcomes_payload(await self._counted(fact, record))
            changed = {**counters, UNSETTLED: pending}
            return await update_as_read(self._store, collection, record, changed, STATS_REVISION)

        thing, collection = fact.counted_by, fact.counted_by.collection
        target = Target(
            thing.resource_kind, thing.id, fact.namespace, collection, thing.point, UNSETTLED
        )
        record = await apply_once(
            self._store, self._pending, fact.point, target, count, unapplied=before
        )
        if record is not None and fact.query and fact.pattern_id:
            await self._cells.take_in(fact, vector, new=new)
        await self._pending.applied(fact)
        return record

    async def _counted(self, fact: OutcomeFact, record: Record) -> Outcomes:
        """The counters with the fact."""
        outcomes = outcomes_from_payload(record.payload)
        if fact.correction is not None:
            behind = await self._history.behind(fact, record.payload[UNSETTLED])
            return outcomes.correct(fact.correction, fact.outcome, behind.values)
        if fact.outcome is None:
            return outcomes
        return outcomes.record(fact.outcome, fact.create_time, fact.duration)
