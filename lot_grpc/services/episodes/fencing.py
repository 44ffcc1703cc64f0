"""One writer at a time for an episode, across the processes that share a store.

Whoever takes an episode over bumps ``writer_epoch`` in its record, then looks which events are
there, and writes the last number down as ``writer_base``. All up to it stand from then on, whoever
stored them; behind it only events of the new epoch do (``Ground``). A writer that was replaced in
the middle of a batch takes back just what it stored behind that number. So whatever two processes
do at once, no acknowledged event is lost and no gap left.
"""

from __future__ import annotations

from dataclasses import dataclass

from lot_grpc.domain.episode import Episode, EpisodeStatus
from lot_grpc.domain.errors import (
    ContentionError,
    EpisodeEndedError,
    EpisodeNotFoundError,
    WriterReplacedError,
)
from lot_grpc.ports import Equals, VectorStore
from lot_grpc.services.episodes.event_log import ALL, EventLog
from lot_grpc.services.pacing import pause_before_retry
from lot_grpc.services.records.collections import EPISODES
from lot_grpc.services.records.episodes import (
    WRITER_EPOCH,
    Ground,
    base_payload,
    episode_from_record,
    episode_point,
    ground_of,
)

_TRIES = 50
_PATIENCE = 12
"""Looks at a record whose new writer has not said yet what it found: about a second."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a writer stands: whether it is the valid one, and up to which number events are kept."""

    episode: Episode
    valid: bool
    kept: int


class Fence:
    """Replaces writers, and tells them."""

    def __init__(self, store: VectorStore, log: EventLog) -> None:
        self._store = store
        self._log = log

    @property
    def needed(self) -> bool:
        """False where this process alone writes: its own locks order everything."""
        return not self._store.exclusive

    async def take_over(self, namespace: str, episode_id: str, known: int = 0) -> tuple[int, int]:
        """Make a new epoch the valid one; return it and the last event's number.

        Events up to ``known`` are there for sure. An abandoned episode runs again. Raises
        EpisodeNotFoundError, EpisodeEndedError, WriterReplacedError.
        """
        epoch, last = await self.replace_writer(namespace, episode_id, known)
        if self.needed and not await self._store.update(
            EPISODES,
            namespace,
            episode_point(namespace, episode_id),
            set=base_payload(epoch, last),
            when=[Equals(WRITER_EPOCH, epoch)],
        ):
            raise WriterReplacedError(episode_id)
        return epoch, last

    async def replace_writer(
        self, namespace: str, episode_id: str, known: int = 0
    ) -> tuple[int, int]:
        """As ``take_over``, but nobody else goes on before the caller wrote ``base_payload``."""
        epoch = await self._bump(namespace, episode_id)
        ground = (await self._read(namespace, episode_id))[1] if self.needed else ALL
        return epoch, await self._log.last_sequence(namespace, episode_id, known, ground)

    async def enter(self, namespace: str, episode_id: str) -> tuple[int, Ground]:
        """The epoch to store a single event with, and the ground it is put on.

        An abandoned episode runs again. Raises EpisodeNotFoundError, EpisodeEndedError.
        """
        for attempt in range(_PATIENCE):
            episode, ground = await self._running(namespace, episode_id)
            if episode.status is EpisodeStatus.ABANDONED:
                break
            if not self.needed or ground.epoch == episode.writer_epoch:
                return episode.writer_epoch, ground
            await pause_before_retry(attempt)
        epoch, last = await self.take_over(namespace, episode_id)
        return epoch, Ground(last, epoch)

    async def standing(self, namespace: str, episode_id: str, epoch: int, last: int) -> Standing:
        """How a writer stands that has just stored events up to ``last``."""
        for attempt in range(_PATIENCE):
            episode, ground = await self._read(namespace, episode_id)
            if episode.status.ended:
                return Standing(episode, valid=False, kept=episode.event_count)
            if episode.writer_epoch == epoch:
                return Standing(episode, valid=True, kept=last)
            if ground.epoch == episode.writer_epoch:
                return Standing(episode, valid=False, kept=ground.number)
            await pause_before_retry(attempt)
        # The new writer died before it looked: the next one finds all that is there.
        return Standing(episode, valid=False, kept=last)

    async def _bump(self, namespace: str, episode_id: str) -> int:
        for attempt in range(_TRIES):
            episode, _ = await self._running(namespace, episode_id)
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

    async def _running(self, namespace: str, episode_id: str) -> tuple[Episode, Ground]:
        episode, ground = await self._read(namespace, episode_id)
        if episode.status.ended:
            raise EpisodeEndedError(episode_id, episode.status.name, "it takes no events")
        return episode, ground

    async def _read(self, namespace: str, episode_id: str) -> tuple[Episode, Ground]:
        point = episode_point(namespace, episode_id)
        found = await self._store.get(EPISODES, namespace, [point])
        if point not in found:
            raise EpisodeNotFoundError(namespace, episode_id)
        return episode_from_record(found[point]), ground_of(found[point].payload)
