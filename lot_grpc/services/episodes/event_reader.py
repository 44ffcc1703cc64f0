"""Reads an episode's committed events in batches while they are written, even by another process.

The episode's record is read before and after each batch: if both reads agree and no writer is
taking over, the batch is committed.
"""

from __future__ import annotations

from lot_grpc.domain.episode import EpisodeEvent
from lot_grpc.domain.errors import ContentionError, EpisodeNotFoundError
from lot_grpc.kernel.compare_and_set import ConflictError, compare_and_set
from lot_grpc.ports import VectorStore
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.records.collections import EPISODES
from lot_grpc.services.records.episodes import Stage, episode_point, stage_of

_PATIENCE = 12
"""How often a record is read while its new writer has yet to store its base: about a second."""


class EventReader:
    """Reads the events of one episode after number ``after``, which is then the last one read."""

    def __init__(
        self, store: VectorStore, log: EventLog, namespace: str, episode_id: str, after: int
    ) -> None:
        self.namespace = namespace
        self.episode_id = episode_id
        self.after = after
        self._store = store
        self._log = log
        self._point = episode_point(namespace, episode_id)
        self._stage: Stage | None = None
        self._dead_epoch = -1
        """A writer that never stored its base: it died, and is not waited for again."""

    async def look(self) -> Stage:
        """The current stage of the episode.

        Raises EpisodeNotFoundError, also if another episode now has its id.
        """
        record = (await self._store.get(EPISODES, self.namespace, [self._point])).get(self._point)
        if record is None:
            cause = "it was deleted in the meantime" if self._stage is not None else ""
            raise EpisodeNotFoundError(self.namespace, self.episode_id, cause)
        stage = stage_of(record.payload)
        if self._stage is not None and self._stage.birth != stage.birth:
            raise EpisodeNotFoundError(
                self.namespace, self.episode_id, "it was deleted in the meantime"
            )
        return stage

    async def next(self, limit: int) -> list[EpisodeEvent]:
        """Up to ``limit`` further events. Fewer means that there are no more yet.

        Raises EpisodeNotFoundError.
        """
        stage = self._stage or await self.look()
        events: list[EpisodeEvent] = []

        async def read() -> None:
            nonlocal stage, events
            self._stage = stage
            events = await self._log.read(
                self.namespace, self.episode_id, self.after, limit, stage.committed
            )
            stage = await self.look()
            if not self._stands(stage):
                raise ConflictError

        try:
            await compare_and_set("episode", self.episode_id, read, _PATIENCE)
        except ContentionError:  # the new writer died before it stored its base
            self._dead_epoch = stage.epoch
        self._stage = stage
        if stage.status.ended:  # later events are not part of the episode
            events = [event for event in events if event.sequence <= stage.event_count]
        if events:
            self.after = events[-1].sequence
        return events

    @property
    def stage(self) -> Stage:
        """The stage of the episode when the last batch was read; there must have been one."""
        if self._stage is None:
            raise RuntimeError("nothing was read yet")
        return self._stage

    @property
    def over(self) -> bool:
        """Whether the episode had ended or was abandoned when the last batch was read."""
        return self._stage is not None and self._stage.over

    @property
    def complete(self) -> bool:
        """Whether the episode had ended and all of its events were read."""
        stage = self._stage
        return stage is not None and stage.status.ended and self.after >= stage.event_count

    def _stands(self, stage: Stage) -> bool:
        """Whether a batch read between the previous stage and this one is committed."""
        if self._store.exclusive:
            return True
        same = self._stage is not None and self._stage.committed == stage.committed
        return same and stage.epoch in (stage.committed.epoch, self._dead_epoch)
