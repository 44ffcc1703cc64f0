"""Someone who watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from lot_grpc.domain.change import ChangeType, Cursor, Positions
from lot_grpc.services.changes.events import ChangeBatch, ChangeEvent, WatchRequest
from lot_grpc.services.resources import REGISTRY
from tests.services.world import NS, World

WATCHED = {kind: REGISTRY.watched[kind] for kind in REGISTRY.watched_by_default}


WEEK = 7 * 24 * 3600


@dataclass
class Watcher:
    """One who watches a world, and keeps the events."""

    batch: Any
    events: list[ChangeEvent] = field(default_factory=list)
    cursor: Cursor | None = None
    heartbeats: int = 0

    async def next(self) -> ChangeBatch:
        """The next batch."""
        async with asyncio.timeout(20):
            batch: ChangeBatch = await anext(self.batch)
        self.events += batch.changes
        self.heartbeats += not batch.changes
        self.cursor = batch.cursor
        return batch

    async def until(self, done: Callable[[], bool]) -> None:
        """Watch until something holds of the events."""
        while not done():
            await self.next()

    async def until_seen(self, identity: str) -> None:
        """Watch until there is an event of a thing."""
        await self.until(lambda: bool(self.types(identity)))

    @property
    def reached(self) -> Positions:
        """Up to where it watched."""
        assert self.cursor is not None
        return self.cursor.positions

    def types(self, identity: str) -> list[ChangeType]:
        """The types of the events of a thing."""
        return [one.type for one in self.events if one.id == identity]


@asynccontextmanager
async def change_watcher(world: World, **named: Any) -> AsyncIterator[Watcher]:
    named.setdefault("namespace", NS)
    async with aclosing(world.services.changes.watcher.watch(WatchRequest(**named))) as batch:
        watcher = Watcher(batch)
        await watcher.next()  # it comes at once, with a cursor
        assert watcher.events == []
        yield watcher
