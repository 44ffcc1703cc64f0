"""Recording events while they happen: one call an event, or a stream of batches.

A stream that opens bumps ``writer_epoch`` in the episode's record, so that one writer at a time is
the valid one, across processes too. Every batch is stored first and acknowledged only if the epoch
is still this writer's; what a replaced writer stored meanwhile is taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from lot_grpc.domain.episode import Episode, EpisodeEvent, EpisodeStatus
from lot_grpc.domain.errors import (
    ContentionError,
    EpisodeEndedError,
    EpisodeNotFoundError,
    EpisodeStreamOpenError,
    WriterReplacedError,
)
from lot_grpc.domain.ids import content_hash
from lot_grpc.ports import Equals, VectorStore
from lot_grpc.services.counting import pause_before_retry
from lot_grpc.services.event_log import EventLog
from lot_grpc.services.ledger import Ask, Entry, Ledger
from lot_grpc.services.moments import Moments
from lot_grpc.services.records.collections import EPISODES
from lot_grpc.services.records.episodes import (
    WRITER_EPOCH,
    episode_from_record,
    episode_point,
    event_hash,
)
from lot_grpc.services.writers import Writer, Writers

_METHOD = "RecordEvent"
_TRIES = 50


class Takeover(StrEnum):
    """What opening a stream does while another records the same episode."""

    TAKE_OVER = "take_over"
    REFUSE = "refuse"


class Recording:
    """Appends events to episodes."""

    def __init__(
        self,
        store: VectorStore,
        moments: Moments,
        ledger: Ledger,
        log: EventLog,
        writers: Writers,
    ) -> None:
        self._store = store
        self._moments = moments
        self._ledger = ledger
        self._log = log
        self._writers = writers

    # --- streams ------------------------------------------------------------------------------

    async def open(self, namespace: str, episode_id: str, takeover: Takeover) -> Writer:
        """Make a new writer the valid one; ``last`` is the last number stored.

        Raises EpisodeNotFoundError, EpisodeEndedError, EpisodeStreamOpenError.
        """
        async with self._writers.turn(namespace, episode_id):
            current = self._writers.current(namespace, episode_id)
            if current is not None and takeover is Takeover.REFUSE:
                raise EpisodeStreamOpenError(
                    episode_id, "open with TAKE_OVER to replace it, or wait until it ends"
                )
            epoch = await self._bump_epoch(namespace, episode_id)
            if current is not None:
                current.stop(WriterReplacedError(episode_id))
            last = await self._log.last_sequence(
                namespace, episode_id, current.last if current else 0
            )
            writer = Writer(namespace, episode_id, epoch, last)
            self._writers.enter(writer)
            return writer

    async def append(self, writer: Writer, events: Sequence[EpisodeEvent]) -> int:
        """Store a batch; return the last number, which may be acknowledged.

        Raises EventSequenceGapError, EventConflictError, WriterReplacedError, EpisodeEndedError.
        """
        async with self._writers.turn(writer.namespace, writer.episode_id):
            if writer.stopped is not None:
                raise writer.stopped
            now = self._moments.now()
            stamped = [replace(event, record_time=now) for event in events]
            first = writer.last + 1
            last = await self._log.append(
                writer.namespace, writer.episode_id, stamped, writer.last, writer.epoch
            )
            await self._confirm(writer, first, last)
            writer.last = last
            return last

    def close(self, writer: Writer) -> None:
        """A stream ended, however."""
        self._writers.leave(writer)

    async def _confirm(self, writer: Writer, first: int, last: int) -> None:
        """Take back what was stored after another process replaced the writer or ended it."""
        episode = await self._episode(writer.namespace, writer.episode_id)
        if episode.writer_epoch == writer.epoch and not episode.status.ended:
            return
        if last >= first:
            await self._log.remove(
                writer.namespace, writer.episode_id, first, last, epoch=writer.epoch
            )
        if episode.status.ended:
            raise EpisodeEndedError(writer.episode_id, episode.status.name, "it takes no events")
        raise WriterReplacedError(writer.episode_id)

    async def _bump_epoch(self, namespace: str, episode_id: str) -> int:
        for attempt in range(_TRIES):
            episode = await self._running(namespace, episode_id)
            epoch = episode.writer_epoch + 1
            changed: dict[str, object] = {WRITER_EPOCH: epoch}
            if episode.status is EpisodeStatus.ABANDONED:
                changed["status"] = EpisodeStatus.RUNNING.value
            if await self._store.update(
                EPISODES,
                namespace,
                episode_point(namespace, episode_id),
                set=changed,
                when=[
                    Equals(WRITER_EPOCH, episode.writer_epoch),
                    Equals("status", episode.status.value),
                ],
            ):
                return epoch
            await pause_before_retry(attempt)
        raise ContentionError("episode", episode_id)

    # --- one event a call ---------------------------------------------------------------------

    async def record_event(
        self, namespace: str, episode_id: str, event: EpisodeEvent, request_id: str
    ) -> EpisodeEvent:
        """Append one event under the next number; return it as stored.

        Raises EpisodeNotFoundError, EpisodeEndedError, EpisodeStreamOpenError.
        """
        async with self._writers.turn(namespace, episode_id):
            entry = await self._enter(namespace, episode_id, event, request_id)
            if entry is not None and not entry.first:
                earlier = await self._earlier(namespace, episode_id, entry)
                if earlier is not None:
                    return earlier
            if self._writers.current(namespace, episode_id) is not None:
                raise EpisodeStreamOpenError(
                    episode_id, "send the event over that stream, or close it first"
                )
            epoch = (await self._running(namespace, episode_id)).writer_epoch
            return await self._append_one(namespace, episode_id, event, epoch, entry)

    async def _append_one(
        self, namespace: str, episode_id: str, event: EpisodeEvent, epoch: int, entry: Entry | None
    ) -> EpisodeEvent:
        request = entry.point if entry else ""
        last = 0
        for attempt in range(_TRIES):
            last = await self._log.last_sequence(namespace, episode_id, last)
            stored = replace(event, sequence=last + 1, record_time=self._moments.now())
            if entry is not None:
                await self._ledger.replan(
                    entry, {"episode_id": episode_id, "sequence": stored.sequence}
                )
            if await self._log.put_first(namespace, episode_id, stored, epoch, request):
                if entry is not None:
                    await self._ledger.finish(entry, {"sequence": stored.sequence})
                return (await self._log.read(namespace, episode_id, last, 1))[0]
            await pause_before_retry(attempt)
        raise ContentionError("episode", episode_id)

    async def _enter(
        self, namespace: str, episode_id: str, event: EpisodeEvent, request_id: str
    ) -> Entry | None:
        if not request_id:
            return None
        content = content_hash([episode_id, event_hash(event)])
        plan = {"episode_id": episode_id, "sequence": 0}
        return await self._ledger.begin(Ask(namespace, _METHOD, request_id, content, plan))

    async def _earlier(self, namespace: str, episode_id: str, entry: Entry) -> EpisodeEvent | None:
        """The event that an earlier try of this request stored."""
        sequence = (entry.result or entry.plan)["sequence"]
        event = await self._log.of_request(namespace, episode_id, sequence, entry.point)
        if event is not None and entry.result is None:
            await self._ledger.finish(entry, {"sequence": sequence})
        return event

    async def _running(self, namespace: str, episode_id: str) -> Episode:
        episode = await self._episode(namespace, episode_id)
        if episode.status.ended:
            raise EpisodeEndedError(episode_id, episode.status.name, "it takes no events")
        return episode

    async def _episode(self, namespace: str, episode_id: str) -> Episode:
        point = episode_point(namespace, episode_id)
        found = await self._store.get(EPISODES, namespace, [point])
        if point not in found:
            raise EpisodeNotFoundError(namespace, episode_id)
        return episode_from_record(found[point])
