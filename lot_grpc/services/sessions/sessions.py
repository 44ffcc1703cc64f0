"""Sessions as a whole: reading, clearing, and sweeping expired ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import SessionNotFoundError
from lot_grpc.domain.session import MAX_VALUES, Session
from lot_grpc.kernel.compare_and_set import ConflictError, compare_and_set
from lot_grpc.kernel.tombstones import Tombstone
from lot_grpc.ports import (
    EXPIRES_KEY,
    Equals,
    IdIn,
    Order,
    Payload,
    Range,
    Record,
)
from lot_grpc.services.operations import Resources
from lot_grpc.services.records.collections import SESSION_PARTS, SESSIONS, SORT_KEY
from lot_grpc.services.records.sessions import (
    FORMER,
    IMPORTANCE,
    MESSAGE,
    OVERHEAD,
    SEQUENCE,
    SIZE,
    VALUE,
    SessionRow,
    at_most_important,
    importance_of,
    kind_of,
    message_from_payload,
    session_record,
    session_row,
    value_from_record,
    value_point,
)
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.sessions.rows import NO_TERMS, SessionRows
from lot_grpc.services.sessions.session_messages import SessionMessages
from lot_grpc.services.sessions.spec import SESSION
from lot_grpc.services.time_slice import TimeSlice

_NEWEST_FIRST = Order(SEQUENCE, descending=True)
_READ_BYTES = 2**20
"""Bytes read at once; larger reads yield in between."""
_READ_PARTS = 200
_SWEEP_BATCH = 200
_GRACE = 60 * 1_000_000
"""How long an expired session of a shared store is kept, in microseconds: for a process whose clock
is slow it may not have expired yet."""


class Sessions(Resources[Session, None]):
    """The sessions of all namespaces."""

    def __init__(self, runtime: Runtime, rows: SessionRows, messages: SessionMessages) -> None:
        super().__init__(SESSION, runtime)
        self._rows = rows
        self._messages = messages

    # --- reading ------------------------------------------------------------------------------

    async def get(
        self,
        namespace: str,
        session_id: str,
        message_limit: int = 0,
        max_bytes: int = 0,
        before: int = 0,
    ) -> Session:
        """A session with its values, the most important first, and the latest messages, in order.

        ``message_limit`` 0: all of the window. ``max_bytes``: values up to half of them, and
        messages up to all, but one at least; 0: however large it is. ``before``: only messages of a
        lower sequence, and no values; 0: all. Raises SessionNotFoundError, ContentionError.
        """

        async def attempt() -> Session:
            row = await self._rows.find(namespace, session_id)
            if row is None:
                raise SessionNotFoundError(namespace, session_id)
            return await self._read(row, message_limit, max_bytes, before)

        return await compare_and_set(ResourceKind.SESSION, session_id, attempt)

    async def _read(
        self, row: SessionRow, message_limit: int, max_bytes: int, before: int
    ) -> Session:
        """The session of a row. Raises ConflictError if it was cleared meanwhile."""
        latest = row.latest if not 0 < before <= row.last_sequence else {}
        older = min(message_limit or row.message_count, row.message_count) - bool(latest)
        behind = min(before or row.last_sequence, row.last_sequence)
        messages = (
            await self._store.scroll(
                SESSION_PARTS,
                row.namespace,
                [
                    *kind_of(row, MESSAGE),
                    Range(SEQUENCE, gt=row.gone_sequence, lt=behind),
                ],
                limit=older,
                order=_NEWEST_FIRST,
                payload=(SEQUENCE, SIZE),
            )
            if older > 0
            else []
        )
        values = (
            await self._store.scroll(
                SESSION_PARTS,
                row.namespace,
                kind_of(row, VALUE),
                limit=2 * MAX_VALUES,
                payload=("key", SIZE, IMPORTANCE),
            )
            if not before
            else []
        )
        values.sort(key=lambda one: (-importance_of(one.payload), str(one.payload["key"])))
        keys = [one.payload["key"] for one in values]
        ended = False
        if max_bytes:
            max_bytes -= sum(len(key.encode()) + 4 for key in keys)  # some may be omitted
            values, room = _fitting(values, max_bytes // 2)
            room += max_bytes - max_bytes // 2 - (_size(latest) if latest else 0)
            fitting, _ = _fitting(messages, room)
            if not fitting and not latest:
                fitting = messages[:1]
            ended = len(fitting) < len(messages)
            messages = fitting
        omitted = tuple(keys[len(values) :])
        found = await self._read_parts(row, [*values, *messages])
        if (len(messages) < older and not ended) or len(found) < len(values) + len(messages):
            there = await self._rows.find(row.namespace, row.session_id)
            if there is None or there.generation != row.generation:
                raise ConflictError
        payloads = [found[one.id].payload for one in reversed(messages) if one.id in found]
        if latest:
            payloads.append(latest)
        return replace(
            row.session(),
            values={
                one.payload["key"]: value_from_record(found[one.id])
                for one in values
                if one.id in found
            },
            messages=tuple(map(message_from_payload, payloads)),
            omitted_keys=omitted,
            ended_early=ended,
        )

    async def _read_parts(self, row: SessionRow, parts: Sequence[Record]) -> dict[str, Record]:
        found: dict[str, Record] = {}
        time_slice = TimeSlice()
        batch: list[str] = []
        size = 0
        for number, part in enumerate(parts, 1):
            batch.append(part.id)
            size += part.payload[SIZE]
            if size >= _READ_BYTES or len(batch) >= _READ_PARTS or number == len(parts):
                found |= await self._store.get(SESSION_PARTS, row.namespace, batch)
                await time_slice.give_way()
                batch, size = [], 0
        return found

    # --- clearing -----------------------------------------------------------------------------

    async def clear(
        self,
        namespace: str,
        session_id: str,
        keys: Sequence[str] = (),
        *,
        clear_messages: bool = False,
        max_importance: float | None = None,
    ) -> None:
        """Clear a session, or only some values, all messages, or both.

        ``max_importance``: values of at most this importance; None: none by it.
        Raises SessionNotFoundError, ContentionError.
        """

        async def attempt() -> None:
            row = await self._rows.find(namespace, session_id)
            if row is None:
                raise SessionNotFoundError(namespace, session_id)
            if not keys and not clear_messages and max_importance is None:
                await self._clear(row)
            else:
                await self._clear_parts(row, keys, max_importance, messages=clear_messages)

        async with self._rows.turn(namespace, session_id):
            await compare_and_set(ResourceKind.SESSION, session_id, attempt)

    async def delete(self, namespace: str, id: str, etag: str = "") -> None:
        """Clear a session; it has no etag."""
        await self.clear(namespace, id)

    async def _clear(self, row: SessionRow) -> None:
        if row.former:
            await self._rows.forget(row.namespace, row.session_id, row.former)
        stone = await self._tombstones.begin(
            ResourceKind.SESSION, row.session_id, session_record(row)
        )
        # Whatever is written to it until it is gone goes with it.
        await self._store.delete(
            SESSIONS, row.namespace, [IdIn((row.point,)), Equals(SORT_KEY, row.generation)]
        )
        await self._rows.forget(row.namespace, row.session_id, (row.generation,))
        await self._tombstones.finish(stone)

    async def _drop_dependents(self, stone: Tombstone, left: Record | None) -> None:
        await self._rows.forget(stone.namespace, stone.id, (stone.sort_key,))

    async def _clear_parts(
        self, row: SessionRow, keys: Sequence[str], max_importance: float | None, *, messages: bool
    ) -> None:
        """Clear some values, and all messages. Raises ConflictError."""
        if max_importance is not None:
            where = [*kind_of(row, VALUE), at_most_important(max_importance)]
            await self._store.delete(SESSION_PARTS, row.namespace, where)
        if keys:
            points = tuple(value_point(row, key) for key in keys)
            await self._store.delete(SESSION_PARTS, row.namespace, [IdIn(points)])
        if not messages:
            await self._rows.renew(row, NO_TERMS)
            return
        renewed = await self._rows.renew(
            row,
            NO_TERMS,
            gone_sequence=row.last_sequence,
            latest={},
            pending=await self._messages.pending(row),
        )
        await self._messages.trim(renewed)

    # --- sweeping -----------------------------------------------------------------------------

    async def sweep(self) -> int:
        """Delete expired sessions and the remains of earlier ones; return how many expired."""
        await self._sweep_former()
        due = self._time.now() - (0 if self._store.exclusive else _GRACE)
        time_slice = TimeSlice()
        swept = 0
        while True:
            lapsed = await self._store.expired(SESSIONS, limit=_SWEEP_BATCH)
            gone = [one for one in lapsed if one.payload[EXPIRES_KEY] <= due]
            for record in gone:
                row = session_row(record)
                generations = (row.generation, *row.former)
                await self._rows.forget(row.namespace, row.session_id, generations)
                await self._store.delete(
                    SESSIONS, row.namespace, [IdIn((record.id,)), *row.conditions()]
                )
                await time_slice.give_way()
            swept += len(gone)
            if not gone or len(lapsed) < _SWEEP_BATCH:
                return swept

    async def _sweep_former(self) -> None:
        """Finish what a process left that made a session and died before its first write."""
        left = [Range(FORMER, gt=0)]
        for record in await self._store.scroll(SESSIONS, None, left, limit=_SWEEP_BATCH):
            row = session_row(record)
            await self._rows.forget(row.namespace, row.session_id, row.former)
            await self._store.update(
                SESSIONS, row.namespace, record.id, set={FORMER: []}, when=row.conditions()
            )


def _size(payload: Payload) -> int:
    size: int = payload[SIZE]
    return size + OVERHEAD + len(payload.get("key", "").encode())  # a key is sent twice


def _fitting(parts: list[Record], room: int) -> tuple[list[Record], int]:
    """As many of the first parts as fit, and the remaining room."""
    for number, part in enumerate(parts):
        if _size(part.payload) > room:
            return parts[:number], room
        room -= _size(part.payload)
    return parts, room
