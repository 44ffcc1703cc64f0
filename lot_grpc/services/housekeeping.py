"""What is done beside the calls: finishing what a dead process began, and dropping what lapsed.

Everything here may be done at any time, by several processes, and again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lot_grpc.domain.errors import NamespaceClearingError
from lot_grpc.kernel.idempotency import DONE, REQUEST_KIND
from lot_grpc.kernel.intents import recover
from lot_grpc.kernel.tombstones import Tombstone, Tombstones
from lot_grpc.ports import EXPIRES_KEY, AllOf, Equals, IdIn, Range, Record, VectorStore
from lot_grpc.services.episodes.episodes import RECORD_METHOD
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.outcomes.counting import OutcomeCounter
from lot_grpc.services.recall.retrievals import Retrievals
from lot_grpc.services.records.collections import (
    EPISODES,
    ERROR_SOLUTIONS,
    MEMORIES,
    PATTERNS,
    REQUESTS,
    RETRIEVALS,
    SELECTIONS,
)
from lot_grpc.services.records.episodes import episode_point
from lot_grpc.services.reindex.gate import ModelGate
from lot_grpc.services.time_slice import TimeSlice
from lot_grpc.services.time_source import TimeSource
from lot_grpc.work import begin_work

T = TypeVar("T")

_LEAVE_TO_OTHERS = 15 * 60 * 1_000_000
"""How long a shared store's unfinished work is left to the process that began it, in
microseconds: longer than any call may take."""

_EVER = 2**62
"""Later than any time; what is dated in the future, since a clock stepped back, counts too."""

EXPIRING = (REQUESTS, RETRIEVALS, SELECTIONS, PATTERNS, MEMORIES, ERROR_SOLUTIONS)
"""Whatever can expire. What hangs on it is named in ``finish_expiry``."""

_BATCH = 100
"""Of what is read or deleted at once: with vectors it holds the embedded store 7 ms."""

_FLUSH_SECONDS = 1.0
_SWEEP_SECONDS = 60.0

Finish = Callable[[Tombstone], Awaitable[bool]]
FinishExpiry = Callable[[Record], Awaitable[None]]
"""Deletes what hangs on an expired record."""
FinishBefore = Callable[[int], Awaitable[int]]
"""Finishes what was begun before a time and left; says how many."""
Sweep = Callable[[], Awaitable[object]]
Report = Callable[[str, Exception], None]


ReportSweep = Callable[[str, str, Mapping[str, int]], None]
"""Is told what a sweep did, in which namespace, and how much of it by kind."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did, for the log: how much by namespace and kind. Empty where nothing was."""

    what: str
    counts: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Finished:
    """How much was finished, for the log."""

    outcomes: int
    deletes: int
    recordings: int
    others: int = 0

    @property
    def anything(self) -> bool:
        """Whether there was anything to finish."""
        return bool(self.outcomes or self.deletes or self.recordings or self.others)


