"""Group commit: appends that wait at the same time go to the store in one insert.

A Qdrant server is asked twice for each insert, however few events it has; the embedded store looks
once at the disk's free space and, if it syncs, at the disk. So hundreds of streams that bring ten
events at a time share inserts. Whoever comes while one is due or under way joins the next. A caller
that leaves takes just its own events out of what waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextvars import Context
from dataclasses import dataclass

from lot_grpc.domain.errors import NamespaceClearingError
from lot_grpc.ports import Record, VectorStore
from lot_grpc.services.records.collections import EVENTS

_RECORDS_AT_ONCE = 500
"""In one insert, unless a single append has more: the embedded store stands for all others while it
writes them, which takes it some 20 ms (measured)."""

_CHARACTERS_AT_ONCE = 4 * 2**20
"""Of data in one insert, unless a single append has more: stores bound the size of a request."""


@dataclass(eq=False, slots=True)
class _Append:
    """What one caller waits for: the ids of its records that were inserted."""

    records: Sequence[Record]
    inserted: asyncio.Future[set[str]]

    def of(self, namespace: str) -> bool:
        """Whether it is of this namespace."""
        return any(record.namespace == namespace for record in self.records)


class EventWriter:
    """Inserts events, those of many callers together."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store
        self._waiting: deque[_Append] = deque()
        self._flusher: asyncio.Task[None] | None = None
        """There while anything waits, and ends by itself."""

    async def insert(self, records: Sequence[Record], *, alone: bool = False) -> set[str]:
        """Insert records whose id is free; return the ids that this call inserted.

        Returns once the store has. Records of one call stay together in one insert of the store.
        Whatever the insert raises, all who share it are told. ``alone``: nobody else records now,
        so that there is nothing to share and no turn of the loop to wait for.
        """
        if alone:
            return await self._store.insert(EVENTS, records)
        append = _Append(records, asyncio.get_running_loop().create_future())
        self._waiting.append(append)
        if self._flusher is None:
            # It writes for many callers, and belongs to the call of none.
            self._flusher = asyncio.create_task(self._flush(), context=Context())
        return await append.inserted

    async def _flush(self) -> None:
        try:
            while self._waiting:
                await self._write(self._next())
                if self._waiting:  # the embedded store gave nobody a turn
                    await asyncio.sleep(0)
        finally:  # else nobody would ever write what waits, if this task is cancelled
            self._flusher = None
            for append in self._waiting:
                append.inserted.cancel()
            self._waiting.clear()

    def _next(self) -> list[_Append]:
        """The appends that have waited longest, as many as one insert takes."""
        appends: list[_Append] = []
        records = characters = 0
        while self._waiting:
            append = self._waiting[0]
            if append.inserted.done():  # its caller has left
                self._waiting.popleft()
                continue
            records += len(append.records)
            characters += sum(len(one.payload.get("data", "")) for one in append.records)
            if appends and (records > _RECORDS_AT_ONCE or characters > _CHARACTERS_AT_ONCE):
                break
            appends.append(self._waiting.popleft())
        return appends

    async def _write(self, appends: Sequence[_Append]) -> None:
        if not appends:
            return
        records = [record for append in appends for record in append.records]
        try:
            inserted = await self._store.insert(EVENTS, records)
        except NamespaceClearingError as error:
            cleared = [one for one in appends if one.of(error.namespace)]
            for append in cleared:
                if not append.inserted.done():
                    append.inserted.set_exception(error)
            await self._write([one for one in appends if one not in cleared])
            return
        except asyncio.CancelledError:
            for append in appends:
                append.inserted.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - it belongs to those who wait
            for append in appends:
                if not append.inserted.done():
                    append.inserted.set_exception(error)
            return
        left = set(inserted)
        for append in appends:
            # Of two with one id the first was stored, so that it is taken for the second.
            own = left.intersection([record.id for record in append.records])
            left -= own
            if not append.inserted.done():
                append.inserted.set_result(own)
