"""Deleting episodes with their events.

The delete is written down first (``kernel.tombstones``); then the episode goes, which hides its
events; then they go, from the last to the first, so that what a death leaves is still found by its
numbers. Whoever finds it half done finishes it: a sweep, or a new episode of the same id before it
begins. What it used is counted before it goes (``reuse``).
"""

from __future__ import annotations

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import EpisodeNotFoundError
from lot_grpc.kernel.compare_and_set import ConflictError, compare_and_set
from lot_grpc.kernel.idempotency import IdempotencyRecord
from lot_grpc.kernel.tombstones import DELETED_SINCE, Tombstone, Tombstones
from lot_grpc.ports import Record, VectorStore
from lot_grpc.services.episodes.active_streams import ActiveStreams
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.episodes.notifier import EpisodeNotifier
from lot_grpc.services.episodes.reuse import ReuseCounter
from lot_grpc.services.records.collections import EPISODES
from lot_grpc.services.records.episodes import WRITER_EPOCH, episode_point
from lot_grpc.services.time_slice import TimeSlice

_AT_ONCE = 200


class EpisodeDeleter:
    """Deletes episodes."""

    def __init__(
        self,
        store: VectorStore,
        log: EventLog,
        active_streams: ActiveStreams,
        tombstones: Tombstones,
        reuse: ReuseCounter,
        notifier: EpisodeNotifier,
    ) -> None:
        self._store = store
        self._log = log
        self._active_streams = active_streams
        self._tombstones = tombstones
        self._reuse = reuse
        self._notifier = notifier

    async def delete(self, namespace: str, episode_id: str) -> int:
        """Delete an episode, recorded or not, and end its stream; return how many events it had.

        Raises EpisodeNotFoundError.
        """
        point = episode_point(namespace, episode_id)

        async def attempt() -> int:
            record = (await self._store.get(EPISODES, namespace, [point])).get(point)
            if record is None:
                raise EpisodeNotFoundError(namespace, episode_id)
            events = await self._delete(record)
            if events is None:
                raise ConflictError
            return events

        return await compare_and_set(ResourceKind.EPISODE, episode_id, attempt)

    async def delete_as_seen(self, record: Record) -> bool:
        """Delete one that is still as its record says, read with ``EPISODE.seen_keys`` at least.

        False for one that was ended, or taken up again, since.
        """
        return await self._delete(record) is not None

    async def finish_delete(self, stone: Tombstone) -> bool:
        """Carry out a delete that was written down; False if the episode was changed since."""
        return await self._finish(stone) is not None

    async def finish_open_delete(self, namespace: str, episode_id: str) -> Tombstone | None:
        """Finish a delete of this id that was left half done; return the latest of its deletes."""
        stone = await self._tombstones.find(namespace, ResourceKind.EPISODE, episode_id)
        if stone is not None and not stone.done:
            await self._finish(stone)
        return stone

    async def refuse_repeat(self, entry: IdempotencyRecord, episode_id: str) -> None:
        """Refuse a repeat whose episode was deleted since: one of its id is another.

        Raises EpisodeNotFoundError.
        """
        if entry.first:
            return
        await self.finish_open_delete(entry.namespace, episode_id)
        point = episode_point(entry.namespace, episode_id)
        record = (await self._store.get(EPISODES, entry.namespace, [point])).get(point)
        if await self._tombstones.deleted_since(entry, ResourceKind.EPISODE, episode_id, record):
            raise EpisodeNotFoundError(entry.namespace, episode_id, DELETED_SINCE)

    async def _delete(self, record: Record) -> int | None:
        """How many events went; None if the episode was changed meanwhile, and stays."""
        namespace, episode_id = record.namespace, record.payload["episode_id"]
        async with self._active_streams.turn(namespace, episode_id):
            await self._reuse.count_of(record)
            unchanged = (WRITER_EPOCH,)
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

        point = episode_point(stone.namespace, stone.id)
        await self._tombstones.carry_out(stone, EPISODES, point, remove_events)
        return events

    async def _remove_events(self, stone: Tombstone) -> int:
        """Delete the events, the last first; those of an episode that took the id since stay."""
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
