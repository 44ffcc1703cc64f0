"""Distilling every namespace periodically, in whichever process comes first."""

from __future__ import annotations

from contextlib import suppress

from lot_grpc.domain.errors import QuotaExceededError
from lot_grpc.domain.ids import point_id
from lot_grpc.ports import NAMESPACE_KEY, Equals, Record, VectorStore
from lot_grpc.services.distillation.distiller import Distiller, DistillRequest
from lot_grpc.services.records.collections import META, PATTERNS
from lot_grpc.services.store_metadata import META_NAMESPACE
from lot_grpc.services.time_source import TimeSource

_MICROS = 1_000_000
_MOST_NAMESPACES = 10_000


class DistillSchedule:
    """One namespace a sweep, each at most once in ``interval`` seconds; 0: never.

    A namespace's turn is a row in ``meta`` with the time it was taken; a compare-and-set gives it
    to one process. Whoever dies at it leaves the rest to the next turn.
    """

    def __init__(
        self, store: VectorStore, time_source: TimeSource, distilling: Distiller, interval: float
    ) -> None:
        self._store = store
        self._time = time_source
        self._distilling = distilling
        self._interval = int(interval * _MICROS)

    async def sweep(self) -> str:
        """Distil the first namespace whose turn it is; return its name, "" for none."""
        if not self._interval:
            return ""
        names = await self._store.facet(PATTERNS, None, NAMESPACE_KEY, limit=_MOST_NAMESPACES)
        for namespace in sorted(map(str, names)):
            if await self._take_turn(namespace):
                with suppress(QuotaExceededError):  # until there is room, or a higher quota
                    await self._distilling.distil(namespace, DistillRequest())
                return namespace
        return ""

    async def _take_turn(self, namespace: str) -> bool:
        now = self._time.now()
        point = point_id(META_NAMESPACE, "distill", namespace)
        row = Record(point, META_NAMESPACE, {"turn": now})
        if await self._store.insert(META, [row]):
            return True
        stored = await self._store.get(META, META_NAMESPACE, [point])
        last = stored[point].payload["turn"] if point in stored else now
        if last > now - self._interval:
            return False
        return await self._store.update(
            META, META_NAMESPACE, point, set={"turn": now}, when=[Equals("turn", last)]
        )