class Housekeeping:
    """Rolls forward and sweeps."""

    def __init__(
        self,
        store: VectorStore,
        time_source: TimeSource,
        counting: OutcomeCounter,
        tombstones: Tombstones,
        log: EventLog,
        retrievals: Retrievals,
        finish_delete: Mapping[str, Finish],
        finish_expiry: Mapping[str, FinishExpiry],
        finish_clears: FinishBefore,
        recoveries: Sequence[FinishBefore] = (),
        sweeps: Sequence[Sweep] = (),
        periodic_tasks: Sequence[tuple[float, Sweep]] = (),
        *,
        gate: ModelGate,
    ) -> None:
        """``finish_expiry`` deletes what hangs on an expired record, by its collection.

        ``finish_clears`` goes before all others; ``recoveries`` roll forward what is no outcome;
        ``sweeps`` are done every minute and ``periodic_tasks`` every so many seconds. All pass the
        ``gate`` together with the calls.
        """
        self._store = store
        self._time = time_source
        self._counting = counting
        self._tombstones = tombstones
        self._log = log
        self._retrievals = retrievals
        self._finish_delete = finish_delete
        self._finish_expiry = finish_expiry
        self._finish_clears = finish_clears
        self._recoveries = recoveries
        self._sweeps = sweeps
        self._periodic_tasks = periodic_tasks
        self._gate = gate

    async def roll_forward(self, *, starting: bool = False) -> Finished:
        """Finish what was begun and left. At the start of an own store: all of it.

        What is of a namespace that another process is clearing just now is left to that.
        """
        all_of_it = starting and self._store.exclusive
        before = _EVER if all_of_it else self._time.now() - _LEAVE_TO_OTHERS
        clear_registry = await self._finish_clears(before)
        outcomes = await _unless_clearing(self._counting.roll_forward, before)
        deletes = await _unless_clearing(self._finish_deletes, before)
        recordings = await _unless_clearing(self._drop_recordings, before)
        others = [await _unless_clearing(finish, before) for finish in self._recoveries]
        return Finished(outcomes, deletes, recordings, clear_registry + sum(others))

    async def _finish_deletes(self, before: int) -> int:
        async def finish(stone: Tombstone) -> None:
            await self._finish_delete[stone.resource_kind](stone)

        return await self._tombstones.recover(before, finish)

    async def _drop_recordings(self, before: int) -> int:
        dropped = 0

        async def drop(row: Record) -> None:
            nonlocal dropped
            if row.payload["method"] == RECORD_METHOD:
                episode_id = row.payload["plan"]["episode_id"]
                dropped += await self._drop_recording(row.namespace, row.id, episode_id)

        open_requests = AllOf((Equals("kind", REQUEST_KIND), Equals(DONE, False)))
        keys = ("method", "plan", "begin_time")
        given = (self._store, REQUESTS, open_requests, drop)
        await recover(*given, before=before, begun="begin_time", payload=keys)
        return dropped

    async def _drop_recording(self, namespace: str, request: str, episode_id: str) -> bool:
        """Delete the events of a RecordEpisode that never got to its episode."""
        point = episode_point(namespace, episode_id)
        dropped = False
        if not await self._store.get(EPISODES, namespace, [point]):
            last = await self._log.last_sequence(namespace, episode_id)
            dropped = bool(last and await self._log.remove(namespace, episode_id, 1, last))
            await self._store.update(REQUESTS, namespace, request, set={"kind": "dropped"})
        return dropped

    async def drop_expired(self) -> int:
        """Delete what lapsed and what hangs on it; return how many."""
        return sum([await self._drop_expired_of(collection) for collection in EXPIRING])

    async def _drop_expired_of(self, collection: str) -> int:
        """In small batches: what hangs on a record goes before it, so that a death leaves none."""
        dropped, time_slice = 0, TimeSlice()
        finish = self._finish_expiry.get(collection)
        while True:
            if finish is None:
                batch = await self._store.delete_expired(collection, limit=_BATCH)
            else:
                batch = await self._drop_some(collection, finish, time_slice)
            if not batch:
                return dropped
            dropped += batch
            await time_slice.give_way()

    async def _drop_some(self, collection: str, finish: FinishExpiry, time_slice: TimeSlice) -> int:
        records = await self._store.expired(collection, limit=_BATCH)
        for record in records:
            await finish(record)
            await time_slice.give_way()
        ids = tuple(record.id for record in records)
        if ids:
            still = Range(EXPIRES_KEY, lte=self._time.now())
            await self._store.delete(collection, None, [IdIn(ids), still])
        return len(records)

    async def run(self, report: Report, report_sweep: ReportSweep) -> None:
        """Write recalls behind every second, renew leases, sweep every minute, until cancelled.

        Apart, so that a long sweep holds up neither. A failure is reported, once while it stays
        the same, and all is tried again. ``report_sweep`` is told what sweeps did.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._every(_FLUSH_SECONDS, self._retrievals.flush, report))
            group.create_task(self._every(_SWEEP_SECONDS, lambda: self.sweep(report_sweep), report))
            for seconds, periodic in self._periodic_tasks:
                group.create_task(self._every(seconds, periodic, report))

    async def sweep(self, report_sweep: ReportSweep) -> None:
        """Finish what was left, drop what lapsed, and do all sweeps, once."""
        await self.roll_forward()
        await _unless_clearing(self.drop_expired)
        for sweep in self._sweeps:
            done = await _unless_clearing(sweep)
            if isinstance(done, Swept):
                for namespace, counts in done.counts.items():
                    report_sweep(done.what, namespace, counts)
        await self._store.flush()

    async def _every(
        self, seconds: float, task: Callable[[], Awaitable[object]], report: Report
    ) -> None:
        known = ""
        while True:
            await asyncio.sleep(seconds)
            begin_work()
            try:
                async with self._gate.together():
                    await task()
                known = ""
            except Exception as error:  # noqa: BLE001 - it must go on, whatever happens once
                if known != type(error).__name__:
                    report("housekeeping failed, it will be tried again", error)
                known = type(error).__name__


async def _unless_clearing(task: Callable[..., Awaitable[T]], *given: int) -> T | int:
    """What the task answers; 0 if it met a namespace that is being cleared.

    What it left undone is done by the next sweep.
    """
    try:
        return await task(*given)
    except NamespaceClearingError:
        return 0
