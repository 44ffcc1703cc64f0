"""The store on a Qdrant server or cluster, which several services may write to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from qdrant_client import AsyncQdrantClient, models

from lot_grpc.domain.errors import StoreUnavailableError
from lot_grpc.ports import (
    EXPIRES_KEY,
    NAMESPACE_KEY,
    Clock,
    CollectionSpec,
    Order,
    Range,
    Record,
    Rescore,
    Scalar,
    SearchQuery,
    SearchResult,
    StoreInfo,
    Update,
    Where,
)
from lot_grpc.storage.checks import (
    check_delete,
    check_facet,
    check_records,
    check_scroll,
    check_search,
    known,
    those_after,
)
from lot_grpc.storage.conditions import is_expired
from lot_grpc.storage.fallbacks import chosen, with_fallbacks
from lot_grpc.storage.json_path import json_path, payload_choice
from lot_grpc.storage.qdrant_collection import QdrantCollection
from lot_grpc.storage.qdrant_errors import Talking, without_credentials
from lot_grpc.storage.qdrant_filter import expired, qdrant_filter
from lot_grpc.storage.qdrant_points import record
from lot_grpc.storage.qdrant_schema import (
    drop_vectors,
    ensure_collection,
    extend,
    require_version,
)
from lot_grpc.storage.qdrant_search import SearchBatch

_MOST_NAMESPACES = 1_000_000
_CHECK_SECONDS = 2.0

_GRPC_OPTIONS = {"grpc.max_reconnect_backoff_ms": 1000}
"""Reconnect within a second of the server's return; by default it may take two minutes."""


