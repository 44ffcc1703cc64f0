"""Reads and deletes episodes with their events.

A delete is recorded first (``kernel.tombstones``); then the episode is deleted, which hides its
events; then the events, from last to first, so that those left by a crash can still be found by
number. A half-done delete is finished by a sweep, or before a new episode with the same id begins.
The episodes it used are counted before it is deleted (``reuse``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.episode import Episode, EpisodeEvent, EpisodeStatus
from lot_grpc.domain.errors import EpisodeNotFoundError, EpisodeStreamOpenError
from lot_grpc.domain.query import EpisodeFilter
from lot_grpc.kernel.compare_and_set import ConflictError, compare_and_set
from lot_grpc.kernel.idempotency import IdempotencyRecord
from lot_grpc.kernel.tombstones import DELETED_SINCE, Tombstone
from lot_grpc.ports import Record
from lot_grpc.services.episodes.active_streams import ActiveStreams
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.episodes.notifier import EpisodeNotifier
from lot_grpc.services.episodes.reuse import ReuseCounter
from lot_grpc.services.episodes.spec import EPISODE
from lot_grpc.services.operations import Resources
from lot_grpc.services.paging import Fits, Page, any_size, pieces
from lot_grpc.services.records.collections import EPISODES
from lot_grpc.services.records.episodes import (
    WRITER_EPOCH,
    WRITER_UNTIL,
    committed_prefix_of,
    episode_from_record,
    episode_point,
)
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.time_slice import TimeSlice

_AT_ONCE = 200


class Episodes(Resources[Episode, EpisodeFilter]):
    """The episodes of all namespaces."""

    def __init__(
        self,
        runtime: Runtime,
        log: EventLog,
        active_streams: ActiveStreams,
        reuse: ReuseCounter,
        notifier: EpisodeNotifier,
    ) -> None:
        super().__init__(EPISODE, runtime)
        self._log = log
        self._active_streams = active_streams
        self._reuse = reuse
        self._notifier = notifier

    # --- reading ------------------------------------------------------------------------------

    async def read(self, record: Record) -> Episode:
        """The episode of a record; while it runs, its events are counted."""
        episode = episode_from_record(record)
        if episode.status is not EpisodeStatus.RUNNING:
            return episode
        await asyncio.sleep(0)  # a page of running episodes must not block other calls
        writer = self._active_streams.current(record.namespace, episode.episode_id)
        known = writer.last if writer else 0
        committed = committed_prefix_of(record.payload)
        count = await self._log.last_sequence(
            record.namespace, episode.episode_id, known, committed
        )
        return replace(episode, event_count=count)

    async def list_events(
        self,
        namespace: str,
        episode_id: str,
        after: int,
        size: int,
        fits: Fits[EpisodeEvent] = any_size,
    ) -> Page[EpisodeEvent, int]:
        """A page of events in order; ``next`` is the number after which to continue.

        Raises EpisodeNotFoundError.
        """
        record = await self.read_record(namespace, episode_id)
        episode, committed = episode_from_record(record), committed_prefix_of(record.payload)
        found: list[EpisodeEvent] = []
        for limit in pieces(size):
            most = limit
            if episode.status.ended:  # later events are not part of the episode
                most = min(limit, max(0, episode.event_count - after))
            events = await self._log.read(namespace, episode_id, after, most, committed)
            for event in events:
                if len(found) == size or not fits(event):
                    return Page(found, after)
                found.append(event)
                after = event.sequence
            if len(events) < limit:
                break
        return Page(found, None)

    # --- deleting -----------------------------------------------------------------------------

    async def delete_with_events(self, namespace: str, episode_id: str) -> int:
        """Delete an episode, recorded or not, and end its stream; return how many events it had.

        Raises EpisodeNotFoundError.
        """

        async def attempt() -> int:
            record = await self.read_record(namespace, episode_id)
            events = await self._delete_counting(record, self.spec.unchanged)
            if events is None:
                raise ConflictError
            return events

        return await compare_and_set(ResourceKind.EPISODE, episode_id, attempt)

    async def finish_delete(self, stone: Tombstone) -> bool:
        """Carry out a recorded delete; False if the episode has changed since."""
        return await self._finish(stone) is not None

    async def finish_open_delete(self, namespace: str, episode_id: str) -> int:
        """Finish a delete of this id that was left half done.

        Returns the epoch that follows those of the deleted episode's writers; 0 if there was none.
        """
        stone = await self._tombstones.find(namespace, ResourceKind.EPISODE, episode_id)
        if stone is None:
            return 0
        if not stone.done:
            await self._finish(stone)
        return stone.unchanged.get(WRITER_EPOCH, 0) + 1

    async def refuse_repeat(self, entry: IdempotencyRecord, episode_id: str) -> None:
        """Refuse a repeat whose episode was deleted since: one with its id is another episode.

        Raises EpisodeNotFoundError.
        """
        if entry.first:
            return
        await self.finish_open_delete(entry.namespace, episode_id)
        record = await self.find_record(entry.namespace, episode_id)
        if await self._tombstones.deleted_since(entry, ResourceKind.EPISODE, episode_id, record):
            raise EpisodeNotFoundError(entry.namespace, episode_id, DELETED_SINCE)

    async def _delete(self, record: Record, unchanged: Sequence[str]) -> bool:
        return await self._delete_counting(record, unchanged) is not None

    async def _delete_counting(self, record: Record, unchanged: Sequence[str]) -> int | None:
        """The number of events deleted; None if the episode has changed and is kept."""
        namespace, episode_id = record.namespace, record.payload["episode_id"]
        async with self._active_streams.turn(namespace, episode_id):
            await self._reuse.count_of(record)
            stone = await self._tombstones.begin(
                ResourceKind.EPISODE, episode_id, record, unchanged
            )
            deleted = await self._finish(stone)
            writer = self._active_streams.current(namespace, episode_id)
            if deleted is not None and writer is not None:
                writer.stop(EpisodeNotFoundError(namespace, episode_id, "it was deleted"))
            return deleted

    async def _finish(self, stone: Tombstone) -> int | None:
        events: int | None = None

        async def remove_events(left: Record | None) -> None:
            nonlocal events
            self._notifier.notify(stone.namespace, stone.id)
            events = await self._remove_events(stone)
            await self._drop_dependents(stone, left)

        point = episode_point(stone.namespace, stone.id)
        await self._tombstones.carry_out(stone, EPISODES, point, remove_events)
        return events

    async def _remove_events(self, stone: Tombstone) -> int:
        """Delete the events, last first, but not those of a new episode with the same id."""
        last = await self._log.last_sequence(stone.namespace, stone.id)
        removed = 0
        time_slice = TimeSlice()
        while last > 0:
            first = max(1, last - _AT_ONCE + 1)
            removed += await self._log.remove(
                stone.namespace, stone.id, first, last, recorded_until=stone.delete_time
            )
            last = first - 1
            await time_slice.give_way()
        return removed

    # --- imports ------------------------------------------------------------------------------

    async def before_replace(self, stored: Record) -> None:
        """Delete the events. Raises EpisodeStreamOpenError if the episode is being recorded."""
        namespace, episode_id = stored.namespace, stored.payload["episode_id"]
        until = stored.payload.get(WRITER_UNTIL, 0)
        open_here = self._active_streams.current(namespace, episode_id) is not None
        if open_here or until > self._time.now():
            raise EpisodeStreamOpenError(
                episode_id, "close it, then import again; records before it are stored"
            )
        last = await self._log.last_sequence(namespace, episode_id)
        await self._log.remove(namespace, episode_id, 1, last)
