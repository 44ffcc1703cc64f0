"""Recomputes terms and signatures that other rules derived, before anything is served.

Both follow from the stored texts alone, without the model. Without a rebuild, a store of another
version would be searched by terms that are no longer produced, without any error. The store's
metadata names the new rules before the first record is written, so that no older version starts in
the meantime, and records the progress, so that an interrupted rebuild resumes. Several processes
may run it at once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, Final

from lot_grpc.domain.error_text.signature import VERSION
from lot_grpc.lexical.bm25 import document_vector
from lot_grpc.ports import Condition, Equals, IdIn, Missing, Range, Record, VectorStore
from lot_grpc.services.errors.error_reading import read_aside
from lot_grpc.services.recall.search_fields import SearchFields
from lot_grpc.services.records.collections import ERROR_SOLUTIONS, SORT_KEY, SPARSE_VECTOR
from lot_grpc.services.records.error_solutions import error_solution_from_record, signature_payload
from lot_grpc.services.registry import Registry
from lot_grpc.services.scanning import scan
from lot_grpc.services.store_metadata import (
    DERIVATION,
    DERIVATION_VERSION,
    DERIVED_UP_TO,
    Progress,
    check_derivation,
    is_outdated,
    read_metadata,
    update_metadata,
)

_BATCH = 512

_WHAT: Final = "bringing the store up to date"


async def needs_rebuild(store: VectorStore) -> bool:
    """Whether an open store has terms or signatures that this version did not derive."""
    return is_outdated(await read_metadata(store))


async def rebuild_derived_data(
    store: VectorStore,
    registry: Registry,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> int:
    """Derive what there is to derive; return of how many records. The store is open.

    Once ``stop`` says so it returns with the rest left undone (``needs_rebuild``).

    Raises:
        SchemaVersionMismatchError: A newer version has taken over the store in the meantime.
    """
    metadata = await read_metadata(store)
    check_derivation(metadata)
    if not is_outdated(metadata):
        return 0
    if metadata.get(DERIVATION) != DERIVATION_VERSION:
        metadata = await _begin(store, registry, metadata.get(DERIVATION))
    up_to = metadata.get(DERIVED_UP_TO) or {}
    return await _Rebuild(store, registry, up_to, progress).run(stop)


async def _begin(store: VectorStore, registry: Registry, stored: str | None) -> dict[str, Any]:
    """Claim the store for this version, unless another one did since."""
    unchanged = Missing(DERIVATION) if stored is None else Equals(DERIVATION, stored)
    begun = {
        DERIVATION: DERIVATION_VERSION,
        DERIVED_UP_TO: dict.fromkeys(registry.searched, 0),
    }
    await update_metadata(store, begun, [unchanged])
    metadata = await read_metadata(store)
    check_derivation(metadata)
    return metadata


class _Rebuild:
    """One run. ``up_to`` holds, by collection, the sort key below which all is done."""

    def __init__(
        self,
        store: VectorStore,
        registry: Registry,
        up_to: dict[str, int],
        progress: Progress | None,
    ) -> None:
        self._store = store
        self._searched = registry.searched
        self._up_to = up_to
        self._progress = progress
        self._written = self._done = self._total = 0

    async def run(self, stop: Callable[[], bool]) -> int:
        for collection in self._searched:
            count = await self._store.count(collection, None)
            self._total += count
            self._done += count - await self._store.count(collection, None, self._left(collection))
        self._report()
        for collection in self._searched:
            async for batch in self._batches(collection):
                if stop():
                    return self._written
                await self._rebuild(collection, batch)
        await self._store.flush()
        await self._note({DERIVED_UP_TO: None})
        self._done = self._total
        self._report()
        return self._written

    def _left(self, collection: str) -> list[Condition]:
        """What is to be done; of records that share a sort key some are done once more."""
        return [Range(SORT_KEY, gte=self._up_to.get(collection, 0))]

    async def _batches(self, collection: str) -> AsyncGenerator[list[Record], None]:
        batch: list[Record] = []
        async for record in scan(
            self._store, collection, None, self._left(collection), batch=_BATCH
        ):
            batch.append(record)
            if len(batch) == _BATCH:
                yield batch
                batch = []
        if batch:
            yield batch

    async def _rebuild(self, collection: str, batch: Sequence[Record]) -> None:
        records = batch
        while (
            records
        ):  # another process that is already serving may have edited some in the meantime
            records = await _derive(self._store, self._searched[collection], records)
        await self._store.flush()  # else the note might outlive the terms when power is lost
        self._up_to = {**self._up_to, collection: batch[-1].payload[SORT_KEY]}
        await self._note({DERIVED_UP_TO: self._up_to})
        self._written += len(batch)
        self._done += len(batch)
        self._report()

    async def _note(self, changed: dict[str, Any]) -> None:
        ours = Equals(DERIVATION, DERIVATION_VERSION)
        if not await update_metadata(self._store, changed, [ours]):
            check_derivation(await read_metadata(self._store))

    def _report(self) -> None:
        if self._progress is not None and self._total:
            self._progress(_WHAT, min(self._done, self._total), self._total)


async def _derive(
    store: VectorStore, searched: SearchFields, records: Sequence[Record]
) -> Sequence[Record]:
    """Write terms and signatures of records; return the records edited in the meantime."""
    collection = searched.collection
    if collection == ERROR_SOLUTIONS:
        for record in records:
            await _sign(store, record)
    texts = await searched.texts(records)
    terms = [
        Record(one.id, one.namespace, {}, {SPARSE_VECTOR: document_vector(text.whole)})
        for one, text in zip(records, texts, strict=True)
    ]
    await store.set_vectors(collection, terms)
    if store.exclusive:
        return []
    ids = IdIn(tuple(one.id for one in records))
    found = await store.scroll(collection, None, [ids], limit=len(records))
    read = {one.id: text for one, text in zip(records, texts, strict=True)}
    now = await searched.texts(found)
    return [one for one, text in zip(found, now, strict=True) if text != read[one.id]]


async def _sign(store: VectorStore, record: Record) -> None:
    if record.payload.get("signed_by") == VERSION:
        return
    content = error_solution_from_record(record).content
    await read_aside(content.error_type, content.error_message)
    unchanged = [Equals(key, record.payload[key]) for key in (SORT_KEY, "revision")]
    await store.update(
        ERROR_SOLUTIONS,
        record.namespace,
        record.id,
        set=signature_payload(content),
        when=unchanged,
    )