class QdrantStore:
    """Records on the Qdrant server at ``url``; collection names start with ``prefix``.

    ``replicas`` above 1 makes new collections replicated, with majority reads and writes.
    ``location`` (``":memory:"``) selects the client's local mode, for tests.
    """

    def __init__(
        self,
        clock: Clock,
        url: str = "",
        api_key: str | None = None,
        prefix: str = "",
        *,
        prefer_grpc: bool = True,
        grpc_port: int = 6334,
        timeout_seconds: int = 10,
        replicas: int = 1,
        location: str | None = None,
    ) -> None:
        self._clock = clock
        self._prefix = prefix
        self._local = location is not None
        self._place = location or without_credentials(url)
        self._replicas = replicas
        self._collections: dict[str, QdrantCollection] = {}
        self._closed = False
        self._talking = Talking(self._place)
        self._client = (
            AsyncQdrantClient(location=location)
            if self._local
            else AsyncQdrantClient(
                url=url,
                api_key=api_key,
                prefer_grpc=prefer_grpc,
                grpc_port=grpc_port,
                grpc_options=dict(_GRPC_OPTIONS),
                timeout=timeout_seconds,
                check_compatibility=False,  # require_version checks it, with advice
            )
        )

    @property
    def exclusive(self) -> bool:
        """False: other processes may write to the server."""
        return False

    async def collections(self) -> set[str]:
        """Names of the existing collections, without the prefix. Refuses a server too old."""
        with self._ready():
            await require_version(self._client)
            there = (await self._client.get_collections()).collections
        return {one.name.removeprefix(self._prefix) for one in there}

    async def ensure_collections(self, specs: Sequence[CollectionSpec]) -> None:
        """Create and complete the collections. Refuses a server that is too old."""
        with self._ready():
            await require_version(self._client)
            for spec in specs:
                held = QdrantCollection(
                    self._client,
                    f"{self._prefix}{spec.name}",
                    spec,
                    self._clock,
                    self._ready,
                    majority=self._replicas > 1,
                )
                await ensure_collection(
                    self._client, held.name, spec, self._replicas, indexes=not self._local
                )
                self._collections[spec.name] = held

    async def extend(self, spec: CollectionSpec) -> None:
        """Add the missing vectors to the collection."""
        held = known(self._collections, spec.name)
        with self._ready():
            await extend(self._client, held.name, spec)
        held.spec = held.spec.extended(spec)

    async def drop_vectors(self, collection: str, names: Sequence[str]) -> None:
        """Drop vectors from the collection and its records."""
        held = known(self._collections, collection)
        with self._ready():
            await drop_vectors(self._client, held.name, names)
        held.spec = held.spec.without(names)

    # --- writing ---

    async def insert(self, collection: str, records: Sequence[Record]) -> set[str]:
        """Insert records whose id is free."""
        return await self._to_write(collection, records).insert(records)

    async def put(self, collection: str, records: Sequence[Record]) -> None:
        """Insert or replace whole records."""
        await self._to_write(collection, records).put(records)

    async def replace(self, collection: str, record: Record, when: Where) -> bool:
        """Replace an existing record."""
        return await self._to_write(collection, [record]).replace(record, when)

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
        """Set keys, then remove keys."""
        held = known(self._collections, collection)
        return await held.update(namespace, id, set, unset, when)

    async def update_many(self, collection: str, updates: Sequence[Update]) -> set[str]:
        """Update records concurrently; raises the first failure after all updates have ended."""
        held = known(self._collections, collection)
        results = await asyncio.gather(
            *(held.update(one.namespace, one.id, one.set, (), one.when) for one in updates),
            return_exceptions=True,
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return {one.id for one, updated in zip(updates, results, strict=True) if updated}

    async def set_vectors(self, collection: str, records: Sequence[Record]) -> None:
        """Set named vectors of existing records."""
        await self._to_write(collection, records).set_vectors(records)

    async def delete(
        self, collection: str, namespace: str | None, where: Where, limit: int = 0
    ) -> int:
        """Delete matching records."""
        check_delete(namespace, where)
        held = known(self._collections, collection)
        return await held.delete(qdrant_filter(namespace, where, None), limit)

    async def delete_expired(self, collection: str, *, limit: int) -> int:
        """Delete records whose expiry has passed."""
        chosen = models.Filter(must=[expired(self._clock.now())])
        return await known(self._collections, collection).delete(chosen, limit)

    # --- reading ---

    async def namespaces(self, collection: str) -> set[str]:
        """The namespaces of all records."""
        held = known(self._collections, collection)
        with self._ready():
            response = await self._client.facet(
                held.name,
                NAMESPACE_KEY,
                limit=_MOST_NAMESPACES,
                exact=True,
                consistency=held.consistency,
            )
        return {str(hit.value) for hit in response.hits}

    async def expired(self, collection: str, *, limit: int, where: Where = ()) -> list[Record]:
        """Records whose expiry has passed."""
        held = known(self._collections, collection)
        has_expired = Range(EXPIRES_KEY, lte=self._clock.now())
        with self._ready():
            found, _ = await self._client.scroll(
                held.name,
                scroll_filter=qdrant_filter(None, (*where, has_expired), None),
                limit=limit,
                with_payload=True,
                consistency=held.consistency,
            )
        return [record(one, None) for one in found]

    async def get(
        self, collection: str, namespace: str, ids: Sequence[str], *, vectors: bool = False
    ) -> dict[str, Record]:
        """Fetch by id."""
        held = known(self._collections, collection)
        if not ids:
            return {}
        with self._ready():
            found = await self._client.retrieve(
                held.name, list(ids), True, vectors, consistency=held.consistency
            )
        now = self._clock.now()
        records = [record(one, None) for one in found]
        return {
            one.id: one
            for one in records
            if one.namespace == namespace and not is_expired(one.payload, now)
        }

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
        held = known(self._collections, collection)
        check_scroll(order, after)
        order_by = None
        if order is not None:
            descending = order.descending
            direction = models.Direction.DESC if descending else models.Direction.ASC
            order_by = models.OrderBy(key=json_path(order.key), direction=direction)
        with self._ready():
            found, _ = await self._client.scroll(
                held.name,
                scroll_filter=qdrant_filter(namespace, where, self._clock.now()),
                limit=limit + bool(after),
                offset=after or None,
                order_by=order_by,
                with_payload=payload_choice(payload, namespace),
                with_vectors=vectors,
                consistency=held.consistency,
            )
        return those_after([record(one, namespace) for one in found], after, limit)

    async def search(
        self,
        collection: str,
        namespace: str,
        queries: Sequence[SearchQuery],
        rescore: Rescore | None = None,
    ) -> SearchResult:
        """Run all of it as one batch; rescore in a second one what the first had no room for."""
        held = known(self._collections, collection)
        check_search(held.spec, queries, rescore)
        every = with_fallbacks(queries)
        batch = SearchBatch(namespace, every, rescore, self._clock.now(), held.spec.multi)
        if not batch.requests:
            return SearchResult([{} for _ in queries])
        with self._ready():
            responses = await self._client.query_batch_points(
                held.name, requests=batch.requests, consistency=held.consistency
            )
        found = chosen(queries, batch.result([response.points for response in responses]))
        if rescore is None or not batch.unscored:
            return found
        left = replace(rescore, ids=tuple(batch.unscored))
        others = await self.search(collection, namespace, (), left)
        cosines = {
            point: max(scores.get(point, -1.0) for scores in (found.cosines, others.cosines))
            for point in found.cosines.keys() | others.cosines.keys()
        }
        return replace(found, cosines=cosines)

    async def count(self, collection: str, namespace: str | None, where: Where = ()) -> int:
        """Exact number of matching records."""
        held = known(self._collections, collection)
        with self._ready():
            return await held.count(qdrant_filter(namespace, where, self._clock.now()))

    async def facet(
        self, collection: str, namespace: str | None, key: str, where: Where = (), limit: int = 100
    ) -> dict[Scalar, int]:
        """Exact counts by value."""
        held = known(self._collections, collection)
        check_facet(held.spec, key)
        with self._ready():
            response = await self._client.facet(
                held.name,
                json_path(key),
                facet_filter=qdrant_filter(namespace, where, self._clock.now()),
                limit=limit,
                exact=True,
                consistency=held.consistency,
            )
        return {hit.value: hit.count for hit in response.hits}

    # --- operation ---

    async def check(self) -> None:
        """Raise if the server does not respond soon."""
        with self._ready():
            async with asyncio.timeout(_CHECK_SECONDS):
                await self._client.get_collections()

    async def compact(self) -> bool:
        """Do nothing: the server takes care of it."""
        return False

    async def info(self) -> StoreInfo:
        """Point counts; the server's disk usage is unknown."""
        with self._ready():
            version = (await self._client.info()).version
            points = {
                name: await held.count(models.Filter(must=[]))
                for name, held in self._collections.items()
            }
        return StoreInfo("qdrant", self._place, points, detail=f"Qdrant {version}")

    async def flush(self) -> None:
        """Do nothing: the server takes care of it."""

    async def close(self) -> None:
        """Close the connections."""
        if not self._closed:
            self._closed = True
            await self._client.close()

    # --- inside ---

    def _ready(self) -> Talking:
        if self._closed:
            raise StoreUnavailableError("the store is closed; the service is shutting down")
        return self._talking

    def _to_write(self, collection: str, records: Sequence[Record]) -> QdrantCollection:
        held = known(self._collections, collection)
        check_records(held.spec, records)
        return held
