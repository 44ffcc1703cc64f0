"""Recalls, written in the background, so that an outcome can refer to one."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import replace

from lot_grpc.domain.errors import NamespaceClearingError
from lot_grpc.domain.ids import RETRIEVAL_LIFE, ResourceRef, new_id
from lot_grpc.ports import VectorStore
from lot_grpc.services.records.collections import RETRIEVALS
from lot_grpc.services.records.outcomes import (
    Retrieval,
    retrieval_from_record,
    retrieval_point,
    retrieval_record,
)
from lot_grpc.services.reindex.current_model import CurrentModel
from lot_grpc.services.time_source import TimeSource

_BATCH = 256
_WAITING_AT_MOST = 10_000
_RECENT = 2_000
"""Recalls of this process that are kept in memory, so that an outcome need not read the store. Each
takes 2 KB."""


class Retrievals:
    """Records recalls. Rows reach the store within a second and may be lost in a crash."""

    def __init__(self, store: VectorStore, time_source: TimeSource, model: CurrentModel) -> None:
        self._store = store
        self._time = time_source
        self._model = model
        self._waiting: dict[str, Retrieval] = {}
        self._recent: dict[str, Retrieval] = {}
        """The last ones written; empty on a shared store, since another process could clear it."""

    def remember(
        self, namespace: str, query: str, vector: Sequence[float], shown: Iterable[ResourceRef]
    ) -> str:
        """Record a recall and what it showed; return its id."""
        retrieval_id = new_id("r")
        retrieval = Retrieval(
            namespace,
            retrieval_id,
            query,
            vector,
            tuple(dict.fromkeys(shown)),
            self._time.now(),
            self._model.epoch,
        )
        if len(self._waiting) >= _WAITING_AT_MOST:  # the store is unavailable: keep the newest
            self._waiting.pop(next(iter(self._waiting)))
        self._waiting[retrieval.point] = retrieval
        return retrieval_id

    async def find(self, namespace: str, retrieval_id: str) -> Retrieval | None:
        """A recall of the last 7 days, unless it was lost in a crash."""
        point = retrieval_point(namespace, retrieval_id)
        known = self._waiting.get(point) or self._recent.get(point)
        if known is not None and self._time.now() < known.create_time + RETRIEVAL_LIFE:
            return known
        found = await self._store.get(RETRIEVALS, namespace, [point])
        return retrieval_from_record(found[point]) if point in found else None

    def forget(self, namespace: str) -> None:
        """Drop the recalls of a namespace that is being cleared, including unwritten ones."""
        for known in (self._waiting, self._recent):
            for point in [p for p, one in known.items() if one.namespace == namespace]:
                del known[point]

    async def flush(self) -> None:
        """Write the pending rows; those that cannot be written stay pending."""
        while self._waiting:
            batch = list(self._waiting.values())[:_BATCH]
            try:
                await self._store.put(RETRIEVALS, [retrieval_record(one) for one in batch])
            except NamespaceClearingError as error:
                self.forget(error.namespace)
                continue
            for one in batch:
                if self._waiting.pop(one.point, None) and self._store.exclusive:
                    self._keep(one)
            await asyncio.sleep(0)

    def _keep(self, written: Retrieval) -> None:
        """Keep a recall as it is stored: its vector has single precision."""
        self._recent[written.point] = replace(written, vector=array("f", written.vector))
        if len(self._recent) > _RECENT:
            del self._recent[next(iter(self._recent))]
