"""Makes the vectors of another model, and switches to them.

The remaining work is whatever lacks the new vectors: a record that is written during the rebuild
loses them with its old ones and so is embedded again. So no progress is stored, and an interrupted
run resumes where it was. The store's metadata names the old model until one write names the new
one. Before that write the new vectors are not read, and after it the old ones are not; they are
dropped then or at the next start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, replace
from typing import Any

from lot_grpc.domain.search_text import SearchText
from lot_grpc.ports import (
    CollectionSpec,
    Condition,
    Embedder,
    Equals,
    HasVector,
    IdIn,
    Not,
    Record,
    SparseVector,
    Vector,
    VectorStore,
)
from lot_grpc.services.record_embedder import RecordEmbedder
from lot_grpc.services.registry import Registry
from lot_grpc.services.reindex.current_model import CurrentModel
from lot_grpc.services.reindex.epochs import stored_name, stored_spec
from lot_grpc.services.resource_spec import ResourceCollection
from lot_grpc.services.store_metadata import (
    EPOCH,
    REBUILD,
    STALE_EPOCHS,
    read_metadata,
    same_model,
    update_metadata,
)

_BATCH = 64

Turn = Callable[[], AbstractAsyncContextManager[object]]
ReportProgress = Callable[[str, int], None]
"""Receives the current collection and the number of its records done."""


class VectorRebuild:
    """One run. ``store`` is the one with the names as they are; ``turn`` keeps writers away."""

    def __init__(
        self, store: VectorStore, registry: Registry, target: Embedder, turn: Turn
    ) -> None:
        self._store = store
        self._registry = registry
        self._target = CurrentModel(target)
        self._embedder = RecordEmbedder(self._target)
        self._turn = turn
        self.epoch = 0

    @property
    def specs(self) -> list[CollectionSpec]:
        """The collections with dense vectors, as the target model needs them."""
        specs = self._registry.collection_specs(self._target.contract.dimensions)
        return [spec for spec in specs if spec.dense]

    async def begin(self) -> bool:
        """Make place for the new vectors; False if the target serves already.

        What an unfinished run to another model left is dropped.
        """
        # Else a new epoch might take the number of one of these.
        await drop_stale(self._store, self._registry)
        row = await read_metadata(self._store)
        left: Mapping[str, Any] | None = row.get(REBUILD)
        ours = asdict(self._target.contract)
        serves = same_model(row["embedding"], ours)
        goes_on = left is not None and not serves and same_model(left["embedding"], ours)
        if left is not None and goes_on:
            self.epoch = left["epoch"]
        else:
            dropped = [left["epoch"]] if left else []
            self.epoch = max([row.get(EPOCH, 0), *dropped]) + 1
            rebuild = None if serves else {"epoch": self.epoch, "embedding": ours}
            await update_metadata(self._store, {REBUILD: rebuild, STALE_EPOCHS: dropped})
            await drop_stale(self._store, self._registry)
        if serves:
            return False
        for spec in self.specs:
            new = replace(stored_spec(spec, self.epoch), sparse=(), indexes={})
            await self._store.extend(new)
            await asyncio.sleep(0)
        return True

    async def total(self) -> int:
        """The number of records with vectors."""
        return sum(
            [
                await self._store.count(name, None, collection.embeddable)
                for name, collection in self._registry.embedded.items()
            ]
        )

    async def left(self) -> int:
        """The number of records that lack the new vectors."""
        return sum(
            [
                await self._store.count(name, None, self._lacking(name))
                for name in self._registry.embedded
            ]
        )

    async def embed_all(self, report_progress: ReportProgress) -> None:
        """Make the new vectors of all records that lack them.

        Raises:
            EmbeddingFailedError: The target model failed on one; what is done stays.
        """
        for name, collection in self._registry.embedded.items():
            while done := await self._batch(collection):
                report_progress(name, done)

    async def name_it(self) -> None:
        """Let the store's metadata name the target, in one write. All must have its vectors."""
        await self._store.flush()
        row = await read_metadata(self._store)
        embedding = asdict(self._target.contract)
        stale = [*row.get(STALE_EPOCHS, []), row.get(EPOCH, 0)]
        changed = {"embedding": embedding, EPOCH: self.epoch, REBUILD: None, STALE_EPOCHS: stale}
        await update_metadata(self._store, changed)
        await drop_hashed(self._store, self._registry, self.epoch)
        await self._store.flush()

    async def is_named(self) -> bool:
        """Whether the metadata names the target."""
        return bool((await read_metadata(self._store)).get(EPOCH, 0) == self.epoch)

    def _lacking(self, collection: str) -> list[Condition]:
        embedded = self._registry.embedded[collection]
        new = stored_name(embedded.dense[0], self.epoch)
        return [*embedded.embeddable, Not(HasVector(new))]

    async def _batch(self, collection: ResourceCollection) -> int:
        """The next records; 0 when none are left."""
        name = collection.name
        records = await self._store.scroll(name, None, self._lacking(name), limit=_BATCH)
        if not records:
            return 0
        vectors = await self._vectors(collection, records)
        async with self._turn():
            same = await self._still_so(collection, records)
            given = [
                Record(one.id, one.namespace, {}, made)
                for one, made in zip(records, vectors, strict=True)
                if one.id in same
            ]
            await self._store.set_vectors(name, given)
        await asyncio.sleep(0)
        return len(records)

    async def _still_so(
        self, collection: ResourceCollection, records: Sequence[Record]
    ) -> set[str]:
        """Those that are found by the same text as when they were read."""
        same: set[str] = set()
        by_namespace: dict[str, list[Record]] = {}
        for record in records:
            by_namespace.setdefault(record.namespace, []).append(record)
        for namespace, theirs in by_namespace.items():
            ids = IdIn(tuple(one.id for one in theirs))
            where = [ids, *collection.embeddable]
            left = await self._store.scroll(collection.name, namespace, where, limit=len(theirs))
            found = {one.id: one for one in left}
            there = [one for one in theirs if one.id in found]
            read = await _texts(collection, there)
            now = await _texts(collection, [found[one.id] for one in there])
            same |= {one.id for one, old, new in zip(there, read, now, strict=True) if old == new}
        return same

    async def _vectors(
        self, collection: ResourceCollection, records: Sequence[Record]
    ) -> list[dict[str, Vector]]:
        """The dense ones, by the names of the new epoch."""
        return [
            {
                stored_name(name, self.epoch): vector
                for name, vector in one.items()
                if not isinstance(vector, SparseVector)
            }
            for one in await self._embedder.vectors(collection, records)
        ]


