"""Watching changes: what exists, what changed since a cursor, and then live changes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from lot_grpc.domain.change import ChangeType, Cursor, Positions, ResourceKind, ScanPosition
from lot_grpc.domain.errors import CursorExpiredError
from lot_grpc.ports import Record, VectorStore
from lot_grpc.services.changes.events import (
    ChangeBatch,
    ChangeEvent,
    ContextSuggestion,
    PatternMatch,
    WatchRequest,
)
from lot_grpc.services.changes.feed import Change, short_of
from lot_grpc.services.changes.poller import Poller
from lot_grpc.services.operations import ResourcesByKind
from lot_grpc.services.paging import Position, read_page
from lot_grpc.services.time_source import TimeSource
from lot_grpc.telemetry.metrics import FEED_BEHIND

_AT_ONCE = 100
"""Changes in one piece of news."""

_LIVE_KEPT = 1000
"""Live-only events queued for a busy watcher; the oldest are dropped."""


@dataclass(eq=False, slots=True)
class _Follower:
    """A watcher. ``since``: its position before the changes it is being sent."""

    request: WatchRequest
    wake: asyncio.Event
    positions: dict[str, int]
    since: Positions
    live: deque[ChangeEvent] = field(default_factory=lambda: deque(maxlen=_LIVE_KEPT))
    sent: int | None = None
    """How many changes of the poller it is past; None while it reads the store."""


class ChangeWatcher:
    """Sends changes to watchers."""

    def __init__(
        self,
        store: VectorStore,
        time_source: TimeSource,
        poller: Poller,
        resources: ResourcesByKind,
        keep: int,
    ) -> None:
        """``keep``: microseconds for which a cursor is valid."""
        self._store = store
        self._time = time_source
        self._feed = poller.feed
        self._poller = poller
        self._resources = resources
        self.watched = resources.registry.watched
        """The kinds that can be watched, in the order of a watch from the start."""
        self.watched_by_default = resources.registry.watched_by_default
        self._keep = keep
        self._followers: set[_Follower] = set()
        FEED_BEHIND.follow(self, ChangeWatcher.most_behind)

    def most_behind(self) -> int:
        """How many changes the slowest of the watchers that follow live has not been sent."""
        sent = [one.sent for one in self._followers if one.sent is not None]
        return self._poller.count - min(sent, default=self._poller.count)

    async def watch(self, request: WatchRequest) -> AsyncGenerator[ChangeBatch, None]:
        """News until the caller has enough; the first comes at once, without changes.

        Raises CursorExpiredError, and what the store raises.
        """
        if not request.resource_kinds:
            request = replace(request, resource_kinds=self.watched_by_default)
        async with self._poller.following(request.resource_kinds) as wake:
            cursor = await self._begin(request)
            since = cursor.positions if cursor.since is None else cursor.since
            follower = _Follower(request, wake, dict(cursor.positions), since)
            self._followers.add(follower)
            try:
                yield ChangeBatch([], cursor)
                if cursor.scan is not None:
                    async for batch in self._scan(follower, cursor.scan):
                        yield batch
                async for batch in self._follow(follower):
                    yield batch
            finally:
                self._followers.discard(follower)

    def matched(
        self, namespace: str, query: str, hits: Sequence[tuple[str, float]], retrieval_id: str
    ) -> None:
        """Tell those who watch just now that patterns were found: (id, similarity), best first."""
        now = self._time.now()
        for follower in self._followers:
            request = follower.request
            if (
                request.namespace != namespace
                or ResourceKind.PATTERN not in request.resource_kinds
                or not request.wants(ChangeType.PATTERN_MATCHED)
            ):
                continue
            for pattern_id, similarity in hits:
                match = PatternMatch(pattern_id, query, similarity, retrieval_id)
                thing = match if request.payload else None
                kind = ChangeType.PATTERN_MATCHED
                follower.live.append(
                    ChangeEvent(namespace, kind, ResourceKind.PATTERN, pattern_id, now, thing, None)
                )
            follower.wake.set()

    def suggested(
        self,
        namespace: str,
        task: str,
        pattern_ids: Sequence[str],
        episode_ids: Sequence[str],
        retrieval_id: str,
    ) -> None:
        """Tell those who watch just now, patterns or episodes, that a context was given."""
        suggestion = ContextSuggestion(task, tuple(pattern_ids), tuple(episode_ids), retrieval_id)
        kind, now = ChangeType.CONTEXT_SUGGESTED, self._time.now()
        for follower in self._followers:
            request = follower.request
            concerned = (
                ResourceKind.PATTERN in request.resource_kinds
                or ResourceKind.EPISODE in request.resource_kinds
            )
            if request.namespace == namespace and concerned and request.wants(kind):
                thing = suggestion if request.payload else None
                follower.live.append(
                    ChangeEvent(namespace, kind, None, retrieval_id, now, thing, None)
                )
                follower.wake.set()

    # --- beginning ----------------------------------------------------------------------------

    async def _begin(self, request: WatchRequest) -> Cursor:
        now, ends = self._time.now(), await self._poller.ends()
        if request.cursor is None:
            scan = ScanPosition(request.resource_kinds[0]) if request.from_start else None
            return Cursor(now, ends, scan=scan)
        if request.cursor.time < now - self._keep:
            raise CursorExpiredError("it is older than the retained changes")
        if not request.cursor.positions.keys() & ends.keys():
            raise CursorExpiredError("it is from another store, or from one that was recreated")
        return request.cursor

    # --- what was there -----------------------------------------------------------------------

    async def _scan(
        self, follower: _Follower, at: ScanPosition
    ) -> AsyncGenerator[ChangeBatch, None]:
        """Everything that exists, kind by kind, newest first."""
        resource_kinds = [
            resource_kind
            for resource_kind in self.watched
            if resource_kind in follower.request.resource_kinds
        ]
        order = list(self.watched)
        for resource_kind in resource_kinds:
            if order.index(resource_kind) < order.index(at.resource_kind):
                continue
            after = None
            if resource_kind is at.resource_kind and at.sort_key is not None:
                after = Position(at.sort_key, at.seen)
            async for batch in self._scan_kind(follower, resource_kind, after):
                yield batch
        yield ChangeBatch([], self._cursor(follower))

    async def _scan_kind(
        self, follower: _Follower, resource_kind: str, after: Position | None
    ) -> AsyncGenerator[ChangeBatch, None]:
        watched, request = self.watched[resource_kind], follower.request
        collection = watched.collection.name
        while True:
            records, behind = await read_page(
                self._store, collection, request.namespace, (), _AT_ONCE, after, _as_they_are
            )
            changes = []
            at = after
            for record in records:
                at = Position.behind(record, at)
                if not request.wants(ChangeType.STORED):
                    continue
                place = ScanPosition(resource_kind, at.sort_key, at.seen)
                changes.append(
                    ChangeEvent(
                        request.namespace,
                        ChangeType.STORED,
                        resource_kind,
                        record.payload[watched.id_key],
                        record.payload["create_time"],
                        await self._resources.of(resource_kind).read(record)
                        if request.payload
                        else None,
                        self._cursor(follower, place),
                    )
                )
            if at is not None:
                place = ScanPosition(resource_kind, at.sort_key, at.seen)
                yield ChangeBatch(changes, self._cursor(follower, place))
            if behind is None:
                return
            after = behind

    # --- what changed since, and what changes ---------------------------------------------------

    async def _follow(self, follower: _Follower) -> AsyncGenerator[ChangeBatch, None]:
        number: int | None = None
        loop = asyncio.get_running_loop()
        sent_at = loop.time()
        while True:
            follower.wake.clear()
            polled = None if number is None else self._poller.behind(number)
            upto = self._poller.positions
            if polled is None:  # not that far yet, or too far behind: read the store
                number, follower.sent = self._poller.count, None
                async for batch in self._catch_up(follower, upto):
                    yield batch
                    sent_at = loop.time()
                continue
            number = self._poller.count
            since = follower.since
            for start in range(0, len(polled), _AT_ONCE):
                changes = []
                for one in polled[start : start + _AT_ONCE]:
                    follower.since = _later(one.since, since)
                    changes += await self._events(follower, one.change)
                if changes:
                    yield ChangeBatch(changes, self._cursor(follower))
                    sent_at = loop.time()
            follower.sent = number
            follower.positions = _later(upto, follower.positions)
            follower.since = dict(follower.positions)
            if follower.live:
                live = list(follower.live)
                follower.live.clear()
                yield ChangeBatch(live, self._cursor(follower))
                sent_at = loop.time()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(sent_at + follower.request.heartbeat):
                    await follower.wake.wait()
            if loop.time() >= sent_at + follower.request.heartbeat:
                yield ChangeBatch([], self._cursor(follower))
                sent_at = loop.time()

    async def _catch_up(
        self, follower: _Follower, upto: Positions
    ) -> AsyncGenerator[ChangeBatch, None]:
        request = follower.request
        while short_of(follower.positions, upto):
            stretch = await self._feed.read(
                follower.positions, upto, request.namespace, resource_kinds=request.resource_kinds
            )
            for start in range(0, len(stretch.changes), _AT_ONCE):
                changes = []
                for change in stretch.changes[start : start + _AT_ONCE]:
                    changes += await self._events(follower, change)
                if changes:
                    yield ChangeBatch(changes, self._cursor(follower))
            follower.positions = stretch.reached
        follower.since = dict(follower.positions)

    async def _events(self, follower: _Follower, change: Change) -> list[ChangeEvent]:
        """The change as sent; nothing if it is outdated or does not concern the follower."""
        request = follower.request
        if change.seq <= follower.positions.get(change.writer_id, 0):
            return []
        follower.positions[change.writer_id] = change.seq
        kind = change.type_since(follower.since)
        if (
            change.namespace != request.namespace
            or not change.concerns(request.resource_kinds)
            or not request.wants(kind)
        ):
            return []
        thing = None
        if change.resource_kind and not change.cleared and (request.payload or change.deleted):
            watched = self.watched[change.resource_kind]
            point = watched.point_of(change.namespace, change.id)
            found = await self._store.get(watched.collection.name, change.namespace, [point])
            record = found.get(point)
            if (record is None) is not change.deleted:
                return []  # deleted since, or stored again: that is a change of its own
            if record is not None:
                thing = await self._resources.of(watched.kind).read(record)
        cursor = self._cursor(follower)
        return [
            ChangeEvent(
                change.namespace, kind, change.resource_kind, change.id, change.seq, thing, cursor
            )
        ]

    def _cursor(self, follower: _Follower, scan: ScanPosition | None = None) -> Cursor:
        since = None if follower.since == follower.positions else follower.since
        return Cursor(self._time.now(), dict(follower.positions), since, scan)


async def _as_they_are(records: Sequence[Record]) -> list[Record]:
    return list(records)


def _later(one: Positions, other: Positions) -> dict[str, int]:
    return {
        replica: max(one.get(replica, 0), other.get(replica, 0))
        for replica in one.keys() | other.keys()
    }
