"""One writer at a time for an episode, across the processes that share a store.

A writer that takes over an episode increments ``writer_epoch`` in its record, then finds the last
event and stores its number as ``writer_base``. From then on all events up to it are committed,
whoever stored them; after it only events of the new epoch are (``CommittedPrefix``). A writer
replaced in the middle of a batch removes only what it stored after that number. So whatever two
processes do concurrently, no acknowledged event is lost and no gap remains.

An open stream also holds a lease in the record, which its process renews (``leases``), so that a
writer can avoid replacing it. A lease orders nothing: the epoch does.

An episode that is being abandoned, or was just abandoned, runs on if a valid writer has stored an
event in the meantime (``abandoner``).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from lot_grpc.domain.episode import Episode, EpisodeStatus
from lot_grpc.domain.errors import (
    ContentionError,
    EpisodeEndedError,
    EpisodeNotFoundError,
    EpisodeStreamOpenError,
    WriterReplacedError,
)
from lot_grpc.kernel.compare_and_set import ConflictError, compare_and_set
from lot_grpc.ports import Condition, Equals, Payload, VectorStore
from lot_grpc.services.episodes.active_streams import OpenStream
from lot_grpc.services.episodes.event_log import ALL, EventLog
from lot_grpc.services.records.collections import EPISODES
from lot_grpc.services.records.episodes import (
    ABANDONING,
    ACTIVE_TIME,
    WRITER_EPOCH,
    WRITER_UNTIL,
    CommittedPrefix,
    base_payload,
    committed_prefix_of,
    episode_from_record,
    episode_point,
    reopened_payload,
)
from lot_grpc.services.time_source import TimeSource

LEASE_SECONDS = 30
"""How long a stream holds its episode after the last renewal: for that long, the stream of a dead
process counts as open."""

_PATIENCE = 12
"""How often a record is read while its new writer has yet to store its base: about a second."""


@dataclass(frozen=True, slots=True)
class FenceStatus:
    """Whether a writer is the valid one, and up to which number events are kept."""

    episode: Episode
    valid: bool
    committed_to: int


@dataclass(frozen=True, slots=True)
class _Seen:
    """An episode as read. ``leased_until``: by an open stream, 0 without one.

    ``left``: it is abandoned or being abandoned.
    """

    episode: Episode
    committed: CommittedPrefix
    leased_until: int
    left: bool


class Fence:
    """Replaces writers, and detects when one was replaced."""

    def __init__(self, store: VectorStore, log: EventLog, time_source: TimeSource) -> None:
        self._store = store
        self._log = log
        self._time = time_source

    @property
    def needed(self) -> bool:
        """False if only this process writes: its own locks order everything."""
        return not self._store.exclusive

    async def open_writer(
        self, namespace: str, episode_id: str, known: int, *, polite: bool
    ) -> tuple[int, int]:
        """``take_over`` for a stream, which then holds a lease.

        ``polite``: raises EpisodeStreamOpenError while a stream of another process holds one.
        """
        epoch = await self._bump(namespace, episode_id, lease=True, polite=polite)
        return await self._stand(namespace, episode_id, epoch, known)

    async def take_over(self, namespace: str, episode_id: str) -> tuple[int, int]:
        """Make a new epoch the valid one; return it and the last event's number.

        An abandoned episode runs again. Raises EpisodeNotFoundError, EpisodeEndedError,
        WriterReplacedError.
        """
        epoch = await self._bump(namespace, episode_id)
        return await self._stand(namespace, episode_id, epoch, 0)

    async def _stand(
        self, namespace: str, episode_id: str, epoch: int, known: int
    ) -> tuple[int, int]:
        last = await self._look(namespace, episode_id, known)
        if self.needed and not await self._store.update(
            EPISODES,
            namespace,
            episode_point(namespace, episode_id),
            set=base_payload(epoch, last),
            when=[Equals(WRITER_EPOCH, epoch)],
        ):
            raise WriterReplacedError(episode_id)
        return epoch, last

    async def replace_for_end(
        self, namespace: str, episode_id: str
    ) -> tuple[int, Payload, list[Condition]]:
        """The number of events of an end, further keys to write, and conditions for the write.

        Like ``take_over``, but no other writer continues before the end is written.
        """
        if not self.needed:
            return await self._log.last_sequence(namespace, episode_id), {}, []
        epoch = await self._bump(namespace, episode_id)
        count = await self._look(namespace, episode_id, 0)
        return count, base_payload(epoch, count), [Equals(WRITER_EPOCH, epoch)]

    async def _look(self, namespace: str, episode_id: str, known: int) -> int:
        """The last event's number. Events up to ``known`` are certain to exist."""
        committed = (await self._read(namespace, episode_id)).committed if self.needed else ALL
        return await self._log.last_sequence(namespace, episode_id, known, committed)

    async def enter(self, namespace: str, episode_id: str) -> tuple[int, CommittedPrefix]:
        """The epoch with which to store a single event, and the committed events before it.

        An abandoned episode runs again. Raises EpisodeNotFoundError, EpisodeEndedError,
        EpisodeStreamOpenError while a stream of another process is open.
        """

        async def look() -> tuple[int, CommittedPrefix] | None:
            seen = await self._running(namespace, episode_id)
            episode, committed = seen.episode, seen.committed
            if episode.status is EpisodeStatus.ABANDONED:
                return None
            self._refuse_leased(seen, "send the event over that stream, or close it first")
            if self.needed and committed.epoch != episode.writer_epoch:
                raise ConflictError
            return episode.writer_epoch, committed

        with suppress(ContentionError):  # then the new writer died before it stored its base
            if entered := await compare_and_set("episode", episode_id, look, _PATIENCE):
                return entered
        epoch, last = await self.take_over(namespace, episode_id)
        return epoch, CommittedPrefix(last, epoch)

    async def standing(self, namespace: str, episode_id: str, epoch: int, last: int) -> FenceStatus:
        """The status of a writer that has just stored events up to ``last``."""

        async def look() -> FenceStatus:
            seen = await self._read(namespace, episode_id)
            episode, committed = seen.episode, seen.committed
            if episode.status.ended:
                return FenceStatus(episode, valid=False, committed_to=episode.event_count)
            if episode.writer_epoch == epoch and (not seen.left or await self._revive(episode)):
                return FenceStatus(episode, valid=True, committed_to=last)
            if episode.writer_epoch != epoch and committed.epoch == episode.writer_epoch:
                return FenceStatus(episode, valid=False, committed_to=committed.number)
            raise ConflictError

        with suppress(ContentionError):
            return await compare_and_set("episode", episode_id, look, _PATIENCE)
        # The new writer died before it stored its base: the next one finds all events.
        episode = (await self._read(namespace, episode_id)).episode
        return FenceStatus(episode, valid=False, committed_to=last)

    # --- leases -------------------------------------------------------------------------------

    async def renew(self, writer: OpenStream) -> bool:
        """Renew the lease; False if the writer was replaced, or the episode deleted."""
        return await self._lease(writer, self._lease_end())

    async def release(self, writer: OpenStream) -> None:
        """Release the lease, unless the writer was replaced."""
        await self._lease(writer, 0)

    async def _lease(self, writer: OpenStream, until: int) -> bool:
        return await self._store.update(
            EPISODES,
            writer.namespace,
            episode_point(writer.namespace, writer.episode_id),
            set={WRITER_UNTIL: until, ACTIVE_TIME: self._time.now()},
            when=[Equals(WRITER_EPOCH, writer.epoch)],
        )

    def _lease_end(self) -> int:
        return self._time.now() + LEASE_SECONDS * 1_000_000

    def _refuse_leased(self, seen: _Seen, hint: str) -> None:
        """Refuse a leased episode; streams of this process are checked by the caller."""
        if self.needed and seen.leased_until > self._time.now():
            raise EpisodeStreamOpenError(seen.episode.episode_id, hint)

    # --- the record ---------------------------------------------------------------------------

    async def _bump(
        self, namespace: str, episode_id: str, *, lease: bool = False, polite: bool = False
    ) -> int:
        async def attempt() -> int:
            seen = await self._running(namespace, episode_id)
            episode = seen.episode
            if polite:
                self._refuse_leased(seen, "open with REPLACE to replace it, or wait")
            epoch = episode.writer_epoch + 1
            now = self._time.now()
            changed: dict[str, object] = {WRITER_EPOCH: epoch, ACTIVE_TIME: now}
            if self.needed:  # written with the epoch, so that of two polite writers one is refused
                changed[WRITER_UNTIL] = self._lease_end() if lease else 0
            if not await self._change(episode, changed):
                raise ConflictError
            return epoch

        return await compare_and_set("episode", episode_id, attempt)

    async def _revive(self, episode: Episode) -> bool:
        """Let an episode with a new event run on; False if it changed: read it again."""
        changed: dict[str, object] = {ABANDONING: False, ACTIVE_TIME: self._time.now()}
        return await self._change(episode, changed)

    async def _change(self, episode: Episode, changed: dict[str, object]) -> bool:
        """Change it if writer and status are unchanged. An abandoned episode runs again."""
        if episode.status is EpisodeStatus.ABANDONED:
            changed |= reopened_payload(episode, self._time.now())
        return await self._store.update(
            EPISODES,
            episode.namespace,
            episode_point(episode.namespace, episode.episode_id),
            set=changed,
            when=[
                Equals(WRITER_EPOCH, episode.writer_epoch),
                Equals("status", episode.status.value),
            ],
        )

    async def _running(self, namespace: str, episode_id: str) -> _Seen:
        seen = await self._read(namespace, episode_id)
        if seen.episode.status.ended:
            raise EpisodeEndedError(
                episode_id, seen.episode.status.name, "it accepts no more events"
            )
        return seen

    async def _read(self, namespace: str, episode_id: str) -> _Seen:
        point = episode_point(namespace, episode_id)
        found = await self._store.get(EPISODES, namespace, [point])
        if point not in found:
            raise EpisodeNotFoundError(namespace, episode_id)
        record = found[point]
        episode, leased_until = episode_from_record(record), record.payload.get(WRITER_UNTIL, 0)
        left = episode.status is EpisodeStatus.ABANDONED or bool(record.payload.get(ABANDONING))
        return _Seen(episode, committed_prefix_of(record.payload), leased_until, left)
