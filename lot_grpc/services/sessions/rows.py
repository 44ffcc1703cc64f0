"""The rows of sessions: found, created and renewed, each by compare-and-set.

A write to a session first writes its part and then renews the row, which makes the change visible
in the feed and extends the expiry. A renewal that succeeds proves that the session existed
throughout; one that fails because it was cleared or expired removes the part again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakValueDictionary

from lot_grpc.domain.quota import Usage
from lot_grpc.domain.session import DEFAULT_MAX_MESSAGES, DEFAULT_TTL
from lot_grpc.kernel.compare_and_set import ConflictError, insert_new
from lot_grpc.ports import Equals, IdIn
from lot_grpc.services.records.collections import SESSION_PARTS, SESSIONS
from lot_grpc.services.records.sessions import (
    GENERATION,
    LATEST,
    SessionRow,
    parts_of,
    session_point,
    session_record,
    session_row,
    written_payload,
)
from lot_grpc.services.runtime import Runtime

_GENERATIONS = 1000


@dataclass(frozen=True, slots=True)
class Terms:
    """What a write may set: ``max_messages`` 0 and ``ttl`` None leave the session's own."""

    max_messages: int = 0
    ttl: int | None = None


NO_TERMS = Terms()


class SessionRows:
    """The rows of all namespaces."""

    def __init__(self, runtime: Runtime) -> None:
        self._store = runtime.store
        self._time = runtime.time
        self._quotas = runtime.stack.quotas
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def turn(self, namespace: str, session_id: str) -> asyncio.Lock:
        """Serialise the writers of one session in this process.

        Between processes compare-and-set decides; this only spares a process its own fights.
        """
        point = session_point(namespace, session_id)
        lock = self._turns.get(point)
        if lock is None:
            self._turns[point] = lock = asyncio.Lock()
        return lock

    async def find(self, namespace: str, session_id: str) -> SessionRow | None:
        """The row of a session; None if it does not exist or has expired."""
        point = session_point(namespace, session_id)
        found = (await self._store.get(SESSIONS, namespace, [point])).get(point)
        return None if found is None else session_row(found)

    async def open(
        self, namespace: str, session_id: str, terms: Terms, generation: int = 0
    ) -> SessionRow:
        """The row of a session, created if it does not exist.

        ``generation`` is that of one that is made, 0: a new one. Raises ConflictError if another
        made it just now.
        """
        found = await self.find(namespace, session_id)
        if found is not None:
            return found
        where = [Equals("session_id", session_id)]
        # Those that are there before the row is belong to no session that can be written any more.
        left = await self._store.facet(
            SESSION_PARTS, namespace, GENERATION, where, limit=_GENERATIONS
        )
        row = replace(
            self._new(namespace, session_id, terms, generation or self._time.sort_key()),
            former=tuple(sorted(int(one) for one in left)),
        )
        await insert_new(self._store, SESSIONS, session_record(row))
        return row

    async def measured(self, namespace: str, session_id: str) -> tuple[SessionRow, Usage]:
        """The row of a session, or one that is not stored, and how much that would add."""
        found = await self.find(namespace, session_id)
        if found is not None:
            return found, Usage()
        row = self._new(namespace, session_id, NO_TERMS, 0)
        return row, await self._quotas.growth(SESSIONS, [session_record(row)])

    def _new(self, namespace: str, session_id: str, terms: Terms, generation: int) -> SessionRow:
        now, ttl = self._time.now(), terms.ttl or DEFAULT_TTL
        max_messages = terms.max_messages or DEFAULT_MAX_MESSAGES
        given = (namespace, session_id, generation, max_messages, ttl)
        return SessionRow(*given, create_time=now, update_time=now, expire_time=now + ttl)

    async def renew(
        self, row: SessionRow, terms: Terms, parts: Sequence[str] = (), **changed: Any
    ) -> SessionRow:
        """Replace the row that was read.

        Raises ConflictError if that is another by now, or lapsed; the points of ``parts`` that were
        written for it are taken back then.
        """
        if row.former:
            await self.forget(row.namespace, row.session_id, row.former)
        now = self._time.now()
        ttl = terms.ttl or row.ttl
        new = replace(
            row,
            revision=row.revision + 1,
            max_messages=terms.max_messages or row.max_messages,
            ttl=ttl,
            update_time=max(now, row.update_time),
            expire_time=now + ttl,
            former=(),
            **changed,
        )
        payload = written_payload(new)
        if "latest" in changed:
            payload[LATEST] = new.latest
        if await self._store.update(
            SESSIONS, row.namespace, row.point, set=payload, when=row.conditions()
        ):
            return new
        there = await self.find(row.namespace, row.session_id) if parts else None
        if parts and (there is None or there.generation != row.generation):
            await self._store.delete(SESSION_PARTS, row.namespace, [IdIn(tuple(parts))])
        raise ConflictError

    async def forget(self, namespace: str, session_id: str, generations: Iterable[int]) -> None:
        """Delete all parts of sessions that are gone."""
        await self._store.delete(SESSION_PARTS, namespace, parts_of(session_id, generations))
