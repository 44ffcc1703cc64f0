"""Clears of namespaces, in progress and past: one row each in ``meta``.

A clear is recorded before anything is deleted, so it is finished whatever happens, and every
process refuses writes meanwhile. A process reads the row of a namespace that it writes to at most
every ``look_seconds``; a clear waits longer than that before it deletes. On a store of its own it
reads it once.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from lot_grpc.domain.errors import NamespaceClearingError
from lot_grpc.domain.ids import point_id
from lot_grpc.ports import Equals, Payload, Record, VectorStore
from lot_grpc.services.records.collections import META
from lot_grpc.services.store_metadata import META_NAMESPACE
from lot_grpc.services.time_source import TimeSource
from lot_grpc.work import current_work

LOOK_SECONDS = 1.0

SILENT = 60 * 1_000_000
"""A clear whose process has said nothing for so long, in microseconds, is taken over."""

_KNOWN_AT_MOST = 10_000
_MANY = 10_000


@dataclass(frozen=True, slots=True)
class Clear:
    """The latest clear of a namespace. ``resource_kinds`` empty: of everything.

    ``generation`` counts the clears. ``seen_time``: when the process that is at it last said so.
    ``clear_time``: when it was done, 0 while it is at work.
    """

    namespace: str
    generation: int
    resource_kinds: tuple[str, ...]
    begin_time: int
    seen_time: int
    clear_time: int = 0

    @property
    def at_work(self) -> bool:
        """Whether it is in progress."""
        return not self.clear_time

    def payload(self) -> Payload:
        """As it is stored."""
        return {
            "cleared_namespace": self.namespace,
            "generation": self.generation,
            "resource_kinds": [str(resource_kind) for resource_kind in self.resource_kinds],
            "begin_time": self.begin_time,
            "seen_time": self.seen_time,
            "clear_time": self.clear_time,
            "clearing": self.at_work,
        }


@dataclass(slots=True)
class _Known:
    """A clear as this process knows it. ``ended``: when, by the monotonic clock."""

    looked: float
    clear: Clear | None
    ended: float | None


class ClearRegistry:
    """The clears of all namespaces, and the writes in progress in this process."""

    def __init__(
        self,
        store: VectorStore,
        time_source: TimeSource,
        look_seconds: float = LOOK_SECONDS,
        on_ended: Callable[[int], None] | None = None,
    ) -> None:
        """``on_ended`` is given the time of each clear that this process sees has ended."""
        self._on_ended = on_ended
        self._store = store
        self._time = time_source
        self._look = look_seconds
        self._known: dict[str, _Known] = {}
        self._writing: Counter[str] = Counter()
        self._left = asyncio.Event()

    # --- writes -------------------------------------------------------------------------------

    async def enter(self, namespaces: Collection[str]) -> float:
        """Register the start of a write; return its time. Raises NamespaceClearingError."""
        for namespace in namespaces:
            await self.of(namespace)
        for namespace in namespaces:  # without an await, so that none comes in between
            self._require_open(namespace)
        self._writing.update(namespaces)
        return time.monotonic()

    def leave(self, namespaces: Collection[str]) -> None:
        """Register the end of a write."""
        self._left.set()
        self._writing.subtract(namespaces)
        for namespace in namespaces:
            if not self._writing[namespace]:
                del self._writing[namespace]

    async def drained(self, namespace: str) -> None:
        """Wait until every write that began before the clear has ended, in any process."""
        while self._writing[namespace]:
            self._left.clear()
            await self._left.wait()
        if not self._store.exclusive:
            await asyncio.sleep(2 * self._look)

    async def overtaken(self, namespaces: Collection[str], entered: float) -> list[Clear]:
        """The clears that may not have waited for a write that was entered so long ago.

        Only on a shared store, where another process knows nothing of the write.
        """
        if self._store.exclusive or time.monotonic() - entered < self._look:
            return []
        clears = []
        for namespace in namespaces:
            clear = await self.of(namespace, fresh=True)
            ended = self._known[namespace].ended
            if clear is not None and (clear.at_work or (ended is not None and entered < ended)):
                clears.append(clear)
        return clears

    def _require_open(self, namespace: str) -> None:
        known = self._known.get(namespace)
        if known is None or known.clear is None:
            return
        kinds = known.clear.resource_kinds
        if known.clear.at_work:
            raise NamespaceClearingError(namespace, "is being cleared", kinds)
        work = current_work()
        if known.ended is not None and work is not None and work.began < known.ended:
            raise NamespaceClearingError(namespace, "was cleared during this call", kinds)

    # --- what is known ------------------------------------------------------------------------

    async def of(self, namespace: str, *, fresh: bool = False) -> Clear | None:
        """The latest clear of a namespace; None: there was none. ``fresh``: as the row is now."""
        known = self._known.get(namespace)
        if known is not None and not fresh and self._holds(known):
            return known.clear
        looked, point = time.monotonic(), _point(namespace)
        found = await self._store.get(META, META_NAMESPACE, [point])
        clear = _clear(found[point]) if point in found else None
        return self._note(namespace, clear, looked)

    def _holds(self, known: _Known) -> bool:
        return self._store.exclusive or time.monotonic() - known.looked < self._look

    def _note(self, namespace: str, clear: Clear | None, looked: float) -> Clear | None:
        """Remember this clear, unless a later one is known."""
        known = self._known.get(namespace)
        if known is not None and _order(known.clear) > _order(clear):
            clear = known.clear
        ended = None
        if clear is not None and not clear.at_work:
            if known is not None and known.clear == clear:
                ended = known.ended
            else:
                age = max(0, self._time.now() - clear.clear_time)
                ended = looked - age / 1_000_000
                if self._on_ended is not None:
                    self._on_ended(clear.clear_time)
        if known is None and len(self._known) >= _KNOWN_AT_MOST:
            self._known.pop(next(iter(self._known)))
        self._known[namespace] = _Known(looked, clear, ended)
        return clear

    # --- clears -------------------------------------------------------------------------------

    async def begin(self, namespace: str, resource_kinds: Sequence[str]) -> Clear:
        """Record the start of a clear. Raises NamespaceClearingError if one is in progress."""
        last = await self.of(namespace, fresh=True)
        if last is not None and last.at_work:
            raise NamespaceClearingError(namespace, "is being cleared")
        now = self._time.now()
        clear = Clear(
            namespace, last.generation + 1 if last else 1, tuple(resource_kinds), now, now
        )
        row = Record(_point(namespace), META_NAMESPACE, clear.payload())
        if last is None:
            written = row.id in await self._store.insert(META, [row])
        else:
            as_it_was = [Equals("generation", last.generation)]
            written = await self._store.replace(META, row, as_it_was)
        if not written:
            raise NamespaceClearingError(namespace, "is being cleared")
        self._note(namespace, clear, time.monotonic())
        return clear

    async def hold(self, clear: Clear) -> Clear | None:
        """Renew this process's hold on a clear; None if another process has taken over."""
        held = replace(clear, seen_time=max(self._time.now(), clear.seen_time + 1))
        written = await self._update(clear, {"seen_time": held.seen_time})
        return held if written else None

    async def end(self, clear: Clear, reported_at: int) -> None:
        """End a clear and allow writes again. ``reported_at``: the number of its mark."""
        done = replace(clear, clear_time=max(self._time.now(), reported_at))
        if await self._update(clear, {"clear_time": done.clear_time, "clearing": False}):
            self._note(clear.namespace, done, time.monotonic())

    async def at_work(self) -> list[Clear]:
        """The clears in progress, of all namespaces."""
        rows = await self._store.scroll(
            META, META_NAMESPACE, [Equals("clearing", True)], limit=_MANY
        )
        return [_clear(row) for row in rows]

    async def _update(self, clear: Clear, changed: Payload) -> bool:
        return await self._store.update(
            META,
            META_NAMESPACE,
            _point(clear.namespace),
            set=changed,
            when=[
                Equals("generation", clear.generation),
                Equals("seen_time", clear.seen_time),
                Equals("clearing", True),
            ],
        )


def _order(clear: Clear | None) -> tuple[int, int]:
    return (0, 0) if clear is None else (clear.generation, clear.clear_time)


def _point(namespace: str) -> str:
    return point_id(META_NAMESPACE, "clear", namespace)


def _clear(row: Record) -> Clear:
    payload = row.payload
    return Clear(
        payload["cleared_namespace"],
        payload["generation"],
        tuple(payload["resource_kinds"]),
        payload["begin_time"],
        payload["seen_time"],
        payload["clear_time"],
    )
