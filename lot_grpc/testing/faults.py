"""A store that dies on demand, to prove that every write sequence can be taken up again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from lot_grpc.ports import (
    CollectionSpec,
    Order,
    Record,
    Scalar,
    Scores,
    SearchQuery,
    StoreInfo,
    VectorStore,
    Where,
)


class InjectedFault(Exception):  # noqa: N818 - not an error of the product, the death of a process
    """The process died here. No code of the product may catch it by name."""


class When(StrEnum):
    """Side of the write on which the process dies."""

    BEFORE = "before"
    AFTER = "after"


class FaultInjectingStore:
    """Passes calls on to ``inner``, counts writes, and dies at the chosen one.

    ``writes`` lists (operation, collection) of every write that began, also the fatal one.
    """

    def __init__(self, inner: VectorStore) -> None:
        self.inner = inner
        self.writes: list[tuple[str, str]] = []
        self._fatal = 0
        self._when = When.BEFORE
        self._dead = False

    def fail_at(self, n: int, when: When = When.BEFORE) -> None:
        """Die at the ``n``-th write from now, counted from 1; 0 never."""
        self._fatal = len(self.writes) + n if n else 0
        self._when = when

    def revive(self) -> None:
        """Start the process again; nothing is planned to fail."""
        self._dead = False
        self._fatal = 0

    @property
    def dead(self) -> bool:
        """Whether the planned fault has happened."""
        return self._dead

    def _alive(self) -> VectorStore:
        if self._dead:
            raise InjectedFault("the process is dead; revive() first")
        return self.inner

    def _before(self, operation: str, collection: str) -> tuple[VectorStore, int]:
        inner = self._alive()
        self.writes.append((operation, collection))
        number = len(self.writes)
        if number == self._fatal and self._when is When.BEFORE:
            self._die(operation, collection)
        return inner, number

    def _after(self, number: int) -> None:
        if number == self._fatal and self._when is When.AFTER:
            self._die(*self.writes[number - 1])

    def _die(self, operation: str, collection: str) -> None:
        self._dead = True
        raise InjectedFault(f"died {self._when} write {self._fatal}: {operation} {collection}")

    @property
    def exclusive(self) -> bool:
        """As the inner store is."""
        return self.inner.exclusive

    async def ensure_collections(self, specs: Sequence[CollectionSpec]) -> None:
        """Pass on; not counted."""
        await self._alive().ensure_collections(specs)

    async def extend(self, spec: CollectionSpec) -> None:
        """A write."""
        inner, number = self._before("extend", spec.name)
        await inner.extend(spec)
        self._after(number)

    async def drop_vectors(self, collection: str, names: Sequence[str]) -> None:
        """A write."""
        inner, number = self._before("drop_vectors", collection)
        await inner.drop_vectors(collection, names)
        self._after(number)

    async def insert(self, collection: str, records: Sequence[Record]) -> set[str]:
        """A write."""
        inner, number = self._before("insert", collection)
        result = await inner.insert(collection, records)
        self._after(number)
        return result

    async def put(self, collection: str, records: Sequence[Record]) -> None:
        """A write."""
        inner, number = self._before("put", collection)
        await inner.put(collection, records)
        self._after(number)

    async def replace(self, collection: str, record: Record, when: Where) -> bool:
        """A write."""
        inner, number = self._before("replace", collection)
        result = await inner.replace(collection, record, when)
        self._after(number)
        return result

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
        """A write."""
        inner, number = self._before("update", collection)
        result = await inner.update(collection, namespace, id, set=set, unset=unset, when=when)
        self._after(number)
        return result

    async def set_vectors(self, collection: str, records: Sequence[Record]) -> None:
        """A write."""
        inner, number = self._before("set_vectors", collection)
        await inner.set_vectors(collection, records)
        self._after(number)

    async def delete(
        self, collection: str, namespace: str | None, where: Where, limit: int = 0
    ) -> int:
        """A write."""
        inner, number = self._before("delete", collection)
        result = await inner.delete(collection, namespace, where, limit)
        self._after(number)
        return result

    async def delete_expired(self, collection: str, *, limit: int) -> int:
        """A write."""
        inner, number = self._before("delete_expired", collection)
        result = await inner.delete_expired(collection, limit=limit)
        self._after(number)
        return result

    async def namespaces(self, collection: str) -> set[str]:
        """Pass on."""
        return await self._alive().namespaces(collection)

    async def expired(self, collection: str, *, limit: int) -> list[Record]:
        """Pass on."""
        return await self._alive().expired(collection, limit=limit)

    async def get(
        self, collection: str, namespace: str, ids: Sequence[str], *, vectors: bool = False
    ) -> dict[str, Record]:
        """Pass on."""
        return await self._alive().get(collection, namespace, ids, vectors=vectors)

    async def scroll(
        self,
        collection: str,
        namespace: str | None,
        where: Where,
        *,
        limit: int,
        order: Order | None = None,
        payload: bool | tuple[str, ...] = True,
        vectors: bool = False,
    ) -> list[Record]:
        """Pass on."""
        return await self._alive().scroll(
            collection,
            namespace,
            where,
            limit=limit,
            order=order,
            payload=payload,
            vectors=vectors,
        )

    async def search(
        self, collection: str, namespace: str, queries: Sequence[SearchQuery]
    ) -> list[Scores]:
        """Pass on."""
        return await self._alive().search(collection, namespace, queries)

    async def count(self, collection: str, namespace: str | None, where: Where = ()) -> int:
        """Pass on."""
        return await self._alive().count(collection, namespace, where)

    async def facet(
        self, collection: str, namespace: str | None, key: str, where: Where = (), limit: int = 100
    ) -> dict[Scalar, int]:
        """Pass on."""
        return await self._alive().facet(collection, namespace, key, where, limit)

    async def check(self) -> None:
        """Pass on."""
        await self._alive().check()

    async def compact(self) -> bool:
        """Pass on; not counted."""
        return await self._alive().compact()

    async def info(self) -> StoreInfo:
        """Pass on."""
        return await self._alive().info()

    async def flush(self) -> None:
        """Pass on; not counted."""
        await self._alive().flush()

    async def close(self) -> None:
        """Close the inner store, dead or not."""
        await self.inner.close()
