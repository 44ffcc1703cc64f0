"""The streams of this process that record episodes.

A lock per episode orders its opening, its batches and its end. ``writer_epoch`` in the episode's
record tells writers of different processes apart.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from lot_grpc.domain.errors import LotError


@dataclass(eq=False, slots=True)
class OpenStream:
    """One open stream. ``last`` is the number of the last event stored.

    ``stopped`` is the reason why it must not continue; ``on_stop`` is called to end a pending wait.
    """

    namespace: str
    episode_id: str
    epoch: int
    last: int
    stopped: LotError | None = None
    on_stop: Callable[[LotError], None] | None = None

    def stop(self, error: LotError) -> None:
        """End the stream with an error, even while it waits for its next message."""
        if self.stopped is not None:
            return
        self.stopped = error
        if self.on_stop is not None:
            self.on_stop(error)


@dataclass(slots=True)
class _Place:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
    writer: OpenStream | None = None


class ActiveStreams:
    """The open streams by episode."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], _Place] = {}

    @asynccontextmanager
    async def turn(self, namespace: str, episode_id: str) -> AsyncIterator[None]:
        """Hold the episode's lock."""
        key = (namespace, episode_id)
        place = self._places.setdefault(key, _Place())
        place.users += 1
        try:
            async with place.lock:
                yield
        finally:
            place.users -= 1
            self._forget(key)

    @property
    def alone(self) -> bool:
        """Whether at most one episode is being recorded or otherwise locked."""
        return len(self._places) <= 1

    def current(self, namespace: str, episode_id: str) -> OpenStream | None:
        """The stream that currently records the episode."""
        place = self._places.get((namespace, episode_id))
        return place.writer if place else None

    def open(self) -> list[OpenStream]:
        """All open streams."""
        return [place.writer for place in self._places.values() if place.writer is not None]

    def enter(self, writer: OpenStream) -> None:
        """Make a stream the episode's current one."""
        place = self._places.setdefault((writer.namespace, writer.episode_id), _Place())
        place.writer = writer

    def leave(self, writer: OpenStream) -> None:
        """Remove a stream that has ended."""
        key = (writer.namespace, writer.episode_id)
        place = self._places.get(key)
        if place is not None and place.writer is writer:
            place.writer = None
        self._forget(key)

    def _forget(self, key: tuple[str, str]) -> None:
        place = self._places.get(key)
        if place is not None and not place.users and place.writer is None:
            del self._places[key]
