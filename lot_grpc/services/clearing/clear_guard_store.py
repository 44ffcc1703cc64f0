"""A store that refuses writes to a namespace that is being cleared.

It stands between the services and all others: whatever they write is refused, whichever call it is
of. The clear itself works on the store beneath. What never makes a record of a namespace passes:
deletes over all namespaces, and vectors of what is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from lot_grpc.domain.errors import NamespaceClearingError
from lot_grpc.ports import IdIn, Record, Update, VectorStore, Where
from lot_grpc.services.clearing.clear_registry import ClearRegistry
from lot_grpc.services.clearing.extent import ClearExtent
from lot_grpc.services.forwarding_store import ForwardingStore
from lot_grpc.services.store_metadata import META_NAMESPACE


class ClearGuardStore(ForwardingStore):
    """Wraps a ``VectorStore``. Refused writes raise NamespaceClearingError and change nothing.

    Attributes:
        insert_counts: How many inserts into each collection have ended, successful or not.
    """

    def __init__(
        self, inner: VectorStore, extent: ClearExtent, clear_registry: ClearRegistry
    ) -> None:
        super().__init__(inner)
        self.insert_counts: Counter[str] = Counter()
        self._extent = extent
        self._clear_registry = clear_registry

    async def insert(self, collection: str, records: Sequence[Record]) -> set[str]:
        """Insert, unless one of the records is of a namespace that is being cleared."""
        namespaces = _named(record.namespace for record in records)
        entered = await self._clear_registry.enter(namespaces)
        try:
            inserted = await self._inner.insert(collection, records)
        finally:
            self.insert_counts[collection] += 1
            self._clear_registry.leave(namespaces)
        await self._take_back(collection, records, namespaces, entered)
        return inserted

    async def put(self, collection: str, records: Sequence[Record]) -> None:
        """Put, unless one of the records is of a namespace that is being cleared."""
        namespaces = _named(record.namespace for record in records)
        entered = await self._clear_registry.enter(namespaces)
        try:
            await self._inner.put(collection, records)
        finally:
            self._clear_registry.leave(namespaces)
        await self._take_back(collection, records, namespaces, entered)

    async def replace(self, collection: str, record: Record, when: Where) -> bool:
        """Replace, unless the namespace is being cleared."""
        namespaces = _named([record.namespace])
        await self._clear_registry.enter(namespaces)
        try:
            return await self._inner.replace(collection, record, when)
        finally:
            self._clear_registry.leave(namespaces)

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
        """Update, unless the namespace is being cleared."""
        namespaces = _named([namespace])
        await self._clear_registry.enter(namespaces)
        try:
            return await self._inner.update(
                collection, namespace, id, set=set, unset=unset, when=when
            )
        finally:
            self._clear_registry.leave(namespaces)

    async def update_many(self, collection: str, updates: Sequence[Update]) -> set[str]:
        """Update, unless one of the records is in a namespace that is being cleared."""
        namespaces = _named(one.namespace for one in updates)
        await self._clear_registry.enter(namespaces)
        try:
            return await self._inner.update_many(collection, updates)
        finally:
            self._clear_registry.leave(namespaces)

    async def delete(
        self, collection: str, namespace: str | None, where: Where, limit: int = 0
    ) -> int:
        """Delete, unless the namespace is being cleared."""
        namespaces = _named([] if namespace is None else [namespace])
        await self._clear_registry.enter(namespaces)
        try:
            return await self._inner.delete(collection, namespace, where, limit)
        finally:
            self._clear_registry.leave(namespaces)

    async def _take_back(
        self,
        collection: str,
        records: Sequence[Record],
        namespaces: Collection[str],
        entered: float,
    ) -> None:
        """Delete again what a clear did not wait for. Raises NamespaceClearingError then."""
        for clear in await self._clear_registry.overtaken(namespaces, entered):
            if any(
                part.collection == collection
                for part in self._extent.parts_of(clear.resource_kinds)
            ):
                theirs = tuple(one.id for one in records if one.namespace == clear.namespace)
                await self._inner.delete(collection, clear.namespace, [IdIn(theirs)])
                raise NamespaceClearingError(
                    clear.namespace, "was cleared during this call", clear.resource_kinds
                )


def _named(namespaces: Iterable[str]) -> Collection[str]:
    """Those that callers can name, each once."""
    return {namespace for namespace in namespaces if namespace != META_NAMESPACE}
