"""Clearing namespaces: everything in them, or some kinds.

The clear is recorded (``clear_registry``), which stops all writes to the namespace; everything is
deleted in small batches; a mark is left among the tombstones, for the change feed; then writes are
allowed again. Whoever finds an unfinished clear, in any process, repeats it from the beginning:
deletes are idempotent, and the mark is made once. Streams that record into the namespace are ended,
and writes that wait for it are dropped.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import NamespaceClearingError
from lot_grpc.ports import Condition, IdIn, Not, Record
from lot_grpc.services.clearing.clear_registry import SILENT, Clear
from lot_grpc.services.episodes.active_streams import ActiveStreams
from lot_grpc.services.episodes.notifier import EpisodeNotifier
from lot_grpc.services.records.changes import GENERATION, clear_mark, clear_mark_point
from lot_grpc.services.records.collections import TOMBSTONES
from lot_grpc.services.resource_spec import RecordSet
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.time_slice import TimeSlice

_BATCH = 100
"""Records in one delete: with vectors they hold the embedded store 7 ms, 250 of them 14."""

_HOLD_SECONDS = 5.0
_LOST_SECONDS = SILENT / 1_000_000 / 2
"""Who could not say for so long that it is at work stops: another may be about to take over."""


@dataclass(slots=True)
class _ActiveClear:
    """A clear that this process carries out, and when it last renewed its hold."""

    clear: Clear
    since: float


class NamespaceClearer:
    """Clears namespaces, counts what a clear would delete, and finishes interrupted clears."""

    def __init__(
        self, runtime: Runtime, active_streams: ActiveStreams, notifier: EpisodeNotifier
    ) -> None:
        stack = runtime.stack
        self._store = stack.quotas  # beneath the guard
        self._time = runtime.time
        self._extent = stack.extent
        self._clear_registry = stack.clears
        self._sequencer = stack.sequencer
        self._active_streams = active_streams
        self._notifier = notifier
        self._retrievals = runtime.retrievals
        self._mine: set[str] = set()
        """Namespaces that this process is clearing."""

    async def count(self, namespace: str, resource_kinds: Sequence[str]) -> dict[str, int]:
        """The number of records that a clear would delete, by kind; zeros are omitted.

        Raises RequestInvalidError for kinds that are only cleared with others.
        """
        self._extent.check_clearable(resource_kinds)
        counts: Counter[str] = Counter()
        for resource_kind, part in self._extent.counted(resource_kinds):
            counts[resource_kind] += await self._store.count(part.collection, namespace, part.where)
            await asyncio.sleep(0)
        return dict(+counts)

    async def clear(self, namespace: str, resource_kinds: Sequence[str] = ()) -> dict[str, int]:
        """Delete what there is of the kinds, none: everything; say how much, as ``count`` does.

        Raises NamespaceClearingError while another clear is at work, and what ``count`` raises. Of
        one that fails half-way the rest is deleted by housekeeping, or by the next clear.
        """
        self._extent.check_clearable(resource_kinds)
        last = await self._clear_registry.of(namespace, fresh=True)
        if last is not None and last.at_work:
            await self._finish(last)
        with self._alone(namespace):
            return await self._carry_out(
                await self._clear_registry.begin(namespace, resource_kinds)
            )

    async def finish(self, _before: int) -> int:
        """Finish interrupted clears of any process; return how many."""
        return sum([await self._finish(clear) for clear in await self._clear_registry.at_work()])

    # --- inside -------------------------------------------------------------------------------

    async def _finish(self, clear: Clear) -> bool:
        """Finish a clear that no process is working on; return whether this call did."""
        silent = clear.seen_time <= self._time.now() - SILENT
        if clear.namespace in self._mine or not (self._store.exclusive or silent):
            return False
        with self._alone(clear.namespace):
            taken = await self._clear_registry.hold(clear)
            if taken is not None:
                await self._carry_out(taken)
            return taken is not None

    @contextmanager
    def _alone(self, namespace: str) -> Iterator[None]:
        """Allow one clear of a namespace in this process. Raises NamespaceClearingError."""
        if namespace in self._mine:
            raise NamespaceClearingError(namespace, "is being cleared")
        self._mine.add(namespace)
        try:
            yield
        finally:
            self._mine.discard(namespace)

    async def _carry_out(self, clear: Clear) -> dict[str, int]:
        hold = _ActiveClear(clear, time.monotonic())
        namespace = clear.namespace
        self._forget(clear)
        await self._end_streams(namespace)
        await self._clear_registry.drained(namespace)
        await self._end_streams(namespace)  # of calls that had begun to open one
        counts = await self.count(namespace, clear.resource_kinds)
        parts = self._extent.parts_of(clear.resource_kinds)
        while await self._delete(hold, parts):  # again, until nothing was found
            pass
        self._forget(clear)
        await self._mark(clear)
        # Before any process writes here again, so that watchers see the clear first.
        await self._sequencer.publish()
        self._notifier.notify_all(namespace)
        await self._clear_registry.end(hold.clear, self._sequencer.touched.get(TOMBSTONES, 0))
        return counts

    def _forget(self, clear: Clear) -> None:
        """Drop the retrievals that wait to be written, if they are cleared too."""
        if ResourceKind.RETRIEVAL in (clear.resource_kinds or (ResourceKind.RETRIEVAL,)):
            self._retrievals.forget(clear.namespace)

    async def _end_streams(self, namespace: str) -> None:
        """Stop the streams that record in the namespace, and wait for their current batches."""
        for writer in self._active_streams.open():
            if writer.namespace == namespace:
                writer.stop(NamespaceClearingError(namespace, "is being cleared"))
                async with self._active_streams.turn(namespace, writer.episode_id):
                    self._active_streams.leave(writer)

    async def _delete(self, hold: _ActiveClear, parts: Sequence[RecordSet]) -> int:
        clear, time_slice = hold.clear, TimeSlice()
        mark = Not(
            IdIn(
                tuple(
                    clear_mark_point(clear.namespace, resource_kind)
                    for resource_kind in _reported_kinds(clear)
                )
            )
        )
        total = 0
        for part in parts:
            where: list[Condition] = [
                *part.where,
                *([mark] if part.collection == TOMBSTONES else []),
            ]
            while True:
                await self._hold(hold)
                deleted = await self._store.delete(part.collection, clear.namespace, where, _BATCH)
                total += deleted
                await time_slice.give_way()
                if deleted < _BATCH:
                    break
        return total

    async def _hold(self, hold: _ActiveClear) -> None:
        """Say now and then that this process is at it. Raises NamespaceClearingError if it is not.

        No batch may come after another process took over and was done.
        """
        age = time.monotonic() - hold.since
        if self._store.exclusive or age < _HOLD_SECONDS:
            return
        held = await self._clear_registry.hold(hold.clear) if age < _LOST_SECONDS else None
        if held is None:
            raise NamespaceClearingError(hold.clear.namespace, "is being cleared by another server")
        hold.clear, hold.since = held, time.monotonic()

    async def _mark(self, clear: Clear) -> None:
        """Leave a mark for the feed, of each kind, unless this clear left it before."""
        for resource_kind in _reported_kinds(clear):
            point = clear_mark_point(clear.namespace, resource_kind)
            found = await self._store.get(TOMBSTONES, clear.namespace, [point])
            if point in found and found[point].payload[GENERATION] == clear.generation:
                continue
            payload = clear_mark(resource_kind, clear.generation, self._time.now())
            await self._store.put(TOMBSTONES, [Record(point, clear.namespace, payload)])


def _reported_kinds(clear: Clear) -> Sequence[str | None]:
    """The kinds to report; None is all."""
    return clear.resource_kinds or (None,)
