"""The same port on a Qdrant server or cluster.

Several services may write to one server, so compare-and-set is made of three steps: read the record
with its stamp (``qdrant_stamp``), write on the condition that the stamp is still the same, read the
stamp back.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from qdrant_client import AsyncQdrantClient, models

from lot_grpc.domain.errors import ContentionError, StoreUnavailableError
from lot_grpc.ports import (
    EXPIRES_KEY,
    NAMESPACE_KEY,
    Clock,
    CollectionSpec,
    Order,
    Payload,
    Record,
    Scalar,
    Scores,
    SearchQuery,
    StoreInfo,
    Where,
)
from lot_grpc.storage.checks import check_delete, check_query, check_records, distinct, known
from lot_grpc.storage.conditions import is_expired, keys_of, matches
from lot_grpc.storage.json_path import json_path, payload_choice
from lot_grpc.storage.qdrant_errors import Talking, without_credentials
from lot_grpc.storage.qdrant_filter import equal, expired, having_ids, qdrant_filter
from lot_grpc.storage.qdrant_points import (
    has_terms,
    point,
    point_vectors,
    query_request,
    record,
)
from lot_grpc.storage.qdrant_schema import (
    drop_vectors,
    ensure_collection,
    extend,
    require_version,
)
from lot_grpc.storage.qdrant_stamp import STAMP_KEYS, WRITE_KEY, Stamp

_UPSERT_CHUNK = 256
_MOST_NAMESPACES = 1_000_000
_INSERT_ROUNDS = 3
_CAS_ROUNDS = 16
_BACKOFF_SECONDS = 0.005
_CHECK_SECONDS = 2.0

_GRPC_OPTIONS = {"grpc.max_reconnect_backoff_ms": 1000}
"""Reconnect within a second of the server's return; by default it may take two minutes."""

_Write = Callable[[Stamp, models.Filter], Awaitable[object]]


