"""Who records which episode, in this process.

One lock an episode orders its opening, its batches and its end. Writers of other processes are
kept apart by ``writer_epoch`` in the episode's record.
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

    ``stopped`` says why it may not go on; ``on_stop`` is told, to end a wait for more.
    """

    namespace: str
    episode_id: str
    epoch: int
    last: int
    stopped: LotError | None = None
    on_stop: Callable[[LotError], None] | None = None

    def stop(self, error: LotError) -> None:
        """End the stream with an error, also while it waits for its next message."""
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
        """One at a time for an episode."""
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
        """Whether no more than one episode is being recorded, or otherwise at work."""
        return len(self._places) <= 1

    def current(self, namespace: str, episode_id: str) -> OpenStream | None:
        """The stream that records the episode now."""
        place = self._places.get((namespace, episode_id))
        return place.writer if place else None

    def open(self) -> list[OpenStream]:
        """All open streams."""
        return [place.writer for place in self._places.values() if place.writer is not None]

    def enter(self, writer: OpenStream) -> None:
        """Make a stream the one that records."""
        place = self._places.setdefault((writer.namespace, writer.episode_id), _Place())
        place.writer = writer

    def leave(self, writer: OpenStream) -> None:
        """A stream ended."""
        key = (writer.namespace, writer.episode_id)
        place = self._places.get(key)
        if place is not None and place.writer is writer:
            place.writer = None
        self._forget(key)

    def _forget(self, key: tuple[str, str]) -> None:
        place = self._places.get(key)
        if place is not None and not place.users and place.writer is None:
            del self._places[key]
