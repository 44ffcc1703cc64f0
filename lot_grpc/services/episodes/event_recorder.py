"""Records events as they happen: one call per event, or a stream of batches.

A new stream takes over the episode (``fence``), so that only one writer at a time is valid, across
processes too. Every batch is stored first and acknowledged only if the epoch is still this
writer's; what a replaced writer stored too late is removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum

from lot_grpc.domain.episode import EpisodeEvent
from lot_grpc.domain.errors import (
    EpisodeEndedError,
    EpisodeNotFoundError,
    EpisodeStreamOpenError,
    EventConflictError,
    NamespaceClearingError,
    StorageFullError,
    StoreUnavailableError,
    WriterReplacedError,
)
from lot_grpc.domain.ids import content_hash
from lot_grpc.kernel.compare_and_set import ConflictError, compare_and_set
from lot_grpc.kernel.idempotency import IdempotencyKey, IdempotencyRecord
from lot_grpc.kernel.tombstones import DELETED_SINCE
from lot_grpc.services.episodes.active_streams import ActiveStreams, OpenStream
from lot_grpc.services.episodes.episodes import Episodes
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.episodes.fence import Fence
from lot_grpc.services.episodes.notifier import EpisodeNotifier
from lot_grpc.services.records.episodes import event_hash
from lot_grpc.services.runtime import Runtime

_METHOD = "RecordEvent"


class TakeoverPolicy(StrEnum):
    """What opening a stream does while another is recording the same episode."""

    REPLACE = "replace"
    REFUSE = "refuse"


class EventRecorder:
    """Appends events to episodes."""

    def __init__(
        self,
        runtime: Runtime,
        episodes: Episodes,
        log: EventLog,
        active_streams: ActiveStreams,
        fence: Fence,
        notifier: EpisodeNotifier,
    ) -> None:
        self._time = runtime.time
        self._idempotency = runtime.idempotency
        self._log = log
        self._active_streams = active_streams
        self._fence = fence
        self._notifier = notifier
        self._episodes = episodes

    # --- streams ------------------------------------------------------------------------------

    async def open(
        self, namespace: str, episode_id: str, takeover_policy: TakeoverPolicy
    ) -> OpenStream:
        """Make a new writer the valid one; ``last`` is the last number stored.

        Raises EpisodeNotFoundError, EpisodeEndedError, EpisodeStreamOpenError.
        """
        async with self._active_streams.turn(namespace, episode_id):
            current = self._active_streams.current(namespace, episode_id)
            if current is not None and takeover_policy is TakeoverPolicy.REFUSE:
                raise EpisodeStreamOpenError(
                    episode_id, "open with REPLACE to replace it, or wait until it ends"
                )
            epoch, last = await self._fence.open_writer(
                namespace,
                episode_id,
                current.last if current else 0,
                polite=takeover_policy is TakeoverPolicy.REFUSE,
            )
            if current is not None:
                current.stop(WriterReplacedError(episode_id))
            writer = OpenStream(namespace, episode_id, epoch, last)
            self._active_streams.enter(writer)
            return writer

    async def append(self, writer: OpenStream, events: Sequence[EpisodeEvent]) -> int:
        """Store a batch; return the last number, which may then be acknowledged.

        Raises EventSequenceGapError, EventConflictError, WriterReplacedError, EpisodeEndedError.
        """
        async with self._active_streams.turn(writer.namespace, writer.episode_id):
            if writer.stopped is not None:
                raise writer.stopped
            first = writer.last + 1
            try:
                last = await self._log.append(
                    writer.namespace,
                    writer.episode_id,
                    events,
                    writer.last,
                    writer.epoch,
                    self._time.now(),
                    alone=self._active_streams.alone,
                )
            except EventConflictError:
                await self._confirm(writer, first, max(event.sequence for event in events))
                raise
            await self._confirm(writer, first, last)
            writer.last = last
            self._notifier.notify(writer.namespace, writer.episode_id)
            return last

    async def close(self, writer: OpenStream) -> None:
        """Clean up after a stream, so that any process can open another without replacing it."""
        if self._fence.needed and writer.stopped is None:
            async with self._active_streams.turn(writer.namespace, writer.episode_id):
                self._active_streams.leave(writer)
                # then the lease lapses
                with suppress(StoreUnavailableError, StorageFullError, NamespaceClearingError):
                    await self._fence.release(writer)
        self._active_streams.leave(writer)

    async def _confirm(self, writer: OpenStream, first: int, last: int) -> None:
        """Remove what was stored too late, after another process stopped this writer."""
        if not self._fence.needed:  # within this process the episode's lock excludes that
            return
        try:
            standing = await self._fence.standing(
                writer.namespace, writer.episode_id, writer.epoch, last
            )
        except EpisodeNotFoundError:  # it was deleted in the meantime
            await self._log.remove(
                writer.namespace, writer.episode_id, first, last, epoch=writer.epoch
            )
            raise
        if standing.valid:
            return
        behind = max(first, standing.committed_to + 1)
        if last >= behind:
            await self._log.remove(
                writer.namespace, writer.episode_id, behind, last, epoch=writer.epoch
            )
        status = standing.episode.status
        if status.ended:
            raise EpisodeEndedError(writer.episode_id, status.name, "it accepts no more events")
        raise WriterReplacedError(writer.episode_id)

    # --- one event a call ---------------------------------------------------------------------

    async def record_event(
        self, namespace: str, episode_id: str, event: EpisodeEvent, request_id: str
    ) -> EpisodeEvent:
        """Append one event under the next number; return it as stored.

        Raises EpisodeNotFoundError, EpisodeEndedError, EpisodeStreamOpenError.
        """
        async with self._active_streams.turn(namespace, episode_id):
            entry = await self._enter(namespace, episode_id, event, request_id)
            if not entry.first:
                earlier = await self._earlier(namespace, episode_id, entry)
                if earlier is not None:
                    return earlier
                if entry.result is not None:  # its event was deleted with the episode
                    raise EpisodeNotFoundError(namespace, episode_id, DELETED_SINCE)
                await self._episodes.refuse_repeat(entry, episode_id)
            if self._active_streams.current(namespace, episode_id) is not None:
                raise EpisodeStreamOpenError(
                    episode_id, "send the event over that stream, or close it first"
                )
            return await self._append_one(namespace, episode_id, event, entry)

    async def _append_one(
        self, namespace: str, episode_id: str, event: EpisodeEvent, entry: IdempotencyRecord
    ) -> EpisodeEvent:
        epoch, committed = await self._fence.enter(namespace, episode_id)

        async def attempt() -> EpisodeEvent:
            nonlocal entry
            last = await self._log.last_sequence(namespace, episode_id, committed=committed)
            if entry.plan["sequence"] != last + 1:
                # The planned number may be taken by the event of another attempt.
                earlier = await self._earlier(namespace, episode_id, entry)
                if earlier is not None:
                    return earlier
                plan = {"episode_id": episode_id, "sequence": last + 1}
                entry = await self._idempotency.replan(entry, plan)
            stored = replace(event, sequence=last + 1, record_time=self._time.now())
            mine = entry.plan["sequence"] == last + 1
            if mine and await self._log.put_first(
                namespace, episode_id, stored, epoch, entry.point
            ):
                await self._confirm_one(namespace, episode_id, stored.sequence, epoch)
                self._notifier.notify(namespace, episode_id)
                await self._idempotency.finish(entry, {"sequence": stored.sequence})
                return (await self._log.read(namespace, episode_id, last, 1))[0]
            earlier = await self._earlier(namespace, episode_id, entry)
            if earlier is not None:
                return earlier
            raise ConflictError

        return await compare_and_set("episode", episode_id, attempt)

    async def _confirm_one(
        self, namespace: str, episode_id: str, sequence: int, epoch: int
    ) -> None:
        """Remove the event if another process opened a stream or ended the episode before it."""
        if not self._fence.needed:
            return
        try:
            standing = await self._fence.standing(namespace, episode_id, epoch, sequence)
        except EpisodeNotFoundError:  # it was deleted in the meantime
            await self._log.remove(namespace, episode_id, sequence, sequence, epoch=epoch)
            raise
        if standing.valid or sequence <= standing.committed_to:
            return
        await self._log.remove(namespace, episode_id, sequence, sequence, epoch=epoch)
        status = standing.episode.status
        if status.ended:
            raise EpisodeEndedError(episode_id, status.name, "it accepts no more events")
        raise EpisodeStreamOpenError(episode_id, "send the event over that stream, or close it")

    async def _enter(
        self, namespace: str, episode_id: str, event: EpisodeEvent, request_id: str
    ) -> IdempotencyRecord:
        content = content_hash([episode_id, event_hash(event)])
        plan = {"episode_id": episode_id, "sequence": 0}
        return await self._idempotency.begin(
            IdempotencyKey(namespace, _METHOD, request_id, content, plan)
        )

    async def _earlier(
        self, namespace: str, episode_id: str, entry: IdempotencyRecord
    ) -> EpisodeEvent | None:
        """The event that an earlier attempt of this request stored."""
        sequence = (entry.result or entry.plan)["sequence"]
        if not sequence or not entry.point:
            return None
        found = await self._log.of_request(namespace, episode_id, sequence, entry.point)
        if found is None:
            return None
        event, epoch = found
        if entry.result is None:
            if not await self._stands(namespace, episode_id, sequence, epoch):
                return None
            await self._idempotency.finish(entry, {"sequence": sequence})
        return event

    async def _stands(self, namespace: str, episode_id: str, sequence: int, epoch: int) -> bool:
        """Whether an event is committed; one that came too late is removed."""
        if not self._fence.needed:
            return True
        standing = await self._fence.standing(namespace, episode_id, epoch, sequence)
        if standing.valid or sequence <= standing.committed_to:
            return True
        await self._log.remove(namespace, episode_id, sequence, sequence, epoch=epoch)
        return False
