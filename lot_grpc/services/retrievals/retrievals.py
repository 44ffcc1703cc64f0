"""Retrievals: what recalls showed, written in the background for outcomes to refer to.

Whatever depends on the policy is decided when the recall begins; encoding a row, which takes
longer, when it is written. What waits for that holds none of the records that were shown.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import NamespaceClearingError
from lot_grpc.domain.holdout import in_holdout
from lot_grpc.domain.ids import new_id
from lot_grpc.domain.policy import NamespacePolicy
from lot_grpc.domain.retrieval import (
    Retrieval,
    RetrievalMethod,
    RetrievalOptions,
    RetrievalQueries,
    RetrievedItem,
    query_hash,
)
from lot_grpc.ports import VectorStore
from lot_grpc.services.records.collections import RETRIEVALS
from lot_grpc.services.records.retrievals import (
    retrieval_from_record,
    retrieval_point,
    retrieval_record,
)
from lot_grpc.services.reindex.current_model import CurrentModel
from lot_grpc.services.retention.policies import Policies
from lot_grpc.services.time_slice import TimeSlice
from lot_grpc.services.time_source import TimeSource
from lot_grpc.telemetry.metrics import RECALLS
from lot_grpc.telemetry.spans import annotate, annotate_content
from lot_grpc.work import current_caller

_BATCH = 16
_BATCH_ITEMS = 160
"""Rows encoded and written at once, and what they showed: that holds the event loop 2 to 5 ms. More
at once would be no faster."""
_WAITING_AT_MOST = 10_000
_RECENT = 2_000
"""Recalls of this process that are kept in memory, so that an outcome need not read the store. Each
takes 5 KB with ten items."""


@dataclass(frozen=True, slots=True)
class BegunRetrieval:
    """A recall under way: its id, and the policy that applies to it."""

    namespace: str
    retrieval_id: str
    policy: NamespacePolicy

    @property
    def holdout(self) -> bool | None:
        """Whether it is ranked without what was learned; None: nothing is held out."""
        share = self.policy.holdout_share
        return in_holdout(self.retrieval_id, share) if share else None


class Retrievals:
    """Records recalls. Rows reach the store within a second and may be lost in a crash."""

    def __init__(
        self,
        store: VectorStore,
        time_source: TimeSource,
        model: CurrentModel,
        policies: Policies,
    ) -> None:
        self._store = store
        self._time = time_source
        self._model = model
        self._policies = policies
        self._waiting: dict[str, Retrieval] = {}
        self._recent: dict[str, Retrieval] = {}
        """The last ones written, without scores; empty on a shared store, since another process
        could clear it."""
        self._writing = asyncio.Lock()

    async def begin(self, namespace: str) -> BegunRetrieval:
        """Begin a recall."""
        policy = await self._policies.recent(namespace)
        return BegunRetrieval(namespace, new_id("r"), policy)

    def remember(
        self,
        begun: BegunRetrieval,
        method: RetrievalMethod,
        query: str,
        vector: Sequence[float],
        items: Sequence[RetrievedItem],
        options: RetrievalOptions,
    ) -> Retrieval:
        """Record what a recall showed, as it is stored."""
        policy, now = begun.policy, self._time.sort_key()
        retrieval = Retrieval(
            namespace=begun.namespace,
            retrieval_id=begun.retrieval_id,
            method=method,
            query=query if policy.retrieval_queries is RetrievalQueries.TEXT else query_hash(query),
            vector=vector,
            items=items,
            create_time=now,
            expire_time=now + policy.retrieval_life,
            options=options,
            principal=current_caller().principal.name,
            epoch=self._model.epoch,
        )
        RECALLS.add(method)
        annotate("lot.retrieval.id", begun.retrieval_id)
        annotate("lot.hits", len(items))
        annotate_content("gen_ai.memory.query.text", query)
        if len(self._waiting) >= _WAITING_AT_MOST:  # the store is unavailable: keep the newest
            self._waiting.pop(next(iter(self._waiting)))
        self._waiting[retrieval_point(begun.namespace, begun.retrieval_id)] = retrieval
        return retrieval

    async def find(
        self, namespace: str, retrieval_id: str, *, scores: bool = False
    ) -> Retrieval | None:
        """A recall; None if it is older than the policy retains, or was lost in a crash.

        Without ``scores``, its items may lack everything but kind, id and version.
        """
        point = retrieval_point(namespace, retrieval_id)
        known = self._waiting.get(point) or (None if scores else self._recent.get(point))
        if known is not None and self._time.now() < known.expire_time:
            return known
        found = await self._store.get(RETRIEVALS, namespace, [point])
        return retrieval_from_record(found[point]) if point in found else None

    def forget(self, namespace: str) -> None:
        """Drop the recalls of a namespace that is being cleared, including unwritten ones."""
        for known in (self._waiting, self._recent):
            for point in [p for p, one in known.items() if one.namespace == namespace]:
                del known[point]

    def drop(self, points: Iterable[str]) -> None:
        """Drop recalls that were deleted from the store."""
        for point in points:
            self._recent.pop(point, None)

    async def flush(self) -> None:
        """Write the pending rows.

        Those that cannot be written stay pending, also while other kinds of their namespace are
        being cleared.
        """
        held: set[str] = set()
        time_slice = TimeSlice(rest=1.0)
        async with self._writing:
            while batch := self._batch(held):
                await self._write(batch, held)
                await time_slice.give_way()

    def _batch(self, held: Collection[str]) -> dict[str, Retrieval]:
        batch: dict[str, Retrieval] = {}
        items = 0
        for point, one in self._waiting.items():
            if one.namespace not in held:
                batch[point] = one
                items += len(one.items)
                if len(batch) == _BATCH or items >= _BATCH_ITEMS:
                    break
        return batch

    async def _write(self, batch: dict[str, Retrieval], held: set[str]) -> None:
        try:
            await self._store.put(RETRIEVALS, [retrieval_record(one) for one in batch.values()])
        except NamespaceClearingError as error:
            if ResourceKind.RETRIEVAL in (error.resource_kinds or (ResourceKind.RETRIEVAL,)):
                self.forget(error.namespace)
            else:
                held.add(error.namespace)
            return
        for point, one in batch.items():
            if self._waiting.pop(point, None) and self._store.exclusive:
                self._keep(point, one)

    def _keep(self, point: str, written: Retrieval) -> None:
        """Keep a recall as an outcome needs it; its vector as stored, in single precision."""
        items = [RetrievedItem(one.resource, one.version) for one in written.items]
        self._recent[point] = replace(written, vector=array("f", written.vector), items=items)
        if len(self._recent) > _RECENT:
            del self._recent[next(iter(self._recent))]
