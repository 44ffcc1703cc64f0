"""Records without a sort key of their own, read thing by thing.

The events of an episode, the former values of a preference, the values and messages of a session.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TypeAlias

from lot_grpc.domain.session import MAX_VALUES
from lot_grpc.ports import Order, Range, Record, VectorStore
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.records.collections import (
    EPISODES,
    EVENTS,
    PREFERENCE_REVISIONS,
    PREFERENCES,
    SESSION_PARTS,
    SESSIONS,
)
from lot_grpc.services.records.episodes import stage_of
from lot_grpc.services.records.preferences import REVISION, revisions_of
from lot_grpc.services.records.sessions import (
    VALUE,
    SessionRow,
    kind_of,
    message_point,
    session_row,
)

Read: TypeAlias = Callable[[Record, str], AsyncIterator[tuple[Record, str]]]
"""The records of a thing in order, from behind a name on, each with its name."""

_EVENTS = 200
_PARTS = 16
"""Read at once; a part may have half a megabyte."""

_VALUES, _MESSAGES = "v", "w"
"""How names begin, in the order in which they come."""


@dataclass(frozen=True, slots=True)
class Inner:
    """``outer`` is the collection of the things, ``read`` gives what one has."""

    outer: str
    read: Read


class InnerRows:
    """Reads them."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store
        self._log = EventLog(store)
        self.by_kind = {
            EVENTS: Inner(EPISODES, self._events),
            PREFERENCE_REVISIONS: Inner(PREFERENCES, self._revisions),
            SESSION_PARTS: Inner(SESSIONS, self._parts),
        }

    async def _events(self, episode: Record, after: str) -> AsyncIterator[tuple[Record, str]]:
        """The events that stand, by number."""
        stage, episode_id = stage_of(episode.payload), episode.payload["episode_id"]
        last = int(after or 0)
        while True:
            limit = _EVENTS
            if stage.status.ended:
                limit = min(limit, stage.event_count - last)
            if limit <= 0:
                return
            found = await self._log.records(
                episode.namespace, episode_id, last, limit, stage.committed
            )
            for record in found:
                yield record, str(record.payload["sequence"])
            if len(found) < limit:
                return
            last += limit

    async def _revisions(self, stored: Record, after: str) -> AsyncIterator[tuple[Record, str]]:
        """Former values by number, the oldest first."""
        last = int(after or 0)
        while True:
            found = await self._store.scroll(
                PREFERENCE_REVISIONS,
                stored.namespace,
                [*revisions_of(stored), Range(REVISION, gt=last)],
                limit=_PARTS,
                order=Order(REVISION),
            )
            for record in found:
                last = record.payload[REVISION]
                yield record, str(last)
            if len(found) < _PARTS:
                return

    async def _parts(self, session: Record, after: str) -> AsyncIterator[tuple[Record, str]]:
        """Values by key, then messages by number."""
        row = session_row(session)
        if not after.startswith(_MESSAGES):
            async for part in self._values(row, after.removeprefix(_VALUES)):
                yield part
        first = int(after[1:]) if after.startswith(_MESSAGES) else 0
        last = max(first, row.gone_sequence)
        while last < row.last_sequence:
            numbers = range(last + 1, min(last + _PARTS, row.last_sequence) + 1)
            points = {message_point(row, number): number for number in numbers}
            found = await self._store.get(SESSION_PARTS, row.namespace, list(points))
            for point, number in points.items():
                if point in found:  # else it fell out of the window meanwhile
                    yield found[point], f"{_MESSAGES}{number}"
            last = numbers[-1]

    async def _values(self, row: SessionRow, after: str) -> AsyncIterator[tuple[Record, str]]:
        named = await self._store.scroll(
            SESSION_PARTS,
            row.namespace,
            kind_of(row, VALUE),
            limit=2 * MAX_VALUES,
            payload=("key",),
        )
        named = sorted(
            (one for one in named if one.payload["key"] > after),
            key=lambda one: str(one.payload["key"]),
        )
        for start in range(0, len(named), _PARTS):
            batch = named[start : start + _PARTS]
            found = await self._store.get(SESSION_PARTS, row.namespace, [one.id for one in batch])
            for one in batch:
                if one.id in found:
                    yield found[one.id], f"{_VALUES}{one.payload['key']}"
