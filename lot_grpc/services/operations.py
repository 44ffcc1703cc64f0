"""Operations on the records of every kind: reading, listing, inserting and deleting.

``Resources`` follows the spec of a kind. A kind whose records own others, or are read from more
than one record, has a subclass, which its ``module.py`` provides.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from lot_grpc.domain.origin import Review
from lot_grpc.kernel.compare_and_set import ConflictError, as_read, compare_and_set, require_etag
from lot_grpc.kernel.tombstones import Tombstone
from lot_grpc.ports import EXPIRES_KEY, Range, Record
from lot_grpc.services.outcomes.logs import forget_logs, forget_older_logs
from lot_grpc.services.paging import Fits, Page, Position, any_size, read_each, read_page
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.records.counters import STATS_REVISION
from lot_grpc.services.records.origin import (
    REVIEW_NOTE,
    REVIEW_PRINCIPAL,
    review_of,
    review_payload,
)
from lot_grpc.services.resource_spec import ResourceSpec
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.transfer.rows import Row

FinishExpiry: TypeAlias = Callable[[Record], Awaitable[None]]

T = TypeVar("T")
F = TypeVar("F")


class Resources(Generic[T, F]):
    """The records of one kind, in all namespaces. A subclass adds how they are written.

    Attributes:
        spec: The declaration of the kind.
    """

    def __init__(self, spec: ResourceSpec, runtime: Runtime) -> None:
        self.spec = spec
        self._store = runtime.store
        self._indexer = runtime.indexer
        self._time = runtime.time
        self._idempotency = runtime.idempotency
        self._create = runtime.create
        self._tombstones = runtime.tombstones

    # --- reading ------------------------------------------------------------------------------

    async def get(self, namespace: str, id: str) -> T:
        """The record of an id. Raises the kind's NotFoundError."""
        return await self.read(await self.read_record(namespace, id))

    async def get_many(self, namespace: str, ids: Sequence[str]) -> list[T]:
        """The existing ones, in the order of the ids."""
        found = await self.records(namespace, ids)
        return [await self.read(found[one]) for one in ids if one in found]

    async def read(self, record: Record) -> T:
        """The one of a stored record."""
        return self._from_record(record)

    async def read_record(
        self, namespace: str, id: str, *, vectors: bool = False, etag: str = ""
    ) -> Record:
        """The record of one that has ``etag`` (empty: any).

        Raises the kind's NotFoundError, EtagMismatchError.
        """
        record = await self.find_record(namespace, id, vectors=vectors)
        if record is None:
            raise self.spec.missing(namespace, id)
        if etag:
            current = getattr(self._from_record(record), "etag", "")
            require_etag(self.spec.kind, id, etag, current)
        return record

    async def find_record(self, namespace: str, id: str, *, vectors: bool = False) -> Record | None:
        """The stored record of an id; None if it does not exist."""
        point = self.spec.point_of(namespace, id)
        found = await self._store.get(self._collection, namespace, [point], vectors=vectors)
        return found.get(point)

    async def records(self, namespace: str, ids: Sequence[str]) -> dict[str, Record]:
        """The stored records of existing ids, by id."""
        points = {self.spec.point_of(namespace, one): one for one in ids}
        found = await self._store.get(self._collection, namespace, list(points))
        return {points[point]: record for point, record in found.items()}

    async def list_page(
        self,
        namespace: str,
        requested: F,
        size: int,
        after: Position | None,
        fits: Fits[T] = any_size,
    ) -> Page[T, Position]:
        """A page of the records that match a filter, newest first."""

        async def read(records: Sequence[Record]) -> list[T]:
            return await read_each(records, self.read)

        where = self.spec.conditions(requested)
        given = (self._store, self._collection, namespace, where)
        return await read_page(*given, size, after, read, fits)

    # --- inserting ----------------------------------------------------------------------------

    async def insert(self, namespace: str, records: Sequence[Record]) -> set[str]:
        """Insert the records that do not exist; return their points.

        What belongs to expired records whose ids are reused is deleted.
        """
        inserted = await self._insert_records(records)
        fresh = [record for record in records if record.id in inserted]
        if fresh and self.spec.counted:
            await forget_older_logs(self._store, self.spec, fresh)
        return inserted

    async def _insert_records(self, records: Sequence[Record]) -> set[str]:
        return await self._store.insert(self._collection, records)

    # --- deleting -----------------------------------------------------------------------------

    async def delete(self, namespace: str, id: str, etag: str = "") -> None:
        """Delete the one that has ``etag`` (empty: any), and what belongs to it.

        Raises the kind's NotFoundError, EtagMismatchError, ContentionError.
        """

        async def attempt() -> None:
            record = await self.read_record(namespace, id, etag=etag)
            if not await self._delete(record, self.spec.unchanged):
                raise ConflictError

        await compare_and_set(self.spec.kind, id, attempt)

    async def delete_as_seen(self, record: Record) -> bool:
        """Delete one that is still as its record says, read with ``spec.seen_keys`` at least.

        False for one that was changed since: it is spared, also where this process dies and another
        finishes the delete.
        """
        return await self._delete(record, self.spec.unchanged_as_seen)

    async def finish_delete(self, stone: Tombstone) -> bool:
        """Carry out a recorded delete; False if the record has changed since."""

        async def drop_dependents(left: Record | None) -> None:
            await self._drop_dependents(stone, left)

        point = self.spec.point_of(stone.namespace, stone.id)
        return await self._tombstones.carry_out(stone, self._collection, point, drop_dependents)

    async def finish_expiry(self, record: Record) -> None:
        """Delete what belongs to an expired record, unless its id is in use again."""
        if self.spec.counted:
            older = Range(SORT_KEY, lte=record.payload[EXPIRES_KEY])
            await forget_logs(self._store, self.spec, record, [older])

    async def _delete(self, record: Record, unchanged: Sequence[str]) -> bool:
        given = (self.spec.kind, record.payload[self.spec.id_key], record, unchanged)
        stone = await self._tombstones.begin(*given)
        return await self.finish_delete(stone)

    async def _drop_dependents(self, stone: Tombstone, left: Record | None) -> None:
        """Delete what belonged to a deleted record; ``left`` has reused its id."""
        if self.spec.counted:
            point = self.spec.point_of(stone.namespace, stone.id)
            deleted = Record(point, stone.namespace, {self.spec.id_key: stone.id})
            older = [Range(SORT_KEY, lt=left.payload[SORT_KEY])] if left else []
            await forget_logs(self._store, self.spec, deleted, older)

    # --- reviewing ----------------------------------------------------------------------------

    async def review(
        self, namespace: str, id: str, given: Review, etag: str
    ) -> tuple[Review, bool]:
        """Set the review of the one that has ``etag`` (empty: any), unless it is the same already.

        Returns the review, and whether it was set. What is reviewed is the content at that moment:
        an edit in between makes it start over. Raises the kind's NotFoundError, EtagMismatchError,
        ContentionError.
        """

        async def attempt() -> tuple[Review, bool]:
            record = await self.read_record(namespace, id, etag=etag)
            stored = review_of(record.payload)
            if stored is not None and (stored.state, stored.note) == (given.state, given.note):
                return stored, False
            if not await self._write_review(record, given):
                raise ConflictError
            return given, True

        return await compare_and_set(self.spec.kind, id, attempt)

    async def _write_review(self, record: Record, review: Review) -> bool:
        """Write it unless the record has changed. As for a counter, its etag stays."""
        number = record.payload.get(STATS_REVISION, 0) + 1
        return await self._store.update(
            self._collection,
            record.namespace,
            record.id,
            set={
                REVIEW_NOTE: "",
                REVIEW_PRINCIPAL: "",
                **review_payload(review),
                STATS_REVISION: number,
            },
            when=as_read(record, "revision", STATS_REVISION),
        )

    # --- exports and imports ------------------------------------------------------------------

    async def unique_ids(self, namespace: str, records: Sequence[Record]) -> Collection[str]:
        """The ids of the records that hold the claim on their content."""
        return ()

    async def before_import(self, rows: Sequence[Row]) -> None:
        """Called before rows of one namespace are stored."""

    async def before_replace(self, stored: Record) -> None:
        """Called before an import replaces a record and deletes what belongs to it."""

    async def after_import(
        self, namespace: str, rows: Mapping[str, Row], former: Mapping[str, Record]
    ) -> None:
        """Called after rows were stored, by point; ``former`` are the records they replaced."""

    @property
    def _collection(self) -> str:
        return self.spec.collection.name

    def _from_record(self, record: Record) -> T:
        read: T = self.spec.read(record)
        return read


