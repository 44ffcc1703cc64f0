"""Notifies followers of an episode of changes: events, its end, its deletion.

Writes of this process are notified at once. Writes of other processes to the same store are found
by polling: one poller per process for all its followers, and only while there are any.

Together, all followers are woken about a thousand times a second at most: with n of them, each is
woken no sooner than n ms after its last wake-up, and reads what has arrived in one batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from lot_grpc.domain.errors import LotError
from lot_grpc.ports import Condition, IdIn, VectorStore
from lot_grpc.services.records.collections import EPISODES, EVENTS
from lot_grpc.services.records.episodes import (
    STAGE_KEYS,
    Stage,
    episode_point,
    event_point,
    stage_of,
)

_POLL_SECONDS = 0.25
_AT_ONCE = 1000
_SPACING_SECONDS = 0.001
"""Time between two wake-ups, over all followers of the process."""


class EpisodeWatch:
    """One follower of one episode: ``clear``, then read, then ``wait`` for more."""

    def __init__(self, namespace: str, episode_id: str, watches: set[EpisodeWatch]) -> None:
        self.namespace = namespace
        self.episode_id = episode_id
        self.waits_at: tuple[int, Stage] | None = None
        """The last event and the stage known to it, while it waits."""
        self._watches = watches
        self._came = asyncio.Event()
        self._let_go = 0.0

    def clear(self) -> None:
        """Reset the notification: a read from now on sees everything before it."""
        self._came.clear()

    def wake(self) -> None:
        """Notify that something changed, or may have changed."""
        self._came.set()

    async def wait(self, after: int, stage: Stage) -> None:
        """Wait for a change since ``clear``: an event after ``after``, or another stage.

        It may also return spuriously.
        """
        self.waits_at = (after, stage)
        try:
            await self._came.wait()
        finally:
            self.waits_at = None
        loop = asyncio.get_running_loop()
        early = self._let_go + _SPACING_SECONDS * len(self._watches) - loop.time()
        if early > 0:
            await asyncio.sleep(early)
        self._let_go = loop.time()


class EpisodeNotifier:
    """The followers of episodes in this process."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store
        self._watches: set[EpisodeWatch] = set()
        self._by_episode: dict[tuple[str, str], set[EpisodeWatch]] = {}
        self._poller: asyncio.Task[None] | None = None

    def notify(self, namespace: str, episode_id: str) -> None:
        """Notify of new events, an end, an abandonment or a deletion. Costs next to nothing."""
        for watch in self._by_episode.get((namespace, episode_id), ()):
            watch.wake()

    def notify_all(self, namespace: str) -> None:
        """Wake all followers in a namespace: any of its episodes may be gone."""
        for watch in self._watches:
            if watch.namespace == namespace:
                watch.wake()

    @contextmanager
    def watch(self, namespace: str, episode_id: str) -> Iterator[EpisodeWatch]:
        """Follow an episode inside the block."""
        watch = EpisodeWatch(namespace, episode_id, self._watches)
        key = (namespace, episode_id)
        self._watches.add(watch)
        self._by_episode.setdefault(key, set()).add(watch)
        if self._poller is None and not self._store.exclusive:
            self._poller = asyncio.create_task(self._poll())
        try:
            yield watch
        finally:
            self._watches.discard(watch)
            self._by_episode[key].discard(watch)
            if not self._by_episode[key]:
                del self._by_episode[key]
            if not self._watches and self._poller is not None:
                self._poller.cancel()
                self._poller = None

    # --- what other processes write -------------------------------------------------------------

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            waiting: dict[str, list[EpisodeWatch]] = {}
            for watch in self._watches:
                if watch.waits_at is not None:
                    waiting.setdefault(watch.namespace, []).append(watch)
            for namespace, watches in waiting.items():
                for start in range(0, len(watches), _AT_ONCE):
                    await self._look(namespace, watches[start : start + _AT_ONCE])

    async def _look(self, namespace: str, watches: list[EpisodeWatch]) -> None:
        """Wake those with a change. If the store fails, wake all, to look for themselves."""
        try:
            stages = await self._stages(namespace, {watch.episode_id for watch in watches})
            points = {watch: _next_point(watch) for watch in watches}
            there = await self._which(namespace, set(points.values()))
        except LotError:
            for watch in watches:
                watch.wake()
            return
        for watch, point in points.items():
            known = watch.waits_at[1] if watch.waits_at is not None else None
            if point in there or stages.get(watch.episode_id) != known:
                watch.wake()

    async def _stages(self, namespace: str, episode_ids: set[str]) -> dict[str, Stage]:
        points = {episode_point(namespace, each): each for each in episode_ids}
        where: list[Condition] = [IdIn(tuple(points))]
        found = await self._store.scroll(
            EPISODES, namespace, where, limit=len(points), payload=STAGE_KEYS
        )
        return {points[record.id]: stage_of(record.payload) for record in found}

    async def _which(self, namespace: str, points: set[str]) -> set[str]:
        where: list[Condition] = [IdIn(tuple(points))]
        found = await self._store.scroll(EVENTS, namespace, where, limit=len(points), payload=False)
        return {record.id for record in found}


def _next_point(watch: EpisodeWatch) -> str:
    """The point of the event that it waits for; any point if it is already awake."""
    after = watch.waits_at[0] if watch.waits_at is not None else 0
    return event_point(watch.namespace, watch.episode_id, after + 1)