async def drop_hashed(store: VectorStore, registry: Registry, epoch: int) -> None:
    """Delete records that have no text and lack the vectors of the epoch that serves."""
    for name, collection in registry.embedded.items():
        if collection.hashed_key:
            lacking = Not(HasVector(stored_name(collection.dense[0], epoch)))
            await store.delete(name, None, [Equals(collection.hashed_key, True), lacking])


async def drop_stale(store: VectorStore, registry: Registry) -> None:
    """Drop the vectors of epochs that are no longer used, and what is useless without them."""
    row = await read_metadata(store)
    stale = row.get(STALE_EPOCHS, [])
    if not stale:
        return
    await drop_hashed(store, registry, row.get(EPOCH, 0))
    for spec in registry.collection_specs(1):
        names = [stored_name(name, epoch) for name in (*spec.dense, *spec.multi) for epoch in stale]
        if names:
            await store.drop_vectors(spec.name, names)
            await asyncio.sleep(0)
    await store.flush()
    await update_metadata(store, {STALE_EPOCHS: []})


async def _texts(
    collection: ResourceCollection, records: Sequence[Record]
) -> Sequence[SearchText | str]:
    if collection.query_key:
        return [record.payload[collection.query_key] for record in records]
    return await collection.search_fields.texts(records)
