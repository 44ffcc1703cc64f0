"""Base class of stores that wrap another: it forwards everything, subclasses override parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lot_grpc.ports import (
    CollectionSpec,
    Order,
    Record,
    Rescore,
    Scalar,
    SearchQuery,
    SearchResult,
    StoreInfo,
    Update,
    VectorStore,
    Where,
)


class ForwardingStore:
    """A ``VectorStore`` that forwards everything to another."""

    def __init__(self, inner: VectorStore) -> None:
        self._inner = inner

    @property
    def exclusive(self) -> bool:
        """As the inner store is."""
        return self._inner.exclusive

    async def extend(self, spec: CollectionSpec) -> None:
        """Pass on."""
        await self._inner.extend(spec)

    async def drop_vectors(self, collection: str, names: Sequence[str]) -> None:
        """Pass on."""
        await self._inner.drop_vectors(collection, names)

    async def insert(self, collection: str, records: Sequence[Record]) -> set[str]:
        """Pass on."""
        return await self._inner.insert(collection, records)

    async def put(self, collection: str, records: Sequence[Record]) -> None:
        """Pass on."""
        await self._inner.put(collection, records)

    async def replace(self, collection: str, record: Record, when: Where) -> bool:
        """Pass on."""
        return await self._inner.replace(collection, record, when)

    async def update(
        self,
        collection: str,
        namespace: str,
        id: str,
        *,
        set: Mapping[str, Any],
        unset: Sequence[str] = (),
        when: Where = (),
    ) -> bool:
        """Pass on."""
        return await self._inner.update(collection, namespace, id, set=set, unset=unset, when=when)

    async def update_many(self, collection: str, updates: Sequence[Update]) -> set[str]:
        """Pass on."""
        return await self._inner.update_many(collection, updates)

    async def ensure_collections(self, specs: Sequence[CollectionSpec]) -> None:
        """Pass on."""
        await self._inner.ensure_collections(specs)

    async def set_vectors(self, collection: str, records: Sequence[Record]) -> None:
        """Pass on."""
        await self._inner.set_vectors(collection, records)

    async def delete(
        self, collection: str, namespace: str | None, where: Where, limit: int = 0
    ) -> int:
        """Pass on."""
        return await self._inner.delete(collection, namespace, where, limit)

    async def get(
        self, collection: str, namespace: str, ids: Sequence[str], *, vectors: bool = False
    ) -> dict[str, Record]:
        """Pass on."""
        return await self._inner.get(collection, namespace, ids, vectors=vectors)

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
        """Pass on."""
        return await self._inner.scroll(
            collection,
            namespace,
            where,
            limit=limit,
            order=order,
            after=after,
            payload=payload,
            vectors=vectors,
        )

    async def search(
        self,
        collection: str,
        namespace: str,
        queries: Sequence[SearchQuery],
        rescore: Rescore | None = None,
    ) -> SearchResult:
        """Pass on."""
        return await self._inner.search(collection, namespace, queries, rescore)

    async def count(self, collection: str, namespace: str | None, where: Where = ()) -> int:
        """Pass on."""
        return await self._inner.count(collection, namespace, where)

    async def facet(
        self, collection: str, namespace: str | None, key: str, where: Where = (), limit: int = 100
    ) -> dict[Scalar, int]:
        """Pass on."""
        return await self._inner.facet(collection, namespace, key, where, limit)

    async def namespaces(self, collection: str) -> set[str]:
        """Pass on."""
        return await self._inner.namespaces(collection)

    async def expired(self, collection: str, *, limit: int, where: Where = ()) -> list[Record]:
        """Pass on."""
        return await self._inner.expired(collection, limit=limit, where=where)

    async def delete_expired(self, collection: str, *, limit: int) -> int:
        """Pass on."""
        return await self._inner.delete_expired(collection, limit=limit)

    async def check(self) -> None:
        """Pass on."""
        await self._inner.check()

    async def compact(self) -> bool:
        """Pass on."""
        return await self._inner.compact()

    async def info(self) -> StoreInfo:
        """Pass on."""
        return await self._inner.info()

    async def flush(self) -> None:
        """Pass on."""
        await self._inner.flush()

    async def close(self) -> None:
        """Pass on."""
        await self._inner.close()
