"""Counting outcomes exactly once, even across crashes: see ``kernel.apply_once``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lot_grpc.domain.outcomes import OutcomeStats
from lot_grpc.kernel.apply_once import Target, apply_once
from lot_grpc.kernel.compare_and_set import update_as_read
from lot_grpc.ports import Record, VectorStore
from lot_grpc.services.outcomes.context_stats import ContextStatsStore
from lot_grpc.services.outcomes.history import History
from lot_grpc.services.outcomes.pending_outcomes import PendingOutcomes
from lot_grpc.services.records.outcomes import RecordedOutcome, outcome_from_record
from lot_grpc.services.records.patterns import (
    PENDING,
    STATS_REVISION,
    outcomes_from_payload,
    outcomes_payload,
)


class OutcomeCounter:
    """Adds outcomes to the counters of what was used; for patterns, to context stats too."""

    def __init__(
        self,
        store: VectorStore,
        pending: PendingOutcomes,
        context_stats: ContextStatsStore,
        history: History,
    ) -> None:
        self._store = store
        self._pending = pending
        self._context_stats = context_stats
        self._history = history

    async def count(
        self,
        recorded_outcomes: Sequence[RecordedOutcome],
        known: Mapping[str, Record] | None = None,
        vector: Sequence[float] | None = None,
    ) -> dict[str, Record]:
        """Count each outcome once; return the records of what was used, by id.

        Outcomes that were written before (a retry) are not written again. Deleted records are
        left out. ``known`` are the records by id, as read before this call, and ``vector`` is that
        of the outcomes' query; both save a read. Raises ContentionError; the outcomes are stored
        then, and counted by the next retry or sweep.
        """
        fresh = await self._pending.insert(recorded_outcomes, (known or {}).values())
        counted = {}
        for recorded in recorded_outcomes:
            new = recorded.point in fresh
            thing_id = recorded.counted_by.id
            before = (known or {}).get(thing_id) if new else None
            record = await self._count(recorded, before, vector, new=new)
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
        recorded: RecordedOutcome,
        before: Record | None = None,
        vector: Sequence[float] | None = None,
        *,
        new: bool = False,
    ) -> Record | None:
        async def count(record: Record | None, pending: list[str]) -> Record | None:
            if record is None:
                return None
            counters = outcomes_payload(await self._counted(recorded, record))
            changed = {**counters, PENDING: pending}
            return await update_as_read(self._store, collection, record, changed, STATS_REVISION)

        thing, collection = recorded.counted_by, recorded.counted_by.collection
        target = Target(
            thing.resource_kind, thing.id, recorded.namespace, collection, thing.point, PENDING
        )
        record = await apply_once(
            self._store, self._pending, recorded.point, target, count, unapplied=before
        )
        if record is not None and recorded.query and recorded.pattern_id:
            await self._context_stats.take_in(recorded, vector, new=new)
        await self._pending.applied(recorded)
        return record

    async def _counted(self, recorded: RecordedOutcome, record: Record) -> OutcomeStats:
        """The counters including the outcome."""
        outcomes = outcomes_from_payload(record.payload)
        if recorded.correction is not None:
            behind = await self._history.behind(recorded, record.payload[PENDING])
            return outcomes.correct(recorded.correction, recorded.outcome, behind.values)
        if recorded.outcome is None:
            return outcomes
        return outcomes.record(recorded.outcome, recorded.create_time, recorded.duration)