class ResourcesByKind:
    """The records of all kinds of a registry."""

    def __init__(
        self,
        runtime: Runtime,
        own: Iterable[Resources[Any, Any]] = (),
    ) -> None:
        """``own`` are those of kinds with a subclass of ``Resources``."""
        self.registry = runtime.registry
        self._tombstones = runtime.tombstones
        self._by_kind: dict[str, Resources[Any, Any]] = {
            spec.kind: Resources(spec, runtime) for spec in self.registry.resources.values()
        }
        self._by_kind.update({one.spec.kind: one for one in own})
        self._by_collection = {one.spec.collection.name: one for one in self._by_kind.values()}

    def of(self, kind: str) -> Resources[Any, Any]:
        """The records of a kind."""
        return self._by_kind[kind]

    def finish_expiry(self, collection: str) -> FinishExpiry | None:
        """What deletes what belongs to an expired record of a collection; None: nothing does."""
        one = self._by_collection.get(collection)
        if one is None:
            return None
        has_own = type(one).finish_expiry is not Resources.finish_expiry
        return one.finish_expiry if has_own or one.spec.counted else None

    async def finish_deletes(self, before: int) -> int:
        """Carry out deletes recorded before a time and left unfinished; return how many."""

        async def finish(stone: Tombstone) -> None:
            await self.of(stone.resource_kind).finish_delete(stone)

        return await self._tombstones.recover(before, finish)