class QdrantStore:
    """Records on the Qdrant server at ``url``; collections are named with ``prefix``.

    ``replicas`` above 1 makes new collections replicated, and reads and writes go by majority.
    ``location`` (``":memory:"``) is the client's own imitation of a server, for tests.
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
        self._specs: dict[str, CollectionSpec] = {}
        self._closed = False
        self._talking = Talking(self._place)
        majority = replicas > 1
        self._ordering = models.WriteOrdering.STRONG if majority else None
        self._consistency = models.ReadConsistencyType.MAJORITY if majority else None
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
                check_compatibility=False,  # require_version does, and says what to do
            )
        )

    @property
    def exclusive(self) -> bool:
        """Other processes may write to the server."""
        return False

    async def collections(self) -> set[str]:
        """The names of the existing collections, without the prefix. Refuses too old a server."""
        with self._ready():
            await require_version(self._client)
            there = (await self._client.get_collections()).collections
        return {one.name.removeprefix(self._prefix) for one in there}

    async def ensure_collections(self, specs: Sequence[CollectionSpec]) -> None:
        """Create and complete the collections. Refuses a server that is too old."""
        with self._ready():
            await require_version(self._client)
            for spec in specs:
                await ensure_collection(
                    self._client, self._name(spec), spec, self._replicas, indexes=not self._local
                )
                self._specs[spec.name] = spec

    async def extend(self, spec: CollectionSpec) -> None:
        """Add its new vectors to the collection."""
        old = known(self._specs, spec.name)
        with self._ready():
            await extend(self._client, self._name(spec), spec)
        self._specs[spec.name] = old.extended(spec)

    async def drop_vectors(self, collection: str, names: Sequence[str]) -> None:
        """Drop them in the collection."""
        spec = known(self._specs, collection)
        with self._ready():
            await drop_vectors(self._client, self._name(spec), names)
        self._specs[collection] = spec.without(names)

    # --- writing ---

    async def insert(self, collection: str, records: Sequence[Record]) -> set[str]:
        """Insert only; whose stamp is found afterwards was inserted by this call."""
        spec = known(self._specs, collection)
        check_records(spec, records)
        pending = distinct(records)
        inserted: set[str] = set()
        stamp = Stamp.first()
        for _ in range(_INSERT_ROUNDS):
            if not pending:
                break
            with self._ready():
                await self._upsert(
                    spec, list(pending.values()), stamp, update_mode=models.UpdateMode.INSERT_ONLY
                )
                stored = await self._retrieve(spec, list(pending), [EXPIRES_KEY, *STAMP_KEYS])
                inserted |= {i for i, held in stored.items() if Stamp.of(held).includes(stamp)}
                now = self._clock.now()
                expired_ids = [i for i, held in stored.items() if is_expired(held, now)]
                pending = {i: pending[i] for i in expired_ids if i not in inserted}
                if pending:
                    await self._delete(spec, [having_ids(list(pending)), expired(now)])
        return inserted

    async def put(self, collection: str, records: Sequence[Record]) -> None:
        """Insert or replace whole records."""
        spec = known(self._specs, collection)
        check_records(spec, records)
        with self._ready():
            await self._upsert(spec, records, Stamp.first())

    async def replace(self, collection: str, record: Record, when: Where) -> bool:
        """Replace an existing record on condition of its stamp."""
        spec = known(self._specs, collection)
        check_records(spec, [record])

        async def write(stamp: Stamp, unchanged: models.Filter) -> None:
            await self._upsert(
                spec,
                [record],
                stamp,
                update_mode=models.UpdateMode.UPDATE_ONLY,
                update_filter=unchanged,
            )

        return await self._compare_and_set(spec, record.namespace, record.id, when, write)

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
        """Set keys on condition of the stamp, then remove keys unless somebody wrote since."""
        spec = known(self._specs, collection)

        async def write(stamp: Stamp, unchanged: models.Filter) -> None:
            await self._client.set_payload(
                self._name(spec),
                payload={**set, **stamp.payload()},
                points=unchanged,
                wait=True,
                ordering=self._ordering,
            )
            if unset:
                await self._client.delete_payload(
                    self._name(spec),
                    keys=[json_path(key) for key in unset],
                    points=_unchanged(id, stamp),
                    wait=True,
                    ordering=self._ordering,
                )

        return await self._compare_and_set(spec, namespace, id, when, write)

    async def set_vectors(self, collection: str, records: Sequence[Record]) -> None:
        """Set named vectors of what is there."""
        spec = known(self._specs, collection)
        check_records(spec, records)
        for start in range(0, len(records), _UPSERT_CHUNK):
            with self._ready():
                await self._set_vectors(spec, records[start : start + _UPSERT_CHUNK])

    async def delete(
        self, collection: str, namespace: str | None, where: Where, limit: int = 0
    ) -> int:
        """Count, then delete by filter; with a limit find, then delete by id."""
        check_delete(namespace, where)
        spec = known(self._specs, collection)
        chosen = qdrant_filter(namespace, where, None)
        with self._ready():
            if limit:
                return await self._delete_some(spec, chosen, limit)
            count = await self._count(spec, chosen)
            if count:
                await self._delete(spec, [chosen])
        return count

    async def namespaces(self, collection: str) -> set[str]:
        """Those of all records."""
        spec = known(self._specs, collection)
        with self._ready():
            response = await self._client.facet(
                self._name(spec),
                NAMESPACE_KEY,
                limit=_MOST_NAMESPACES,
                exact=True,
                consistency=self._consistency,
            )
        return {str(hit.value) for hit in response.hits}

    async def expired(self, collection: str, *, limit: int) -> list[Record]:
        """Records whose expiry has passed."""
        spec = known(self._specs, collection)
        with self._ready():
            found, _ = await self._client.scroll(
                self._name(spec),
                scroll_filter=models.Filter(must=[expired(self._clock.now())]),
                limit=limit,
                with_payload=True,
                consistency=self._consistency,
            )
        return [record(one, None) for one in found]

    async def delete_expired(self, collection: str, *, limit: int) -> int:
        """Delete records whose expiry has passed."""
        spec = known(self._specs, collection)
        chosen = models.Filter(must=[expired(self._clock.now())])
        with self._ready():
            return await self._delete_some(spec, chosen, limit)

    # --- reading ---

    async def get(
        self, collection: str, namespace: str, ids: Sequence[str], *, vectors: bool = False
    ) -> dict[str, Record]:
        """Fetch by id."""
        spec = known(self._specs, collection)
        if not ids:
            return {}
        with self._ready():
            found = await self._client.retrieve(
                self._name(spec), list(ids), True, vectors, consistency=self._consistency
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
        payload: bool | tuple[str, ...] = True,
        vectors: bool = False,
    ) -> list[Record]:
        """Matching records by the order's key, else by id."""
        spec = known(self._specs, collection)
        order_by = None
        if order is not None:
            descending = order.descending
            direction = models.Direction.DESC if descending else models.Direction.ASC
            order_by = models.OrderBy(key=json_path(order.key), direction=direction)
        with self._ready():
            found, _ = await self._client.scroll(
                self._name(spec),
                scroll_filter=qdrant_filter(namespace, where, self._clock.now()),
                limit=limit,
                order_by=order_by,
                with_payload=payload_choice(payload, namespace),
                with_vectors=vectors,
                consistency=self._consistency,
            )
        return [record(one, namespace) for one in found]

    async def search(
        self, collection: str, namespace: str, queries: Sequence[SearchQuery]
    ) -> list[Scores]:
        """Run the legs as one batch. A sparse leg without terms finds nothing."""
        spec = known(self._specs, collection)
        now = self._clock.now()
        for query in queries:
            check_query(spec, query)
        requested = [query for query in queries if has_terms(query.vector)]
        if not requested:
            return [{} for _ in queries]
        with self._ready():
            responses = await self._client.query_batch_points(
                self._name(spec),
                requests=[
                    query_request(namespace, query, now, several=query.using in spec.multi)
                    for query in requested
                ],
                consistency=self._consistency,
            )
        legs = iter(
            {str(found.id): found.score for found in response.points} for response in responses
        )
        return [next(legs) if has_terms(query.vector) else {} for query in queries]

    async def count(self, collection: str, namespace: str | None, where: Where = ()) -> int:
        """Exact number of matching records."""
        spec = known(self._specs, collection)
        with self._ready():
            return await self._count(spec, qdrant_filter(namespace, where, self._clock.now()))

    async def facet(
        self, collection: str, namespace: str | None, key: str, where: Where = (), limit: int = 100
    ) -> dict[Scalar, int]:
        """Exact counts by value."""
        spec = known(self._specs, collection)
        with self._ready():
            response = await self._client.facet(
                self._name(spec),
                json_path(key),
                facet_filter=qdrant_filter(namespace, where, self._clock.now()),
                limit=limit,
                exact=True,
                consistency=self._consistency,
            )
        return {hit.value: hit.count for hit in response.hits}

    # --- operation ---

    async def check(self) -> None:
        """Raise if the server does not answer soon."""
        with self._ready():
            async with asyncio.timeout(_CHECK_SECONDS):
                await self._client.get_collections()

    async def compact(self) -> bool:
        """The server does it itself."""
        return False

    async def info(self) -> StoreInfo:
        """Point counts; the server's disk is not ours to see."""
        with self._ready():
            version = (await self._client.info()).version
            points = {
                name: await self._count(spec, models.Filter(must=[]))
                for name, spec in self._specs.items()
            }
        return StoreInfo("qdrant", self._place, points, detail=f"Qdrant {version}")

    async def flush(self) -> None:
        """The server does it itself."""

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

    def _name(self, spec: CollectionSpec) -> str:
        return f"{self._prefix}{spec.name}"

    async def _upsert(
        self, spec: CollectionSpec, records: Sequence[Record], stamp: Stamp, **mode: Any
    ) -> None:
        for start in range(0, len(records), _UPSERT_CHUNK):
            points = [point(one, stamp) for one in records[start : start + _UPSERT_CHUNK]]
            await self._client.upsert(
                self._name(spec), points, wait=True, ordering=self._ordering, **mode
            )

    async def _set_vectors(self, spec: CollectionSpec, records: Sequence[Record]) -> None:
        """The server fails for an id that is not there, after it has written the others.

        So only those that are there are named; when some go away meanwhile, it is done again.
        """
        pending = await self._living(spec, [record for record in records if record.vectors])
        while pending:
            try:
                await self._client.update_vectors(
                    self._name(spec),
                    [point_vectors(one) for one in pending],
                    wait=True,
                    ordering=self._ordering,
                )
            except Exception:
                left = await self._living(spec, pending)
                if len(left) == len(pending):
                    raise
                pending = left
            else:
                return

    async def _living(self, spec: CollectionSpec, records: Sequence[Record]) -> list[Record]:
        """Those that are there, in their namespace, and have not expired."""
        if not records:
            return []
        ids = [record.id for record in records]
        stored = await self._retrieve(spec, ids, [NAMESPACE_KEY, EXPIRES_KEY])
        now = self._clock.now()
        return [
            record
            for record in records
            if (held := stored.get(record.id)) is not None
            and held.get(NAMESPACE_KEY) == record.namespace
            and not is_expired(held, now)
        ]

    async def _retrieve(
        self, spec: CollectionSpec, ids: Sequence[str], keys: Sequence[str]
    ) -> dict[str, Payload]:
        found = await self._client.retrieve(
            self._name(spec), list(ids), list(keys), False, consistency=self._consistency
        )
        return {str(one.id): one.payload or {} for one in found}

    async def _count(self, spec: CollectionSpec, chosen: models.Filter) -> int:
        # The client offers no read consistency here; with wait=True a lagging replica is rare.
        return (await self._client.count(self._name(spec), chosen, exact=True)).count

    async def _delete_some(self, spec: CollectionSpec, chosen: models.Filter, limit: int) -> int:
        """Delete those that are found first, if they still match; return how many were found."""
        found, _ = await self._client.scroll(
            self._name(spec),
            scroll_filter=chosen,
            limit=limit,
            with_payload=False,
            consistency=self._consistency,
        )
        if found:
            await self._delete(spec, [chosen, having_ids([str(one.id) for one in found])])
        return len(found)

    async def _delete(self, spec: CollectionSpec, must: Sequence[Any]) -> None:
        await self._client.delete(
            self._name(spec),
            models.FilterSelector(filter=models.Filter(must=list(must))),
            wait=True,
            ordering=self._ordering,
        )

    async def _compare_and_set(
        self, spec: CollectionSpec, namespace: str, id: str, when: Where, write: _Write
    ) -> bool:
        """Write while ``when`` holds and nobody came in between.

        Raises:
            ContentionError: others kept coming in between; nothing was written.
            StoreUnavailableError: so many did that the outcome cannot be told.
        """
        keys = [NAMESPACE_KEY, EXPIRES_KEY, *STAMP_KEYS, *map(json_path, keys_of(when))]
        for attempt in range(_CAS_ROUNDS):
            with self._ready():
                held = (await self._retrieve(spec, [id], keys)).get(id)
                if held is None or held.get(NAMESPACE_KEY) != namespace:
                    return False
                if is_expired(held, self._clock.now()) or not matches(when, id, held):
                    return False
                seen = Stamp.of(held)
                mine = seen.next()
                await write(mine, _unchanged(id, seen))
                after = (await self._retrieve(spec, [id], STAMP_KEYS)).get(id)
            if after is None:
                return False
            now_there = Stamp.of(after)
            if now_there.includes(mine):
                return True
            if now_there.forgetful and not now_there.includes(seen):
                raise StoreUnavailableError(
                    f"record {id!r} is written so often that the outcome of this write is unknown; "
                    "read it before trying again",
                    id=id,
                )
            await asyncio.sleep(random.uniform(0, _BACKOFF_SECONDS * (attempt + 1)))  # noqa: S311
        raise ContentionError("record", id)


def _unchanged(id: str, stamp: Stamp) -> models.Filter:
    return models.Filter(must=[having_ids([id]), equal(WRITE_KEY, stamp.write)])
