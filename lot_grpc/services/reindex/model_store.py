"""The store as the services see it: with the vectors of the current model, under plain names."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace

from lot_grpc.ports import (
    CollectionSpec,
    Order,
    Record,
    Rescore,
    Scalar,
    SearchQuery,
    SearchResult,
    VectorStore,
    Where,
)
from lot_grpc.services.forwarding_store import ForwardingStore
from lot_grpc.services.registry import Registry
from lot_grpc.services.reindex.current_model import CurrentModel
from lot_grpc.services.reindex.epochs import stored_name, stored_spec, stored_where


class ModelStore(ForwardingStore):
    """``VectorStore`` over another. What it writes, finds and reads is of the present epoch.

    While the vectors of another epoch are made (``rebuilding``), writes of vectors take turns with
    them, so that no vector of a text is set that was replaced in between. Who writes more than half
    of what is embedded is held back (``hold_back``), so that what is left shrinks.
    """

    def __init__(self, inner: VectorStore, registry: Registry, model: CurrentModel) -> None:
        super().__init__(inner)
        self._sparse = {one.name: one.sparse for one in registry.collections.values()}
        self._dense = {
            one.name: frozenset((*one.dense, *one.multi)) for one in registry.embedded.values()
        }
        self._model = model
        self._turns = asyncio.Lock()
        self.rebuilding = False
        self._budget: int | None = None
        """Twice the number of records that may be written now; None: any number."""
        self._budget_freed = asyncio.Event()

    @property
    def inner(self) -> VectorStore:
        """The wrapped store, with its own vector names."""
        return self._inner

    def turn(self) -> AbstractAsyncContextManager[object]:
        """A turn to write vectors."""
        return self._turns if self.rebuilding else nullcontext()

    # --- holding writers back -----------------------------------------------------------------

    def hold_back(self, spare: int) -> None:
        """Limit writes to one record for every two that are ``embedded``, plus a few."""
        self._budget = 2 * spare

    def embedded(self, count: int) -> None:
        """Report that records got their new vectors."""
        if self._budget is not None:
            self._budget += count
            self._budget_freed.set()

    def let_go(self) -> None:
        """Stop limiting writes."""
        self._budget = None
        self._budget_freed.set()

    async def _wait_for_budget(self, collection: str, count: int) -> None:
        if not self._dense_of(collection):
            return
        while self._budget is not None and self._budget <= 0:
            self._budget_freed.clear()
            await self._budget_freed.wait()
        if self._budget is not None:
            self._budget -= 2 * count

    # --- collections --------------------------------------------------------------------------

    async def ensure_collections(self, specs: Sequence[CollectionSpec]) -> None:
        """Open them, with the vectors of the epoch."""
        epoch = self._model.epoch
        await self._inner.ensure_collections([stored_spec(spec, epoch) for spec in specs])

    async def extend(self, spec: CollectionSpec) -> None:
        """Add vectors of the epoch."""
        await self._inner.extend(stored_spec(spec, self._model.epoch))

    async def drop_vectors(self, collection: str, names: Sequence[str]) -> None:
        """Drop vectors of the epoch."""
        await self._inner.drop_vectors(
            collection, [self._name_of(collection, name) for name in names]
        )

    # --- writing ------------------------------------------------------------------------------

    async def insert(self, collection: str, records: Sequence[Record]) -> set[str]:
        """Insert, with vectors of the epoch."""
        await self._wait_for_budget(collection, len(records))
        async with self.turn():
            return await self._inner.insert(collection, self._stored(collection, records))

    async def put(self, collection: str, records: Sequence[Record]) -> None:
        """Put, with vectors of the epoch."""
        await self._wait_for_budget(collection, len(records))
        async with self.turn():
            await self._inner.put(collection, self._stored(collection, records))

    async def replace(self, collection: str, record: Record, when: Where) -> bool:
        """Replace, with vectors of the epoch; those of others go with the record replaced."""
        await self._wait_for_budget(collection, 1)
        async with self.turn():
            [stored] = self._stored(collection, [record])
            return await self._inner.replace(collection, stored, when)

    async def set_vectors(self, collection: str, records: Sequence[Record]) -> None:
        """Set vectors of the epoch."""
        async with self.turn():
            await self._inner.set_vectors(collection, self._stored(collection, records))

    async def delete(
        self, collection: str, namespace: str | None, where: Where, limit: int = 0
    ) -> int:
        """Pass on."""
        where = self._where(collection, where)
        return await self._inner.delete(collection, namespace, where, limit)

    # --- reading ------------------------------------------------------------------------------

    async def get(
        self, collection: str, namespace: str, ids: Sequence[str], *, vectors: bool = False
    ) -> dict[str, Record]:
        """Fetch, with vectors of the epoch."""
        found = await self._inner.get(collection, namespace, ids, vectors=vectors)
        if not vectors:
            return found
        return {point: self._plain(collection, record) for point, record in found.items()}

    async def scroll(
        self,
        collection: str,
        namespace: str | None,
        where: Where,
        *,
        limit: int,
        order: Order | None = None,
        after: str = "",
        payload: bool | tuple[str, ...] = True,
        vectors: bool = False,
    ) -> list[Record]:
        """Scroll, with vectors of the epoch."""
        found = await self._inner.scroll(
            collection,
            namespace,
            self._where(collection, where),
            limit=limit,
            order=order,
            after=after,
            payload=payload,
            vectors=vectors,
        )
        return [self._plain(collection, record) for record in found] if vectors else found

    async def search(
        self,
        collection: str,
        namespace: str,
        queries: Sequence[SearchQuery],
        rescore: Rescore | None = None,
    ) -> SearchResult:
        """Search in the vectors of the epoch."""
        if self._model.epoch:
            queries = [self._query(collection, query) for query in queries]
            if rescore is not None:
                using = [self._name_of(collection, name) for name in rescore.using]
                rescore = replace(rescore, using=using)
        return await self._inner.search(collection, namespace, queries, rescore)

    async def count(self, collection: str, namespace: str | None, where: Where = ()) -> int:
        """Pass on."""
        return await self._inner.count(collection, namespace, self._where(collection, where))

    async def facet(
        self, collection: str, namespace: str | None, key: str, where: Where = (), limit: int = 100
    ) -> dict[Scalar, int]:
        """Pass on."""
        where = self._where(collection, where)
        return await self._inner.facet(collection, namespace, key, where, limit)

    # --- names --------------------------------------------------------------------------------

    def _name_of(self, collection: str, name: str) -> str:
        return stored_name(name, self._model.epoch) if name in self._dense_of(collection) else name

    def _query(self, collection: str, query: SearchQuery) -> SearchQuery:
        fallback = query.fallback
        return replace(
            query,
            using=self._name_of(collection, query.using),
            where=self._where(collection, query.where),
            fallback=fallback and replace(fallback, query=self._query(collection, fallback.query)),
        )

    def _where(self, collection: str, where: Where) -> Where:
        return stored_where(where, self._dense_of(collection), self._model.epoch)

    def _stored(self, collection: str, records: Sequence[Record]) -> Sequence[Record]:
        if not self._model.epoch:
            return records
        return [
            replace(
                record,
                vectors={
                    self._name_of(collection, name): one for name, one in record.vectors.items()
                },
            )
            for record in records
        ]

    def _plain(self, collection: str, record: Record) -> Record:
        """The record without the vectors of other epochs, and with plain names."""
        names = {self._name_of(collection, name): name for name in self._dense_of(collection)}
        names |= {name: name for name in self._sparse[collection]}
        vectors = {names[name]: one for name, one in record.vectors.items() if name in names}
        return replace(record, vectors=vectors)

    def _dense_of(self, collection: str) -> frozenset[str]:
        """The names of a collection's dense vectors, which a model makes."""
        return self._dense.get(collection, frozenset())
