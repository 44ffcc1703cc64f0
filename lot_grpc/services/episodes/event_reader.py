"""An episode's events as they stand, read in pieces while they are written, also elsewhere.

A look at the episode's record before each piece and one after it tell whether the piece can be
trusted: both the same, and no writer just taking over, means that what was read stands.
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
"""Looks at a record whose new writer has not said yet what it found: about a second."""


class EventReader:
    """Reads one episode from behind ``after`` on. ``after`` is the last number read."""

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
        """A writer that never said what it found: it died, and nobody waits for it again."""

    async def look(self) -> Stage:
        """Where the episode stands now.

        Raises EpisodeNotFoundError, also if another episode has its id by now.
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
        """Up to ``limit`` events that follow. Fewer: there are no more now.

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
        except ContentionError:  # the new writer died before it looked
            self._dead_epoch = stage.epoch
        self._stage = stage
        if stage.status.ended:  # what came too late behind the end is no event of it
            events = [event for event in events if event.sequence <= stage.event_count]
        if events:
            self.after = events[-1].sequence
        return events

    @property
    def stage(self) -> Stage:
        """Where the episode stood when the last piece was read. Needs a piece."""
        if self._stage is None:
            raise RuntimeError("nothing was read yet")
        return self._stage

    @property
    def over(self) -> bool:
        """Whether the episode had ended or was abandoned when the last piece was read."""
        return self._stage is not None and self._stage.over

    @property
    def complete(self) -> bool:
        """Whether the episode had ended and all of its events were read."""
        stage = self._stage
        return stage is not None and stage.status.ended and self.after >= stage.event_count

    def _stands(self, stage: Stage) -> bool:
        """Whether what was read between the stage before and this one is what there is."""
        if self._store.exclusive:
            return True
        same = self._stage is not None and self._stage.committed == stage.committed
        return same and stage.epoch in (stage.committed.epoch, self._dead_epoch)
