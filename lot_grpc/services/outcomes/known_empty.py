"""Whether outcomes of a kind were ever recorded, without a look at the store for most calls."""

from __future__ import annotations

from lot_grpc.ports import Equals
from lot_grpc.services.records.resource_refs import RESOURCE_KIND
from lot_grpc.services.runtime import Runtime

_MOST_NAMESPACES = 10_000


class KnownEmpty:
    """Whether a collection of logs has no records of a kind.

    If this process is the only writer, an empty namespace stays empty until something is inserted
    into the collection. Otherwise nothing is known.
    """

    def __init__(self, runtime: Runtime, collection: str, kind: str) -> None:
        self._store = runtime.stack.clear_guard
        self._collection = collection
        self._of_kind = Equals(RESOURCE_KIND, str(kind))
        self._empty: dict[str, int] = {}
        """By namespace: how many inserts there had been when it was empty."""

    async def __call__(self, namespace: str) -> bool:
        """Whether there are none. False for a store outside this process."""
        if not self._store.exclusive:
            return False
        inserts = self._store.insert_counts[self._collection]
        if self._empty.get(namespace) == inserts:
            return True
        if await self._store.scroll(
            self._collection, namespace, [self._of_kind], limit=1, payload=()
        ):
            return False
        if len(self._empty) >= _MOST_NAMESPACES:
            self._empty.clear()
        self._empty[namespace] = inserts
        return True
