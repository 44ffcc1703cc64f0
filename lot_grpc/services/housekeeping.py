"""What is done beside the calls: finishing what a dead process began, and dropping what lapsed.

Everything here may be done at any time, by several processes, and again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from lot_grpc.ports import Equals, Record, VectorStore
from lot_grpc.services.episodes.episodes import RECORD_METHOD
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.ledger import REQUEST_KIND
from lot_grpc.services.moments import Moments
from lot_grpc.services.outcomes.counting import Counting
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
from lot_grpc.services.tombstones import Tombstone, Tombstones

_LEAVE_TO_OTHERS = 15 * 60 * 1_000_000
"""How long a shared store's unfinished work is left to the process that began it, in
microseconds: longer than any call may take."""

_EVER = 2**62
"""Later than any time; what is dated in the future, since a clock stepped back, counts too."""

_EXPIRING = (REQUESTS, RETRIEVALS, SELECTIONS, PATTERNS, MEMORIES, ERROR_SOLUTIONS)
_BATCH = 500
_EXPIRED_AT_ONCE = 100_000

_FLUSH_SECONDS = 1.0
_SWEEP_SECONDS = 60.0

Finish = Callable[[Tombstone], Awaitable[bool]]
FinishBefore = Callable[[int], Awaitable[int]]
"""Finishes what was begun before a time and left; says how many."""
Sweep = Callable[[], Awaitable[object]]
Report = Callable[[str, Exception], None]


Tell = Callable[[str, str, Mapping[str, int]], None]
"""Is told what a sweep did, in which namespace, and how much of it by noun."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did, for the log: how much by namespace and noun. Empty where nothing was."""

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
        moments: Moments,
        counting: Counting,
        tombstones: Tombstones,
        log: EventLog,
        retrievals: Retrievals,
        finish_delete: Mapping[str, Finish],
        finish_expiry: Mapping[str, Callable[[Record], Awaitable[None]]],
        finishers: Sequence[FinishBefore] = (),
        sweeps: Sequence[Sweep] = (),
        beats: Sequence[tuple[float, Sweep]] = (),
    ) -> None:
        """``finish_expiry`` deletes what hangs on an expired record, by its collection.

        ``finishers`` roll forward what is no outcome; ``sweeps`` are done every minute.

        ``beats`` are done every so many seconds.
        """
        self._store = store
        self._moments = moments
        self._counting = counting
        self._tombstones = tombstones
        self._log = log
        self._retrievals = retrievals
        self._finish_delete = finish_delete
        self._finish_expiry = finish_expiry
        self._finishers = finishers
        self._sweeps = sweeps
        self._beats = beats

    async def roll_forward(self, *, starting: bool = False) -> Finished:
        """Finish what was begun and left. At the start of an own store: all of it."""
        all_of_it = starting and self._store.exclusive
        before = _EVER if all_of_it else self._moments.now() - _LEAVE_TO_OTHERS
        outcomes = deletes = recordings = 0
        while batch := await self._counting.roll_forward(before, _BATCH):
            outcomes += batch
        for stone in await self._tombstones.unfinished():
            if stone.delete_time <= before:
                await self._finish_delete[stone.noun](stone)
                deletes += 1
        for namespace, point, episode_id in await self._recordings(before):
            recordings += await self._drop_recording(namespace, point, episode_id)
        others = sum([await finish(before) for finish in self._finishers])
        return Finished(outcomes, deletes, recordings, others)

    async def _recordings(self, before: int) -> list[tuple[str, str, str]]:
        rows = await self._store.scroll(
            REQUESTS,
            None,
            [Equals("kind", REQUEST_KIND), Equals("done", False)],
            limit=10_000,
            payload=("method", "plan", "begin_time"),
        )
        return [
            (row.namespace, row.id, row.payload["plan"]["episode_id"])
            for row in rows
            if row.payload["method"] == RECORD_METHOD and row.payload["begin_time"] <= before
        ]

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
        for collection, finish in self._finish_expiry.items():
            for record in await self._store.expired(collection, limit=_EXPIRED_AT_ONCE):
                await finish(record)
                await asyncio.sleep(0)
        return sum([await self._store.delete_expired(name) for name in _EXPIRING])

    async def run(self, report: Report, tell: Tell) -> None:
        """Write recalls behind every second, renew leases, sweep every minute, until cancelled.

        Apart, so that a long sweep holds up neither. A failure is reported, once while it stays
        the same, and all is tried again. ``tell`` is told what sweeps did.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._every(_FLUSH_SECONDS, self._retrievals.flush, report))
            group.create_task(self._every(_SWEEP_SECONDS, lambda: self.sweep(tell), report))
            for seconds, beat in self._beats:
                group.create_task(self._every(seconds, beat, report))

    async def sweep(self, tell: Tell) -> None:
        """Finish what was left, drop what lapsed, and do all sweeps, once."""
        await self.roll_forward()
        await self.drop_expired()
        for sweep in self._sweeps:
            done = await sweep()
            if isinstance(done, Swept):
                for namespace, counts in done.counts.items():
                    tell(done.what, namespace, counts)
        await self._store.flush()

    async def _every(
        self, seconds: float, task: Callable[[], Awaitable[object]], report: Report
    ) -> None:
        known = ""
        while True:
            await asyncio.sleep(seconds)
            try:
                await task()
                known = ""
            except Exception as error:  # noqa: BLE001 - it must go on, whatever happens once
                if known != type(error).__name__:
                    report("housekeeping failed, it will be tried again", error)
                known = type(error).__name__
