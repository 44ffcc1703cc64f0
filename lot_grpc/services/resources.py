"""What is done alike with the records of every kind: they are read, listed and deleted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from lot_grpc.kernel.compare_and_set import ConflictError, compare_and_set, require_etag
from lot_grpc.kernel.create import Kind
from lot_grpc.kernel.tombstones import Tombstone, Tombstones
from lot_grpc.ports import Condition, Record, VectorStore
from lot_grpc.services.paging import Fits, Page, Position, any_size, each, read_page

T = TypeVar("T")
F = TypeVar("F")


class Resources(Generic[T, F]):
    """The records of one kind, in all namespaces. A subclass adds how they are written."""

    def __init__(
        self,
        store: VectorStore,
        tombstones: Tombstones,
        kind: Kind,
        from_record: Callable[[Record], T],
        conditions: Callable[[F], Sequence[Condition]],
        *,
        unchanged: Sequence[str] = (),
        unchanged_as_seen: Sequence[str] = (),
    ) -> None:
        """``conditions`` are what a filter asks of a record.

        A delete is begun anew if ``revision`` or a key of ``unchanged`` changes in between.
        ``unchanged_as_seen``: the same of ``delete_as_seen``, which then spares the record.
        """
        self._store = store
        self._tombstones = tombstones
        self._kind = kind
        self._from_record = from_record
        self._conditions = conditions
        self._unchanged = unchanged
        self._unchanged_as_seen = unchanged_as_seen

    # --- reading ------------------------------------------------------------------------------

    async def get(self, namespace: str, id: str) -> T:
        """One of them. Raises the kind's NotFoundError."""
        return self._from_record(await self.read_record(namespace, id))

    async def get_many(self, namespace: str, ids: Sequence[str]) -> list[T]:
        """Those that are there, in the order of the ids."""
        found = await self.records(namespace, ids)
        return [self._from_record(found[one]) for one in ids if one in found]

    async def read(self, record: Record) -> T:
        """The one of a record that a search found."""
        return self._from_record(record)

    async def read_record(
        self, namespace: str, id: str, *, vectors: bool = False, etag: str = ""
    ) -> Record:
        """The record of one that has ``etag`` (empty: any).

        Raises the kind's NotFoundError, EtagMismatchError.
        """
        record = await self.find_record(namespace, id, vectors=vectors)
        if record is None:
            raise self._kind.missing(namespace, id)
        if etag:
            current = getattr(self._from_record(record), "etag", "")
            require_etag(self._kind.resource, id, etag, current)
        return record

    async def find_record(self, namespace: str, id: str, *, vectors: bool = False) -> Record | None:
        """The record of one; None if it is not there."""
        kind, point = self._kind, self._kind.point(namespace, id)
        found = await self._store.get(kind.collection, namespace, [point], vectors=vectors)
        return found.get(point)

    async def records(self, namespace: str, ids: Sequence[str]) -> dict[str, Record]:
        """The records of those that are there, by id."""
        points = {self._kind.point(namespace, one): one for one in ids}
        found = await self._store.get(self._kind.collection, namespace, list(points))
        return {points[point]: record for point, record in found.items()}

    async def list_page(
        self,
        namespace: str,
        filter: F,
        size: int,
        after: Position | None,
        fits: Fits[T] = any_size,
    ) -> Page[T]:
        """A page of those that a filter lets through, newest first."""
        collection, read = self._kind.collection, each(self._from_record)
        where = self._conditions(filter)
        return await read_page(self._store, collection, namespace, where, size, after, read, fits)

    # --- deleting -----------------------------------------------------------------------------

    async def delete(self, namespace: str, id: str, etag: str = "") -> None:
        """Delete the one that has ``etag`` (empty: any), and what hangs on it.

        Raises the kind's NotFoundError, EtagMismatchError, ContentionError.
        """

        async def attempt() -> None:
            record = await self.read_record(namespace, id, etag=etag)
            if not await self._delete(record, self._unchanged):
                raise ConflictError

        await compare_and_set(self._kind.resource, id, attempt)

    async def delete_as_seen(self, record: Record) -> bool:
        """Delete one that is still as its record says, which was read with the keys it needs.

        False for one that was changed since: it is spared, also where this process dies and another
        finishes the delete.
        """
        return await self._delete(record, self._unchanged_as_seen)

    async def finish_delete(self, stone: Tombstone) -> bool:
        """Carry out a delete that was written down; False if it was changed since."""

        async def drop_dependents(left: Record | None) -> None:
            await self._drop_dependents(stone, left)

        point = self._kind.point(stone.namespace, stone.id)
        collection = self._kind.collection
        return await self._tombstones.carry_out(stone, collection, point, drop_dependents)

    async def _delete(self, record: Record, unchanged: Sequence[str]) -> bool:
        given = (self._kind.resource, record.payload[self._kind.id_key], record, unchanged)
        stone = await self._tombstones.begin(*given)
        return await self.finish_delete(stone)

    async def _drop_dependents(self, stone: Tombstone, left: Record | None) -> None:
        """Drop what hung on a deleted one; ``left`` has taken its id since."""
