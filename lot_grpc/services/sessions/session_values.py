"""The values of a session, by key."""

from __future__ import annotations

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import SessionFullError, SessionNotFoundError
from lot_grpc.domain.preference import GENERAL
from lot_grpc.domain.quota import Usage
from lot_grpc.domain.session import (
    DEFAULT_IMPORTANCE,
    MAX_VALUES,
    MAX_VALUES_BYTES,
    SessionValue,
)
from lot_grpc.kernel.compare_and_set import compare_and_set
from lot_grpc.ports import Record
from lot_grpc.services.records.collections import SESSION_PARTS
from lot_grpc.services.records.sessions import (
    SIZE,
    VALUE,
    SessionRow,
    kind_of,
    value_from_record,
    value_point,
    value_record,
)
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.sessions.rows import SessionRows, Terms


class SessionValues:
    """Puts and reads values."""

    def __init__(self, runtime: Runtime, rows: SessionRows) -> None:
        self._store = runtime.store
        self._time = runtime.time
        self._quotas = runtime.stack.quotas
        self._rows = rows

    async def put(
        self,
        namespace: str,
        session_id: str,
        key: str,
        value: bytes,
        ttl: int | None = None,
        *,
        category: str = GENERAL,
        importance: float = DEFAULT_IMPORTANCE,
    ) -> int:
        """Put a value, creating the session if it does not exist; return when the session expires.

        Several processes that put new keys at once may go beyond the bound by one each. Raises
        SessionFullError, ContentionError.
        """
        terms = Terms(ttl=ttl)
        stored = SessionValue(value, category, importance, self._time.now())
        admitted: int | None = None  # the generation that had room

        async def attempt() -> int:
            nonlocal admitted
            row = await self._rows.open(namespace, session_id, terms)
            part = value_record(row, key, stored)
            many, large = await self._room(row, part, sure=admitted == row.generation)
            admitted = row.generation
            await self._store.put(SESSION_PARTS, [part])
            renewed = await self._rows.renew(
                row, terms, [part.id], values_put=many, bytes_put=large
            )
            return renewed.expire_time

        async def measure() -> Usage:
            row, growth = await self._rows.measured(namespace, session_id)
            return growth + await self._quotas.growth(
                SESSION_PARTS, [value_record(row, key, stored)]
            )

        async with (
            self._rows.turn(namespace, session_id),
            self._quotas.reserved(namespace, measure),
        ):
            return await compare_and_set(ResourceKind.SESSION, session_id, attempt)

    async def get(self, namespace: str, session_id: str, key: str) -> SessionValue | None:
        """A value; None if the key does not exist. Raises SessionNotFoundError."""
        row = await self._rows.find(namespace, session_id)
        if row is None:
            raise SessionNotFoundError(namespace, session_id)
        point = value_point(row, key)
        found = (await self._store.get(SESSION_PARTS, namespace, [point])).get(point)
        return None if found is None else value_from_record(found)

    async def _room(self, row: SessionRow, part: Record, *, sure: bool) -> tuple[int, int]:
        """How many values, and bytes of them, there are at most with this one.

        They are counted only where what was put since the last time could be too much. ``sure``: it
        was admitted before. Raises SessionFullError.
        """
        size: int = part.payload[SIZE]
        many, large = row.values_put + 1, row.bytes_put + size
        if sure or (many <= MAX_VALUES and large <= MAX_VALUES_BYTES):
            return many, large
        if (
            row.values_put <= MAX_VALUES
            and large <= MAX_VALUES_BYTES
            and await self._store.get(SESSION_PARTS, row.namespace, [part.id])
        ):
            return row.values_put, large
        parts = await self._store.scroll(
            SESSION_PARTS,
            row.namespace,
            kind_of(row, VALUE),
            limit=2 * MAX_VALUES,
            payload=(SIZE,),
        )
        others = [one.payload[SIZE] for one in parts if one.id != part.id]
        many, large = len(others) + 1, sum(others) + size
        if many > MAX_VALUES:
            raise SessionFullError(row.namespace, row.session_id, f"{MAX_VALUES:,} values")
        if large > MAX_VALUES_BYTES:
            limit = f"{MAX_VALUES_BYTES // 2**20} MiB of values"
            raise SessionFullError(row.namespace, row.session_id, limit)
        return many, large
