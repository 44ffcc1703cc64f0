"""Background work: finishing what a dead process began, and deleting what expired.

Everything here may be done at any time, by several processes, and repeatedly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from lot_grpc.domain.errors import NamespaceClearingError
from lot_grpc.ports import EXPIRES_KEY, IdIn, Range
from lot_grpc.services.maintenance import Maintenance, Swept, Task
from lot_grpc.services.operations import FinishExpiry, ResourcesByKind
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.time_slice import TimeSlice
from lot_grpc.telemetry.metrics import HOUSEKEEPING_FAILURES, HOUSEKEEPING_RUNS
from lot_grpc.work import begin_work, follow_up

T = TypeVar("T")

_LEAVE_TO_OTHERS = 15 * 60 * 1_000_000
"""How long a shared store's unfinished work is left to the process that began it, in
microseconds: longer than any call may take."""

_EVER = 2**62
"""Later than any time; what is dated in the future, since a clock stepped back, counts too."""

_BATCH = 100
"""Of what is read or deleted at once: with vectors it holds the embedded store 7 ms."""

_FLUSH_SECONDS = 1.0
_SWEEP_SECONDS = 60.0

Report = Callable[[str, Exception], None]

ReportSweep = Callable[[str, str, Mapping[str, int]], None]
"""Receives the name of a sweep, the namespace, and counts by kind."""


@dataclass(frozen=True, slots=True)
class Finished:
    """What was finished, as counts by recovery, for the log."""

    counts: Mapping[str, int]

    @property
    def anything(self) -> bool:
        """Whether anything was finished."""
        return any(self.counts.values())


class Housekeeping:
    """Runs recoveries, sweeps and periodic tasks."""

    def __init__(
        self, runtime: Runtime, resources: ResourcesByKind, maintenance: Maintenance
    ) -> None:
        """All tasks pass the gate together with the calls."""
        self._store = runtime.store
        self._time = runtime.time
        self._retrievals = runtime.retrievals
        self._gate = runtime.gate
        self._resources = resources
        self._maintenance = maintenance

    async def roll_forward(self, *, starting: bool = False) -> Finished:
        """Finish what was begun and left. At the start of an own store: all of it.

        What is of a namespace that another process is clearing just now is left to that.
        """
        all_of_it = starting and self._store.exclusive
        before = _EVER if all_of_it else self._time.now() - _LEAVE_TO_OTHERS
        counts = {}
        for name, recover in self._maintenance.recoveries.items():
            with follow_up():
                counts[name] = await _unless_clearing(recover, before)
        return Finished(counts)

    async def drop_expired(self) -> int:
        """Delete expired records and what belongs to them; return how many."""
        expiring = self._resources.registry.expiring
        return sum([await self._drop_expired_of(collection) for collection in expiring])

    async def _drop_expired_of(self, collection: str) -> int:
        """In small batches; what belongs to a record goes first, so a crash leaves no orphans."""
        dropped, time_slice = 0, TimeSlice()
        finish = self._resources.finish_expiry(collection)
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
        """Flush recalls every second, sweep every minute, and run periodic tasks, until cancelled.

        Each runs in a task of its own, so that a long sweep does not delay the others. A failure is
        reported, once while it stays the same, and the work is retried. ``report_sweep`` is called
        with the results of sweeps.
        """
        async with asyncio.TaskGroup() as group:
            every: dict[str, tuple[float, Task]] = {
                "flush": (_FLUSH_SECONDS, self._retrievals.flush),
                "sweep": (_SWEEP_SECONDS, lambda: self.sweep(report_sweep)),
                **self._maintenance.periodic,
            }
            for name, (seconds, task) in every.items():
                group.create_task(self._every(name, seconds, task, report))

    async def sweep(self, report_sweep: ReportSweep) -> None:
        """Finish interrupted work, delete what expired, and run all sweeps, once."""
        await self.roll_forward()
        await _unless_clearing(self.drop_expired)
        for sweep in self._maintenance.sweeps.values():
            done = await _unless_clearing(sweep)
            if isinstance(done, Swept):
                for namespace, counts in done.counts.items():
                    report_sweep(done.what, namespace, counts)
        await self._store.flush()

    async def _every(self, name: str, seconds: float, task: Task, report: Report) -> None:
        known = ""
        for counter in (HOUSEKEEPING_RUNS, HOUSEKEEPING_FAILURES):
            counter.add(name, by=0)
        while True:
            await asyncio.sleep(seconds)
            begin_work()
            try:
                async with self._gate.together():
                    await task()
                known = ""
                HOUSEKEEPING_RUNS.add(name)
            except Exception as error:  # noqa: BLE001 - it must go on, whatever happens once
                HOUSEKEEPING_FAILURES.add(name)
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
