"""Group commit: appends that are pending at the same time go to the store in one insert.

Each insert costs two requests to a Qdrant server, however few events it has; the embedded store
checks the disk's free space once and may sync once. So hundreds of streams with ten events at a
time share inserts. An append that arrives while one is due or in progress joins the next. A caller
that is cancelled only withdraws its own events.

Streams send more as soon as events are acknowledged, so many of them would keep the event loop to
themselves. While calls are running, inserts therefore get a bounded share of its time.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from contextvars import Context
from dataclasses import dataclass

from lot_grpc.domain.errors import NamespaceClearingError, QuotaExceededError
from lot_grpc.ports import Record, VectorStore
from lot_grpc.services.records.collections import EVENTS
from lot_grpc.services.records.episodes import EVENT
from lot_grpc.services.reindex.gate import ModelGate
from lot_grpc.work import follow_up, is_follow_up

_RECORDS_AT_ONCE = 500
"""Events in one insert, unless a single append has more: the embedded store blocks the event loop
while it writes them, for about 20 ms (measured)."""

_CHARACTERS_AT_ONCE = 4 * 2**20
"""Bytes of data in one insert, unless a single append has more: stores limit the request size."""

_INSERT_SHARE = 1 / 3
"""While calls are running, inserts get this share of the event loop. Parsing and acknowledging
events takes as much again, so a third is left for calls."""

_UNSHARED_SECONDS = 0.1
"""How far inserts may run ahead of their share, so that short bursts are not delayed."""


@dataclass(eq=False, slots=True)
class _Append:
    """A pending append; its result is the ids of the records that were inserted."""

    records: Sequence[Record]
    inserted: asyncio.Future[set[str]]
    follow_up: bool

    def of(self, namespace: str) -> bool:
        """Whether it belongs to this namespace."""
        return any(record.namespace == namespace for record in self.records)


class EventWriter:
    """Inserts the events of many callers together."""

    def __init__(self, store: VectorStore, gate: ModelGate | None = None) -> None:
        """``gate``: tells whether calls are running; None: they never are."""
        self._store = store
        self._gate = gate
        self._paid_until = 0.0
        """The loop's time at which inserts so far will be within their share."""
        self._waiting: deque[_Append] = deque()
        self._flusher: asyncio.Task[None] | None = None
        """The task that writes; it exists while anything is pending and ends by itself."""

    async def insert(self, records: Sequence[Record], *, alone: bool = False) -> set[str]:
        """Insert records whose id is free; return the ids that this call inserted.

        Returns once the store has them. Records of one call stay together in one insert. If the
        insert raises, so do all calls that share it. ``alone``: no other stream is recording, so
        there is nothing to share and no need to wait for a turn of the event loop.
        """
        if alone:
            return await self._store.insert(EVENTS, records)
        future = asyncio.get_running_loop().create_future()
        append = _Append(records, future, is_follow_up())
        self._waiting.append(append)
        if self._flusher is None:
            # It writes for many callers, so it must not inherit one call's context.
            self._flusher = asyncio.create_task(self._flush(), context=Context())
        return await append.inserted

    async def _flush(self) -> None:
        try:
            while self._waiting:
                began = time.thread_time()
                await self._write(self._next())
                pause = self._pause(time.thread_time() - began)
                if pause or self._waiting:  # the embedded store does not yield
                    await asyncio.sleep(pause)
        finally:  # else a cancellation would leave pending appends unwritten forever
            self._flusher = None
            for append in self._waiting:
                append.inserted.cancel()
            self._waiting.clear()

    def _pause(self, seconds: float) -> float:
        """How long to pause after an insert that took ``seconds``, so that calls can run."""
        now = asyncio.get_running_loop().time()
        due = max(self._paid_until, now) + seconds / _INSERT_SHARE
        # If an insert waits for the disk, ``seconds`` includes the calls that run meanwhile.
        self._paid_until = min(due, now + 2 * _UNSHARED_SECONDS)
        pause = max(0.0, self._paid_until - now - _UNSHARED_SECONDS)
        # A store outside this process does not block the loop during an insert.
        if pause and not (self._gate is not None and self._gate.in_use and self._store.exclusive):
            self._paid_until -= pause
            return 0.0
        return pause

    def _next(self) -> list[_Append]:
        """The oldest pending appends, as many as fit in one insert."""
        appends: list[_Append] = []
        records = characters = 0
        while self._waiting:
            append = self._waiting[0]
            if append.inserted.done():  # its caller was cancelled
                self._waiting.popleft()
                continue
            records += len(append.records)
            characters += sum(len(one.payload[EVENT]) for one in append.records)
            if appends and (records > _RECORDS_AT_ONCE or characters > _CHARACTERS_AT_ONCE):
                break
            appends.append(self._waiting.popleft())
        return appends

    async def _write(self, appends: Sequence[_Append]) -> None:
        if not appends:
            return
        records = [record for append in appends for record in append.records]
        try:
            with follow_up(all(append.follow_up for append in appends)):
                inserted = await self._store.insert(EVENTS, records)
        except QuotaExceededError as error:
            # Those of this namespace one by one, since some of them may fit.
            theirs = [one for one in appends if one.of(error.namespace)]
            if len(appends) == 1:
                if not appends[0].inserted.done():
                    appends[0].inserted.set_exception(error)
                return
            for append in theirs:
                await self._write([append])
            await self._write([one for one in appends if one not in theirs])
            return
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
        except Exception as error:  # noqa: BLE001 - the waiting callers get it
            for append in appends:
                if not append.inserted.done():
                    append.inserted.set_exception(error)
            return
        left = set(inserted)
        for append in appends:
            # Of two with the same id the first was stored, so the second counts as taken.
            own = left.intersection([record.id for record in append.records])
            left -= own
            if not append.inserted.done():
                append.inserted.set_result(own)
