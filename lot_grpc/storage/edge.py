"""The embedded store: Qdrant Edge in this process, one shard folder per collection.

Every call to Edge is short and holds the GIL, so calls are made in line on the event loop: a thread
would only add its hand-over (measured, docs/decisions.md). That also makes compare-and-set simple.
The folder lock makes this the only process, and without an ``await`` between the read and the write
nobody comes in between.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import structlog
from qdrant_edge import (
    CountRequest,
    Direction,
    FacetRequest,
    OrderBy,
    Query,
    QueryBatchRequest,
    QueryRequest,
    ScrollRequest,
    UpdateMode,
    UpdateOperation,
)

from lot_grpc.domain.errors import StartupError, StoreUnavailableError
from lot_grpc.ports import (
    EXPIRES_KEY,
    NAMESPACE_KEY,
    Clock,
    CollectionSpec,
    MultiVector,
    Order,
    Payload,
    Record,
    Scalar,
    Scores,
    SearchQuery,
    StoreInfo,
    Where,
)
from lot_grpc.storage.checks import (
    check_delete,
    check_query,
    check_records,
    distinct,
    known,
    require_same,
)
from lot_grpc.storage.conditions import is_expired, keys_of, matches
from lot_grpc.storage.edge_filter import edge_filter, expired_filter
from lot_grpc.storage.edge_points import (
    point,
    point_vectors,
    query_vector,
    reader,
)
from lot_grpc.storage.edge_shard import EDGE_ERRORS, Shard
from lot_grpc.storage.group_commit import GroupCommit
from lot_grpc.storage.json_path import json_path, payload_choice
from lot_grpc.storage.lock import FolderLock
from lot_grpc.storage.manifest import Manifest, missing_things
from lot_grpc.storage.space import DEFAULT_MIN_FREE_BYTES, SpaceGuard, used_bytes

_log = structlog.get_logger()

_CHUNK = 512
"""What one operation writes, while nobody else gets a turn: so many records without vectors."""

_DELETE_CHUNK = 250
"""Holds the loop 14 ms with vectors, 5 without (measured)."""

_LOOK_SECONDS = 0.05
"""Minimum time between two checks, before writes, that the folder is still there."""

_MOST_NAMESPACES = 1_000_000
_CLOSED = "the store is closed; the service is shutting down"


class EdgeStore:
    """Records in Qdrant Edge under ``path``. Locks the folder from construction to ``close``.

    ``min_free_bytes`` is the watermark of free space (0: none). ``sync_always`` makes a write
    return only when it is on the disk itself, which power loss needs; writers share one flush.
    ``accept_loss`` opens a folder from which files or records are missing, with what is left.

    Raises:
        StoreLockedError: another process has the folder.
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
        self._commit = GroupCommit(self._flush_all) if sync_always else None
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
        """Open or create each shard and complete its schema. Refuses one that lacks records."""
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
        self._manifest.save()
        self._missing(list(missing.values()))

    async def extend(self, spec: CollectionSpec) -> None:
        """Add its new vectors to the open shard."""
        with EDGE_ERRORS:
            self._to_write(spec.name, ()).extend(spec)
        await self._committed()

    async def drop_vectors(self, collection: str, names: Sequence[str]) -> None:
        """Drop them in the open shard; their room is given back by the next compaction."""
        shard = self._shard(collection)
        shard.require_there()
        with EDGE_ERRORS:
            shard.drop_vectors(names)
        await self._committed()

    # --- writing ---

    async def insert(self, collection: str, records: Sequence[Record]) -> set[str]:
        """Insert records whose id is free, in one operation of the shard."""
        shard = self._to_write(collection, records)
        fresh = distinct(records)
        now = self._clock.now()
        expiring = shard.expired_at(now) is not None
        with EDGE_ERRORS:
            found = shard.raw.retrieve(list(fresh), [EXPIRES_KEY] if expiring else False, False)
            expired = [str(p.id) for p in found if is_expired(p.payload or {}, now)]
            for taken in {str(p.id) for p in found}.difference(expired):
                del fresh[taken]
            if expired:
                shard.raw.update(shard.deleting(expired))
            if fresh:
                # Their ids are free, and nobody came in between; InsertOnly would look again.
                self._upsert(shard, list(fresh.values()), UpdateMode.Upsert, added=len(fresh))
        await self._committed()
        return set(fresh)

    async def put(self, collection: str, records: Sequence[Record]) -> None:
        """Insert or replace whole records; other callers get their turn between chunks."""
        self._to_write(collection, records)
        for number, chunk in enumerate(_chunks(records)):
            if number:
                await asyncio.sleep(0)
            shard = self._to_write(collection, ())
            with EDGE_ERRORS:
                ids: set[Any] = {record.id for record in chunk}
                added = len(ids) - len(shard.raw.retrieve(list(ids), False, False))
                self._upsert(shard, chunk, UpdateMode.Upsert, added=added)
        await self._committed()

    async def replace(self, collection: str, record: Record, when: Where) -> bool:
        """Replace payload and vectors of an existing record in one operation."""
        shard = self._to_write(collection, [record])
        with EDGE_ERRORS:
            if self._current(shard, record.namespace, record.id, when, whole=False) is None:
                return False
            self._upsert(shard, [record], UpdateMode.UpdateOnly)
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
        with EDGE_ERRORS:
            current = self._current(shard, namespace, id, when, whole=bool(unset))
            if current is None:
                return False
            shard.note_expiry((set,))
            recent = shard.recent.pop(id)
            if unset:
                kept = {key: value for key, value in current.items() if key not in unset}
                changed = {**kept, **{k: v for k, v in set.items() if k not in unset}}
                operation = UpdateOperation.overwrite_payload([id], changed)
            else:
                operation = UpdateOperation.set_payload([id], dict(set))
            shard.raw.update(operation)
            shard.wrote(1, added=0)
        if recent is not None and not unset:
            shard.recent.keep_changed(recent, set)
        await self._committed()
        return True

    async def set_vectors(self, collection: str, records: Sequence[Record]) -> None:
        """Set named vectors; other callers get their turn between chunks."""
        self._to_write(collection, records)
        for number, chunk in enumerate(_chunks(records)):
            if number:
                await asyncio.sleep(0)
            shard = self._to_write(collection, ())
            with EDGE_ERRORS:
                self._set_vectors(shard, chunk)
        await self._committed()

    async def delete(
        self, collection: str, namespace: str | None, where: Where, limit: int = 0
    ) -> int:
        """Delete matching records in chunks; other callers get their turn in between."""
        check_delete(namespace, where)
        return await self._delete(collection, edge_filter(namespace, where, None), limit)

    async def namespaces(self, collection: str) -> set[str]:
        """As the index has them: 0.2 ms, where exact counts of 100,000 points take 20."""
        shard = self._shard(collection)
        request = FacetRequest(NAMESPACE_KEY, _MOST_NAMESPACES, False, None)
        with EDGE_ERRORS:
            return {str(hit.value) for hit in shard.raw.facet(request).hits}

    async def expired(self, collection: str, *, limit: int) -> list[Record]:
        """Records whose expiry has passed."""
        now = self._clock.now()
        shard = self._shard(collection)
        if shard.expired_at(now) is None:
            return []
        request = ScrollRequest(limit=limit, filter=expired_filter(now), with_payload=True)
        with EDGE_ERRORS:
            found, _ = shard.raw.scroll(request)
            if not found:
                shard.find_next_expiry()
        return list(map(reader(None), found))

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
        records: list[Record] = []
        unread: list[Any] = []
        for point_id in ids:
            kept = None if vectors else shard.recent.get(point_id)
            if kept is None:
                unread.append(point_id)
            else:
                records.append(Record(point_id, kept.namespace, dict(kept.payload)))
        if unread:
            with EDGE_ERRORS:
                found = list(map(reader(None), shard.raw.retrieve(unread, True, vectors)))
            records += found
            if shard.spec.dense and not vectors:
                for record in found:
                    shard.recent.keep(record)
        now = self._clock.now()
        return {
            record.id: record
            for record in records
            if record.namespace == namespace and not is_expired(record.payload, now)
        }

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
        """Matching records by the order's key, else by id."""
        shard = self._shard(collection)
        direction = Direction.Desc if order and order.descending else Direction.Asc
        request = ScrollRequest(
            limit=limit,
            filter=edge_filter(namespace, where, shard.expired_at(self._clock.now())),
            with_payload=payload_choice(payload, namespace),
            with_vector=vectors,
            order_by=OrderBy(json_path(order.key), direction) if order else None,
        )
        with EDGE_ERRORS:
            found, _ = shard.raw.scroll(request)
        return list(map(reader(namespace), found))

    async def search(
        self, collection: str, namespace: str, queries: Sequence[SearchQuery]
    ) -> list[Scores]:
        """Run the legs as one batch."""
        shard = self._shard(collection)
        expired_at = shard.expired_at(self._clock.now())
        filters: dict[int, Any] = {}  # legs usually share one `where`
        requests = []
        for query in queries:
            check_query(shard.spec, query)
            if not shard.has(query.using):
                continue
            where = query.where
            if id(where) not in filters:
                filters[id(where)] = edge_filter(namespace, where, expired_at)
            requests.append(
                QueryRequest(
                    query.limit,
                    query=Query.Nearest(query_vector(query.vector), using=query.using),
                    with_vector=False,
                    with_payload=False,
                    filter=filters[id(where)],
                    score_threshold=query.min_score,
                )
            )
        with EDGE_ERRORS:
            legs = iter(shard.raw.query_batch(QueryBatchRequest(requests)) if requests else ())
        return [
            {str(found.id): found.score for found in next(legs)} if shard.has(query.using) else {}
            for query in queries
        ]

    async def count(self, collection: str, namespace: str | None, where: Where = ()) -> int:
        """Exact number of matching records."""
        shard = self._shard(collection)
        chosen = edge_filter(namespace, where, shard.expired_at(self._clock.now()))
        with EDGE_ERRORS:
            return shard.raw.count(CountRequest(True, chosen))

    async def facet(
        self, collection: str, namespace: str | None, key: str, where: Where = (), limit: int = 100
    ) -> dict[Scalar, int]:
        """Exact counts by value."""
        shard = self._shard(collection)
        chosen = edge_filter(namespace, where, shard.expired_at(self._clock.now()))
        with EDGE_ERRORS:
            response = shard.raw.facet(FacetRequest(json_path(key), limit, True, chosen))
        return {hit.value: hit.count for hit in response.hits}

    # --- operation ---

    async def check(self) -> None:
        """Raise what a write would meet now."""
        self._require_open()
        require_same(str(self._path), self._inode)
        for shard in self._shards.values():
            shard.require_there()
        if not os.access(self._path, os.W_OK):
            raise StoreUnavailableError(
                f"the data folder {self._path} cannot be written any more; give this user "
                "write permission, or remount it read-write",
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
        """Point counts, sizes by blocks, whether writes are taken."""
        self._require_open()
        with EDGE_ERRORS:
            points = {name: s.raw.info().points_count for name, s in self._shards.items()}
        free = self._space.free()
        writable = free >= self._space.min_free_bytes
        return StoreInfo(
            backend="edge",
            location=str(self._path),
            points=points,
            disk_bytes=await asyncio.to_thread(used_bytes, self._path),
            free_bytes=free,
            writable=writable,
            detail="" if writable else "writes are refused until space is freed",
        )

    async def flush(self) -> None:
        """Flush the shards that were written to; other callers get their turn in between."""
        for collection in list(self._shards):
            shard = self._shard(collection)
            with EDGE_ERRORS:
                if shard.flush():
                    shard.list_files()
            await asyncio.sleep(0)
        self._require_open()

    async def close(self) -> None:
        """Flush and close every shard, give the folder up. The first failure is raised at last."""
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

    def _upsert(
        self, shard: Shard, records: Sequence[Record], mode: UpdateMode, added: int = 0
    ) -> None:
        shard.note_expiry(record.payload for record in records)
        shard.recent.forget(record.id for record in records)
        shard.note_vectors(records)
        points = [point(record) for record in records]
        shard.raw.update(UpdateOperation.upsert_points(points, update_mode=mode))
        shard.wrote(len(points), added)

    def _set_vectors(self, shard: Shard, records: Sequence[Record]) -> None:
        ids: list[Any] = [record.id for record in records]
        shard.note_vectors(records)
        now = self._clock.now()
        living = {
            str(found.id): found.payload.get(NAMESPACE_KEY)
            for found in shard.raw.retrieve(ids, [NAMESPACE_KEY, EXPIRES_KEY], False)
            if found.payload and not is_expired(found.payload, now)
        }
        # Edge fails for an id that is not there, after it has written the others.
        points = [
            point_vectors(record)
            for record in records
            if record.vectors and living.get(record.id) == record.namespace
        ]
        if points:
            shard.recent.forget(ids)
            shard.raw.update(UpdateOperation.update_vectors(points))
            shard.wrote(len(points), added=0)

    def _current(
        self, shard: Shard, namespace: str, id: str, when: Where, *, whole: bool
    ) -> Payload | None:
        """The payload (``whole``, or what was needed) of a living record that meets ``when``."""
        payload: Payload | None
        kept = None if whole else shard.recent.get(id)
        if kept is not None:
            payload = {**kept.payload, NAMESPACE_KEY: kept.namespace}
        else:
            keys = [NAMESPACE_KEY, EXPIRES_KEY, *map(json_path, keys_of(when))]
            found = shard.raw.retrieve([id], whole or keys, False)
            payload = found[0].payload if found else None
        if payload is None or payload.get(NAMESPACE_KEY) != namespace:
            return None
        if is_expired(payload, self._clock.now()) or not matches(when, id, payload):
            return None
        return payload

    async def _delete(self, collection: str, chosen: Any, limit: int) -> int:
        """``limit`` 0: all."""
        deleted = 0
        while True:
            shard = self._shard(collection)
            shard.require_there(within_seconds=_LOOK_SECONDS)
            self._space.require_delete()
            size = min(_DELETE_CHUNK, limit - deleted) if limit else _DELETE_CHUNK
            request = ScrollRequest(
                limit=size, filter=chosen, with_payload=False, with_vector=False
            )
            with EDGE_ERRORS:
                found, more = shard.raw.scroll(request)
                if found:
                    shard.recent.clear()
                    shard.raw.update(shard.deleting([one.id for one in found]))
                    shard.wrote(len(found), added=0)
            deleted += len(found)
            if more is None or deleted == limit:
                break
            await asyncio.sleep(0)
        await self._committed()
        return deleted

    async def _committed(self) -> None:
        if self._commit is not None:
            await self._commit.join()

    def _flush_all(self) -> None:
        with EDGE_ERRORS:
            for shard in self._shards.values():
                shard.flush()


def _chunks(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    """The records in order, cut to what one operation writes."""
    start = cost = 0
    for end, record in enumerate(records):
        more = _cost(record)
        if cost + more > _CHUNK and end > start:
            yield records[start:end]
            start, cost = end, 0
        cost += more
    if start < len(records):
        yield records[start:]


def _cost(record: Record) -> int:
    """What writing it costs, in records that are a payload only."""
    several = (v for v in record.vectors.values() if isinstance(v, MultiVector))
    return (4 if record.vectors else 1) + sum(2 * len(vector.vectors) for vector in several)
