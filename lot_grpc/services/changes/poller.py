"""One reader of the feed for all watchers in this process, while there are any."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from lot_grpc.domain.change import Positions
from lot_grpc.services.changes.feed import Change, Feed, short_of
from lot_grpc.services.changes.replicas import SILENT, ReplicaRegistry
from lot_grpc.services.changes.sequencer import ChangeSequencer
from lot_grpc.services.time_source import TimeSource

_MAX_CHANGES = 10_000
"""Changes held in memory; a follower further behind reads the store."""

_REST_SECONDS = 0.05
"""Time between two polls, so that a few reads find many writes."""


@dataclass(frozen=True, slots=True)
class PolledChange:
    """A change as the poller found it. ``since``: where it stood before."""

    change: Change
    since: Positions


class Poller:
    """Finds changes and wakes the watchers."""

    def __init__(
        self,
        feed: Feed,
        sequencer: ChangeSequencer,
        replicas: ReplicaRegistry,
        time_source: TimeSource,
        *,
        exclusive: bool,
        interval: float,
    ) -> None:
        """``interval``: seconds between polls for changes by other processes."""
        self.feed = feed
        self._sequencer = sequencer
        self._replicas = replicas
        self._time = time_source
        self._exclusive = exclusive
        self._interval = interval
        self._changes: deque[PolledChange] = deque(maxlen=_MAX_CHANGES)
        self._followers: dict[asyncio.Event, Collection[str]] = {}
        self._task: asyncio.Task[None] | None = None
        self._failed: Exception | None = None
        self.positions: Positions = {}
        """All up to here was found."""
        self.count = 0
        """Of changes that were found, ever."""

    async def ends(self) -> dict[str, int]:
        """Up to which number the changes of each process have settled."""
        await self._sequencer.open()
        own = self._sequencer.writer_id
        ends: dict[str, int] = {}
        if not self._exclusive:
            before = self._time.now() - SILENT
            for one in await self._replicas.all():
                ends[one.writer_id] = one.watermark if one.seen_time > before else one.reserved
        ends[own] = self._sequencer.watermark
        return ends

    @asynccontextmanager
    async def following(self, resource_kinds: Collection[str]) -> AsyncIterator[asyncio.Event]:
        """An event that is set when there are changes; the poller runs while it is held.

        Changes of ``resource_kinds`` are found, and those of the kinds of other followers.
        """
        wake = asyncio.Event()
        self._followers[wake] = resource_kinds
        try:
            await self._start()
            yield wake
        finally:
            self._followers.pop(wake, None)
            if not self._followers:
                await self._stop()

    def behind(self, number: int) -> list[PolledChange] | None:
        """The changes found after the first ``number``; None if they are no longer kept.

        Raises the error with which the poller failed.
        """
        if self._failed is not None:
            raise self._failed
        missing = self.count - number
        if missing > len(self._changes):
            return None
        start = len(self._changes) - missing
        return [self._changes[at] for at in range(start, len(self._changes))] if missing else []

    def wake(self) -> None:
        """Wake all watchers."""
        for follower in self._followers:
            follower.set()

    @property
    def watched(self) -> bool:
        """Whether there is a watcher in this process."""
        return bool(self._followers)

    def _followed(self) -> frozenset[str]:
        """The kinds that are followed."""
        return frozenset().union(*self._followers.values())

    async def _start(self) -> None:
        if self._task is not None and not self._task.done():
            return
        ends = await self.ends()
        if self._task is not None and not self._task.done():
            return  # another was first
        self._failed = None
        self.positions = ends
        self._changes.clear()
        self._task = asyncio.create_task(self._run())

    async def _stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        try:
            while True:
                await self._look()
                await asyncio.sleep(_REST_SECONDS)
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if self._exclusive else self._interval):
                        await self._sequencer.writes_ended.wait()
                self._sequencer.writes_ended.clear()
        except Exception as error:  # noqa: BLE001 - those who watch are told, and come again
            self._failed = error
            self.wake()

    async def _look(self) -> None:
        ends = await self.ends()
        known = self.positions
        touched = None
        if self._exclusive:
            own = known.get(self._sequencer.writer_id, 0)
            touched = [name for name, last in self._sequencer.touched.items() if last > own]
        while True:
            kinds = self._followed()
            stretch = await self.feed.read(
                self.positions, ends, resource_kinds=kinds, collections=touched
            )
            if not kinds.issuperset(self._followed()):
                continue  # a new follower must not miss what was just skipped
            found = [PolledChange(change, known) for change in stretch.changes]
            self._changes.extend(found)
            self.count += len(found)
            moved = self.positions != stretch.reached
            self.positions = stretch.reached
            if moved:
                self.wake()
            if not short_of(stretch.reached, ends):
                return
