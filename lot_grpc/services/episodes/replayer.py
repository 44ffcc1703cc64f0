"""Replays an episode: its events in order, at any speed, and live if it is still running.

The next batch is read from the store while the current one is sent, and no further ahead, so that a
slow reader holds at most two. Waits are timed by the monotonic clock from the first event on, so
that if one wait runs late, the next is shorter.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from lot_grpc.domain.episode import EpisodeEvent
from lot_grpc.domain.replay import Schedule
from lot_grpc.ports import VectorStore
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.episodes.event_reader import EventReader
from lot_grpc.services.episodes.notifier import EpisodeNotifier, EpisodeWatch

_FEWEST, _MOST = 16, 128
"""Events per read, at first and at most: 2 to 3 ms of the event loop. Twice as many are 8 % faster
(measured), and block other calls twice as long."""

_BATCH_BYTES = 1 << 20
"""Data in a batch: an event may have 256 KiB, and many clients accept at most 4 MiB a response."""

_LOOK_SECONDS = 1.0
"""Longest wait between two events without checking that the episode still exists."""


class Timer(Protocol):
    """The time source of a replay."""

    def now(self) -> float:
        """Seconds since an arbitrary time; never decreases."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class MonotonicTimer:
    """The machine's monotonic clock."""

    def now(self) -> float:
        """The monotonic clock."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait without blocking other calls."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Replay:
    """A request to replay, with the fields of ``lot.v1.ReplayEpisodeRequest``."""

    after: int = 0
    speed: float = 0.0
    follow: bool = False


@dataclass(frozen=True, slots=True)
class ReplayBatch:
    """Events in order, possibly none. ``caught_up``: none are left to read, but more may come."""

    events: list[EpisodeEvent]
    caught_up: bool = False


class EpisodeReplayer:
    """Replays episodes."""

    def __init__(
        self,
        store: VectorStore,
        log: EventLog,
        notifier: EpisodeNotifier,
        timer: Timer | None = None,
    ) -> None:
        self._store = store
        self._log = log
        self._notifier = notifier
        self._timer = timer or MonotonicTimer()

    async def replay(
        self, namespace: str, episode_id: str, requested: Replay
    ) -> AsyncGenerator[ReplayBatch]:
        """Batches of events, each when its events are due.

        Without ``follow`` it ends after the last stored event; with it, when the episode has ended
        or is abandoned. Raises EpisodeNotFoundError, also if the episode is deleted in the
        meantime. Must be closed (``aclosing``), which leaves nothing running.
        """
        reader = EventReader(self._store, self._log, namespace, episode_id, requested.after)
        paced = _Paced(self._timer, reader, requested.speed)
        async with aclosing(self._pieces(reader, follow=requested.follow)) as pieces:
            ahead = _read_ahead(pieces)
            try:
                while (piece := await ahead) is not None:
                    ahead = _read_ahead(pieces)
                    async with aclosing(paced.batches(piece)) as batches:
                        async for batch in batches:
                            yield batch
            finally:
                ahead.cancel()
                await asyncio.gather(ahead, return_exceptions=True)

    async def _pieces(self, reader: EventReader, *, follow: bool) -> AsyncGenerator[ReplayBatch]:
        """The stored events, and with ``follow`` those to come."""
        if follow:
            with self._notifier.watch(reader.namespace, reader.episode_id) as watch:
                async with aclosing(_following(reader, watch)) as pieces:
                    async for piece in pieces:
                        yield piece
            return
        limit = _FEWEST
        while events := await reader.next(limit):
            yield ReplayBatch(events)
            limit = _next_limit(limit, events)


def _read_ahead(pieces: AsyncIterator[ReplayBatch]) -> asyncio.Task[ReplayBatch | None]:
    async def read() -> ReplayBatch | None:
        return await anext(pieces, None)

    return asyncio.create_task(read())


async def _following(reader: EventReader, watch: EpisodeWatch) -> AsyncGenerator[ReplayBatch]:
    """Batches until the episode is over. One is empty if there is nothing to send at first."""
    limit, announced = _FEWEST, False
    while True:
        watch.clear()
        was_over = reader.over
        events = await reader.next(limit)
        short = len(events) < limit
        caught_up = short and not reader.over
        if events or (caught_up and not announced):
            yield ReplayBatch(events, caught_up)
        if reader.complete or (short and was_over):
            return
        if caught_up:
            await watch.wait(reader.after, reader.stage)
        limit, announced = _next_limit(limit, events), caught_up


def _next_limit(limit: int, events: Sequence[EpisodeEvent]) -> int:
    """Twice as many after a full read, but no more than fill a batch if of the same size."""
    target = min(2 * limit, _MOST) if len(events) == limit else _FEWEST
    size = sum(len(event.data or b"") for event in events)
    return max(1, min(target, _BATCH_BYTES * len(events) // size)) if size else target


class _Paced:
    """Splits what was read into batches, each event when it is due."""

    def __init__(self, timer: Timer, reader: EventReader, speed: float) -> None:
        self._timer = timer
        self._reader = reader
        self._speed = speed
        self._schedule = Schedule(speed)
        self._start: float | None = None

    async def batches(self, piece: ReplayBatch) -> AsyncGenerator[ReplayBatch]:
        """Events that are due together, at most ``_BATCH_BYTES`` of data unless it is only one."""
        part: list[EpisodeEvent] = []
        size = 0
        for event in piece.events:
            more = len(event.data or b"")
            if part and (size + more > _BATCH_BYTES or self._seconds_left(event) > 0):
                yield ReplayBatch(part)
                part, size = [], 0
            await self._until_due(event)
            part.append(event)
            size += more
        if part or piece.caught_up:
            yield ReplayBatch(part, piece.caught_up)

    def _seconds_left(self, event: EpisodeEvent) -> float:
        if not self._speed:
            return 0.0
        now = self._timer.now()
        if self._start is None:
            self._start = now
        return self._start + self._schedule.due(event.event_time or 0) - now

    async def _until_due(self, event: EpisodeEvent) -> None:
        while (left := self._seconds_left(event)) > 0:
            await self._timer.sleep(min(left, _LOOK_SECONDS))
            if left >= _LOOK_SECONDS:
                await self._reader.look()
