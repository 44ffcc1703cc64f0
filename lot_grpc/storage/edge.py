"""The embedded store: Qdrant Edge in this process, one shard folder per collection.

Every call to Edge is short and holds the GIL, so calls run inline on the event loop; a thread would
only add a hand-over (docs/adr/0021-edge-in-line.md). That makes compare-and-set simple: the folder
lock makes this the only process, and a read and a write with no ``await`` between them are atomic.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import structlog

from lot_grpc.domain.errors import StartupError, StoreUnavailableError
from lot_grpc.ports import (
    Clock,
    CollectionSpec,
    Order,
    Record,
    Rescore,
    Scalar,
    SearchQuery,
    SearchResult,
    StoreInfo,
    Update,
    Where,
)
from lot_grpc.storage import edge_reads, edge_writes
from lot_grpc.storage.checks import check_delete, check_records, known, require_same
from lot_grpc.storage.edge_filter import edge_filter, expired_filter
from lot_grpc.storage.edge_shard import EDGE_ERRORS, Shard
from lot_grpc.storage.group_commit import GroupCommit
from lot_grpc.storage.lock import FolderLock
from lot_grpc.storage.manifest import Manifest, missing_things
from lot_grpc.storage.mapped import release_indexes
from lot_grpc.storage.space import DEFAULT_MIN_FREE_BYTES, SpaceGuard, used_by_collection

_log = structlog.get_logger()

_DELETE_CHUNK = 250
"""Blocks the event loop for 14 ms with vectors, 5 ms without (measured)."""

_LOOK_SECONDS = 0.05
"""Minimum time between two checks, before writes, that the folder still exists."""

_CLOSED = "the store is closed; the service is shutting down"


class EdgeStore:
    """Records in Qdrant Edge under ``path``. Locks the folder from construction to ``close``.

    ``min_free_bytes`` is the free-space watermark (0: none). With ``sync_always`` a write returns
    only when it is on the disk itself, to survive a power loss; concurrent writers share one sync.
    ``accept_loss`` opens a folder with missing files or records, with what is left.

    Raises:
        StoreLockedError: another process holds the folder.
        StartupError: the folder cannot be used, something is missing from it, or the disk is full.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        *,
        min_free_bytes: int = DEFAULT_MIN_FREE_BYTES,
        sync_always: bool = False,
        search_threads: int = 1,
        space: SpaceGuard | None = None,
        accept_loss: bool = False,
    ) -> None:
        self._path = path
        self._clock = clock
        self._search_threads = search_threads
        self._shards: dict[str, Shard] = {}
        self._closed = False
        self._lock = FolderLock(path)
        self._space = space or SpaceGuard(path, min_free_bytes)
        self._commit = GroupCommit(self._sync_all) if sync_always else None
        self._accept_loss = accept_loss
        try:
            self._space.require_open()
            self._inode = path.stat().st_ino
            self._manifest = Manifest(path)
            self._missing(self._manifest.missing_files())
        except BaseException:
            self._lock.release()
            raise

    @property
    def exclusive(self) -> bool:
        """The folder lock keeps other processes out."""
        return True

    async def ensure_collections(self, specs: Sequence[CollectionSpec]) -> None:
        """Open the existing shards and complete their schema. Refuses a store with lost records."""
        self._require_open()
        missing: dict[str, str] = {}
        for spec in specs:
            open_one = self._shards.pop(spec.name, None)
            if open_one is not None:
                open_one.close()
            shard = Shard(self._path / spec.name, spec, self._search_threads, self._manifest)
            self._shards[spec.name] = shard
            count = shard.count()
            if phrase := self._manifest.missing_records(spec.name, count):
                missing[spec.name] = phrase
            if self._accept_loss or not phrase:
                self._manifest.opened(spec.name, count)
            await asyncio.sleep(0)
        release_indexes(self._path, [spec.name for spec in specs])
        self._manifest.save()
        self._missing(list(missing.values()))

    async def extend(self, spec: CollectionSpec) -> None:
        """Add the missing vectors to the open shard."""
        with EDGE_ERRORS:
            self._to_write(spec.name, ()).extend(spec)
        await self._committed()

    async def drop_vectors(self, collection: str, names: Sequence[str]) -> None:
        """Drop vectors from the open shard; the next compaction frees their space."""
        shard = self._shard(collection)
        shard.require_there()
        with EDGE_ERRORS:
            shard.drop_vectors(names)
        await self._committed()

    # --- writing ---

    async def insert(self, collection: str, records: Sequence[Record]) -> set[str]:
        """Insert records whose id is free, in one operation of the shard."""
        shard = self._to_write(collection, records)
        inserted = edge_writes.insert(shard, records, self._clock.now())
        await self._committed()
        return inserted

    async def put(self, collection: str, records: Sequence[Record]) -> None:
        """Insert or replace whole records; other tasks run between chunks."""
        await self._in_chunks(collection, records, edge_writes.put)

    async def replace(self, collection: str, record: Record, when: Where) -> bool:
        """Replace payload and vectors of an existing record in one operation."""
        shard = self._to_write(collection, [record])
        if not edge_writes.replace(shard, record, when, self._clock.now()):
            return False
        await self._committed()
        return True

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
        """Set and remove keys in one operation."""
        shard = self._to_write(collection, ())
        if not edge_writes.update(shard, namespace, id, set, unset, when, self._clock.now()):
            return False
        await self._committed()
        return True

    async def update_many(self, collection: str, updates: Sequence[Update]) -> set[str]:
        """Set keys of several records; neighbours with equal changes share one operation."""
        shard = self._to_write(collection, ())
        updated = edge_writes.update_many(shard, updates, self._clock.now())
        await self._committed()
        return updated

    async def set_vectors(self, collection: str, records: Sequence[Record]) -> None:
        """Set named vectors; other tasks run between chunks."""
        await self._in_chunks(
            collection,
            records,
            lambda shard, chunk: edge_writes.set_vectors(shard, chunk, self._clock.now()),
        )

    async def delete(
        self, collection: str, namespace: str | None, where: Where, limit: int = 0
    ) -> int:
        """Delete matching records in chunks; other tasks run in between."""
        check_delete(namespace, where)
        return await self._delete(collection, edge_filter(namespace, where, None), limit)

    async def delete_expired(self, collection: str, *, limit: int) -> int:
        """Delete records whose expiry has passed."""
        now = self._clock.now()
        if self._shard(collection).expired_at(now) is None:
            return 0
        deleted = await self._delete(collection, expired_filter(now), limit)
        if deleted < limit:
            with EDGE_ERRORS:
                self._shard(collection).find_next_expiry()
        return deleted

    # --- reading ---

    async def get(
        self, collection: str, namespace: str, ids: Sequence[str], *, vectors: bool = False
    ) -> dict[str, Record]:
        """Fetch by id."""
        shard = self._shard(collection)
        return edge_reads.get(shard, namespace, ids, self._clock.now(), vectors=vectors)

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
        """Matching records by the order's key, else by id."""
        given = (self._shard(collection), namespace, where, self._clock.now())
        return edge_reads.scroll(
            *given, limit=limit, order=order, after=after, payload=payload, vectors=vectors
        )

    async def search(
        self,
        collection: str,
        namespace: str,
        queries: Sequence[SearchQuery],
        rescore: Rescore | None = None,
    ) -> SearchResult:
        """Run the queries as one batch."""
        shard = self._shard(collection)
        return edge_reads.search(shard, namespace, queries, rescore, self._clock.now())

    async def count(self, collection: str, namespace: str | None, where: Where = ()) -> int:
        """Exact number of matching records."""
        return edge_reads.count(self._shard(collection), namespace, where, self._clock.now())

    async def facet(
        self, collection: str, namespace: str | None, key: str, where: Where = (), limit: int = 100
    ) -> dict[Scalar, int]:
        """Exact counts by value."""
        shard = self._shard(collection)
        return edge_reads.facet(shard, namespace, key, where, self._clock.now(), limit)

    async def namespaces(self, collection: str) -> set[str]:
        """The namespaces that the index holds."""
        return edge_reads.namespaces(self._shard(collection))

    async def expired(self, collection: str, *, limit: int, where: Where = ()) -> list[Record]:
        """Records whose expiry has passed."""
        return edge_reads.expired(self._shard(collection), self._clock.now(), limit, where)

    # --- operation ---

    async def check(self) -> None:
        """Raise what a write would raise now."""
        self._require_open()
        require_same(str(self._path), self._inode)
        for shard in self._shards.values():
            shard.require_there()
        if not os.access(self._path, os.W_OK):
            raise StoreUnavailableError(
                f"the data folder {self._path} is no longer writable; give this user write "
                "permission, or remount it read-write",
                path=self._path,
            )
        self._space.require_write()

    async def compact(self) -> bool:
        """Optimize every shard. Holds the GIL for minutes at 100,000 vectors: never in service."""
        self._require_open()
        with EDGE_ERRORS:
            changed = [shard.raw.optimize() for shard in self._shards.values()]
        return any(changed)

    async def info(self) -> StoreInfo:
        """Point counts, sizes by blocks, and whether writes are accepted."""
        self._require_open()
        with EDGE_ERRORS:
            points = {name: s.raw.info().points_count for name, s in self._shards.items()}
        free = self._space.free()
        sizes = await asyncio.to_thread(used_by_collection, self._path)
        return StoreInfo(
            backend="edge",
            location=str(self._path),
            points=points,
            used_bytes=sum(sizes.values()),
            free_bytes=free,
            writable=(writable := free >= self._space.min_free_bytes),
            detail="" if writable else "writes are rejected until space is freed",
            sizes=sizes,
        )

    async def flush(self) -> None:
        """Flush the shards that were written to; other tasks run in between."""
        for collection in list(self._shards):
            shard = self._shard(collection)
            with EDGE_ERRORS:
                if shard.flush():
                    shard.list_files()
            await asyncio.sleep(0)
        self._require_open()

    async def close(self) -> None:
        """Flush and close every shard, release the folder, then raise the first failure, if any."""
        if self._closed:
            return
        self._closed = True
        failure: StoreUnavailableError | None = None
        try:
            for shard in self._shards.values():
                try:
                    with EDGE_ERRORS:
                        shard.close()
                    self._manifest.note(shard.spec.name)
                except StoreUnavailableError as error:
                    failure = failure or error
        finally:
            self._manifest.save()
            self._manifest.close()
            self._shards.clear()
            self._lock.release()
        if failure is not None:
            raise failure

    # --- inside ---

    def _require_open(self) -> None:
        if self._closed:
            raise StoreUnavailableError(_CLOSED)

    def _missing(self, phrases: Sequence[str]) -> None:
        """Refuse to continue with data missing, unless the loss is accepted."""
        if not phrases:
            return
        if not self._accept_loss:
            raise StartupError(missing_things(self._path, phrases), path=self._path)
        _log.warning("started with data missing", missing="; ".join(phrases))

    def _shard(self, collection: str) -> Shard:
        self._require_open()
        return known(self._shards, collection)

    def _to_write(self, collection: str, records: Sequence[Record]) -> Shard:
        shard = self._shard(collection)
        shard.require_there(within_seconds=_LOOK_SECONDS)
        self._space.require_write()
        check_records(shard.spec, records)
        return shard

    async def _in_chunks(
        self,
        collection: str,
        records: Sequence[Record],
        write: Callable[[Shard, Sequence[Record]], None],
    ) -> None:
        self._to_write(collection, records)
        for number, chunk in enumerate(edge_writes.chunks(records)):
            if number:
                await asyncio.sleep(0)
            write(self._to_write(collection, ()), chunk)
        await self._committed()

    async def _delete(self, collection: str, chosen: Any, limit: int) -> int:
        """``limit`` 0: all."""
        deleted = 0
        while True:
            shard = self._shard(collection)
            shard.require_there(within_seconds=_LOOK_SECONDS)
            self._space.require_delete()
            size = min(_DELETE_CHUNK, limit - deleted) if limit else _DELETE_CHUNK
            count, more = edge_writes.delete(shard, chosen, size)
            deleted += count
            if not more or deleted == limit:
                break
            await asyncio.sleep(0)
        await self._committed()
        return deleted

    async def _committed(self) -> None:
        if self._commit is not None:
            await self._commit.join()

    def _sync_all(self) -> None:
        with EDGE_ERRORS:
            for shard in self._shards.values():
                shard.sync()
