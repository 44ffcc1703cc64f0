"""Change numbers: each write of a watched record takes one, settled when the write has ended.

Numbers are microseconds of the clock, increased where necessary so that they always grow; so they
also give the time. A number used twice would hide a change, so numbers are reserved in the store, a
little ahead of their use.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from lot_grpc.domain.ids import new_id
from lot_grpc.services.changes.replicas import SILENT, Replica, ReplicaRegistry
from lot_grpc.services.time_source import TimeSource
from lot_grpc.telemetry.metrics import FEED_LAG

_AHEAD = 2_000_000
_LATE = 30.0
"""How long a write that failed on a shared store may still arrive there, in seconds."""


@dataclass(frozen=True, slots=True)
class ReservedNumbers:
    """Numbers from ``first`` to ``last`` for a write that is under way."""

    writer_id: str
    first: int
    last: int


class ChangeSequencer:
    """Assigns change numbers, and tracks up to which one all writes have settled."""

    def __init__(
        self, replicas: ReplicaRegistry, time_source: TimeSource, *, exclusive: bool
    ) -> None:
        self._replicas = replicas
        self._time = time_source
        self._exclusive = exclusive
        self._initializing = asyncio.Lock()
        self._writer_id = ""
        self._last = 0
        self._reserved = 0
        self._under_way: dict[ReservedNumbers, None] = {}  # in the order of their numbers
        self._published = Replica("", 0, 0, 0)
        self.touched: dict[str, int] = {}
        """The last number that was given in a collection, by this process."""
        self.writes_ended = asyncio.Event()
        """Set when a write has settled; the waiting task clears it."""
        FEED_LAG.follow(self, ChangeSequencer.lag_seconds)

    @property
    def writer_id(self) -> str:
        """The id of this process; empty until its first write or until its row was needed."""
        return self._writer_id

    @property
    def watermark(self) -> int:
        """All changes of this process up to this number are stored, or never will be."""
        for taken in self._under_way:
            return taken.first - 1
        return self._last

    def lag_seconds(self) -> float:
        """Age of the oldest write under way, which later changes wait for; 0: there is none."""
        first = next(iter(self._under_way), None)
        return 0.0 if first is None else max(0, self._time.now() - first.first) / 1_000_000

    async def open(self) -> None:
        """Register this process as a writer, at the first write at the latest."""
        if not self._writer_id:
            async with self._initializing:
                if not self._writer_id:
                    await self._enter()

    async def take(self, collection: str, count: int) -> ReservedNumbers:
        """Reserve numbers for a write of this many records. Return them with ``settle``."""
        now = self._time.now()
        while (
            not self._writer_id
            or max(now, self._last + 1) + count > self._reserved
            or self._silent(now)
        ):
            await self._reserve(count)
            now = self._time.now()
        first = max(now, self._last + 1)
        self._last = first + count - 1
        taken = ReservedNumbers(self._writer_id, first, self._last)
        self._under_way[taken] = None
        self.touched[collection] = self._last
        return taken

    def settle(self, taken: ReservedNumbers, *, sure: bool = True) -> None:
        """The write has ended. Not ``sure``: it failed, and may still arrive on a shared store."""
        if sure or self._exclusive:
            self._under_way.pop(taken, None)
            self.writes_ended.set()
        else:
            asyncio.get_running_loop().call_later(_LATE, self.settle, taken)

    def pass_by(self, seq: int) -> None:
        """Give no number up to this one: what another process wrote comes before."""
        self._last = max(self._last, seq)

    async def publish(self) -> None:
        """Say on a shared store that this process lives, and up to where it has settled."""
        if self._exclusive or not self._writer_id:
            return
        now = self._time.now()
        moved = self._published.watermark != self.watermark
        if moved or now - self._published.seen_time > SILENT // 12:
            async with self._initializing:
                await self._write(self._reserved, now)

    async def _reserve(self, count: int) -> None:
        async with self._initializing:
            now = self._time.now()
            if not self._writer_id or self._silent(now):
                await self._enter()
                now = self._time.now()
            highest = max(now, self._last + 1) + count
            if highest > self._reserved:
                await self._write(highest + _AHEAD, now)

    def _silent(self, now: int) -> bool:
        """Whether others may think that this process is gone, as when its machine slept."""
        return not self._exclusive and now - self._published.seen_time > SILENT // 2

    async def _enter(self) -> None:
        known = await self._replicas.find_own() if self._exclusive else None
        now = self._time.now()
        self._last = max(self._last, known.reserved if known else now)
        self._under_way = {}
        self._writer_id = known.writer_id if known else new_id("w")
        await self._write(max(now, self._last) + _AHEAD, now)

    async def _write(self, reserved: int, now: int) -> None:
        replica = Replica(self._writer_id, self.watermark, reserved, now)
        await self._replicas.put(replica, own=self._exclusive)
        self._published = replica
        self._reserved = reserved
