"""The reference store: plain Python, exact, every condition implemented to the letter.

The other stores are compared with it, and tests of the services run on it. It copies everything
that goes in or out, so that a caller that modifies a payload it has kept is caught here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lot_grpc.domain.errors import StoreUnavailableError
from lot_grpc.ports import (
    NAMESPACE_KEY,
    Clock,
    CollectionSpec,
    IdIn,
    MultiVector,
    Order,
    Payload,
    Record,
    Rescore,
    Scalar,
    Scores,
    SearchQuery,
    SearchResult,
    SparseVector,
    StoreInfo,
    Update,
    Vector,
    Where,
)
from lot_grpc.storage.checks import (
    check_delete,
    check_facet,
    check_records,
    check_scroll,
    check_search,
    distinct,
    known,
)
from lot_grpc.storage.conditions import is_expired, matches
from lot_grpc.storage.fallbacks import chosen, with_fallbacks
from lot_grpc.testing.scores import inverse_frequencies, score_of, unit_vector

_INT64 = range(-(2**63), 2**63)


@dataclass(slots=True)
class _Collection:
    spec: CollectionSpec
    records: dict[str, Record] = field(default_factory=dict)


class InMemoryStore:
    """Keeps records in dictionaries; they are lost when the process ends."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._collections: dict[str, _Collection] = {}
        self._closed = False

    @property
    def exclusive(self) -> bool:
        """True: no other process can use it."""
        return True

    async def ensure_collections(self, specs: Sequence[CollectionSpec]) -> None:
        """Create missing collections; existing ones get the spec's additions."""
        self._require_open()
        for spec in specs:
            old = self._collections.get(spec.name)
            if old is None:
                self._collections[spec.name] = _Collection(spec)
            else:
                old.spec = _merged(old.spec, spec)

    async def extend(self, spec: CollectionSpec) -> None:
        """Apply the spec's additions."""
        held = self._open(spec.name)
        held.spec = _merged(held.spec, spec)

    async def drop_vectors(self, collection: str, names: Sequence[str]) -> None:
        """Drop vectors from the spec and from each record."""
        held = self._open(collection)
        held.spec = held.spec.without(names)
        for record in held.records.values():
            vectors = {name: one for name, one in record.vectors.items() if name not in names}
            held.records[record.id] = replace(record, vectors=vectors)

    async def insert(self, collection: str, records: Sequence[Record]) -> set[str]:
        """Insert records whose id is free; return their ids."""
        held = self._open(collection)
        check_records(held.spec, records)
        now = self._clock.now()
        fresh = {
            record.id: _stored(record)
            for record in distinct(records).values()
            if (old := held.records.get(record.id)) is None or is_expired(old.payload, now)
        }
        held.records |= fresh
        return set(fresh)

    async def put(self, collection: str, records: Sequence[Record]) -> None:
        """Insert or replace whole records."""
        held = self._open(collection)
        check_records(held.spec, records)
        held.records |= {record.id: _stored(record) for record in records}

    async def replace(self, collection: str, record: Record, when: Where) -> bool:
        """Replace an existing record if ``when`` holds for it."""
        held = self._open(collection)
        check_records(held.spec, [record])
        if self._current(held, record.namespace, record.id, when) is None:
            return False
        held.records[record.id] = _stored(record)
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
        """Set and remove top-level keys of an existing record if ``when`` holds for it."""
        held = self._open(collection)
        current = self._current(held, namespace, id, when)
        if current is None:
            return False
        payload = current.payload | _copied(set)
        for key in unset:
            payload.pop(key, None)
        held.records[id] = Record(id, namespace, payload, current.vectors)
        return True

    async def update_many(self, collection: str, updates: Sequence[Update]) -> set[str]:
        """Update several records, one after the other."""
        return {
            one.id
            for one in updates
            if await self.update(collection, one.namespace, one.id, set=one.set, when=one.when)
        }

    async def set_vectors(self, collection: str, records: Sequence[Record]) -> None:
        """Set named vectors of existing records."""
        held = self._open(collection)
        check_records(held.spec, records)
        for record in records:
            current = self._current(held, record.namespace, record.id, ())
            if current is not None:
                vectors = {**current.vectors, **_stored(record).vectors}
                held.records[record.id] = replace(current, vectors=vectors)

    async def delete(
        self, collection: str, namespace: str | None, where: Where, limit: int = 0
    ) -> int:
        """Delete matching records, expired ones included."""
        check_delete(namespace, where)
        held = self._open(collection)
        gone = [r.id for r in held.records.values() if _in(r, namespace) and _matches(r, where)]
        gone = gone[: limit or None]
        for gone_id in gone:
            del held.records[gone_id]
        return len(gone)

    async def get(
        self, collection: str, namespace: str, ids: Sequence[str], *, vectors: bool = False
    ) -> dict[str, Record]:
        """Fetch by id."""
        held = self._open(collection)
        found = (self._current(held, namespace, point, ()) for point in ids)
        return {r.id: _shown(r, payload=True, vectors=vectors) for r in found if r is not None}

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
        check_scroll(order, after)
        found = sorted(self._live(collection, namespace, where), key=lambda r: r.id)
        found = [r for r in found if r.id > after]
        if order is not None:
            key = order.key
            found = [r for r in found if isinstance(r.payload.get(key), int)]
            found.sort(key=lambda r: r.payload[key], reverse=order.descending)
        return [_shown(r, payload=payload, vectors=vectors) for r in found[:limit]]

    async def search(
        self,
        collection: str,
        namespace: str,
        queries: Sequence[SearchQuery],
        rescore: Rescore | None = None,
    ) -> SearchResult:
        """Score every record, keep the best."""
        held = self._open(collection)
        check_search(held.spec, queries, rescore)
        every = with_fallbacks(queries)
        hits = [self._leg(collection, namespace, query) for query in every]
        best = [
            point
            for query, found in zip(every, hits, strict=True)
            for point in list(found)[: query.records]
        ]
        cosines: Scores = {}
        if rescore is not None:
            ids = IdIn((*rescore.ids, *(point for found in hits for point in found)))
            for name in rescore.using:
                query = SearchQuery(name, rescore.vector, len(held.records), (ids,))
                for point, cosine in self._leg(collection, namespace, query).items():
                    cosines[point] = max(cosine, cosines.get(point, -1.0))
        records = await self.get(collection, namespace, best)
        return chosen(queries, SearchResult(hits, records, cosines))

    async def count(self, collection: str, namespace: str | None, where: Where = ()) -> int:
        """Number of matching records."""
        return sum(1 for _ in self._live(collection, namespace, where))

    async def facet(
        self, collection: str, namespace: str | None, key: str, where: Where = (), limit: int = 100
    ) -> dict[Scalar, int]:
        """Counts by value; equal counts come in the order of their values."""
        check_facet(self._open(collection).spec, key)
        counts: Counter[Scalar] = Counter()
        for record in self._live(collection, namespace, where):
            value = record.namespace if key == NAMESPACE_KEY else record.payload.get(key)
            counts.update(
                {v for v in (value if isinstance(value, list) else [value]) if v is not None}
            )
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return dict(ranked[:limit])

    async def namespaces(self, collection: str) -> set[str]:
        """The namespaces of all records."""
        return {record.namespace for record in self._open(collection).records.values()}

    async def expired(self, collection: str, *, limit: int, where: Where = ()) -> list[Record]:
        """Records whose expiry has passed."""
        now = self._clock.now()
        held = self._open(collection).records.values()
        found = [r for r in held if is_expired(r.payload, now) and _matches(r, where)]
        found.sort(key=lambda r: r.id)
        return [_shown(r, payload=True, vectors=False) for r in found[:limit]]

    async def delete_expired(self, collection: str, *, limit: int) -> int:
        """Delete records whose expiry has passed."""
        held = self._open(collection)
        now = self._clock.now()
        gone = [r.id for r in held.records.values() if is_expired(r.payload, now)][:limit]
        for gone_id in gone:
            del held.records[gone_id]
        return len(gone)

    async def check(self) -> None:
        """Raise only if the store is closed."""
        self._require_open()

    async def compact(self) -> bool:
        """Nothing to compact."""
        return False

    async def info(self) -> StoreInfo:
        """Point counts; there is no disk."""
        points = {name: len(held.records) for name, held in self._collections.items()}
        return StoreInfo("memory", "memory", points, detail="lost when the process ends")

    async def flush(self) -> None:
        """Nothing to flush."""

    async def close(self) -> None:
        """Refuse further calls."""
        self._closed = True

    def _require_open(self) -> None:
        if self._closed:
            raise StoreUnavailableError("the store is closed; the service is shutting down")

    def _open(self, collection: str) -> _Collection:
        self._require_open()
        return known(self._collections, collection)

    def _current(self, held: _Collection, namespace: str, id: str, when: Where) -> Record | None:
        record = held.records.get(id)
        if record is None or record.namespace != namespace:
            return None
        if is_expired(record.payload, self._clock.now()) or not _matches(record, when):
            return None
        return record

    def _live(self, collection: str, namespace: str | None, where: Where) -> Iterator[Record]:
        now = self._clock.now()
        for record in self._open(collection).records.values():
            alive = _in(record, namespace) and not is_expired(record.payload, now)
            if alive and _matches(record, where):
                yield record

    def _leg(self, collection: str, namespace: str, query: SearchQuery) -> Scores:
        held = self._open(collection)
        idf = inverse_frequencies(query, held.records.values())
        hits = []
        for record in self._live(collection, namespace, query.where):
            vector = record.vectors.get(query.using)
            if vector is None:
                continue
            score = score_of(query.vector, vector, idf)
            if score is not None and (query.min_score is None or score >= query.min_score):
                hits.append((-score, record.id))
        hits.sort()
        return {point: -negated for negated, point in hits[: query.limit]}


def _in(record: Record, namespace: str | None) -> bool:
    return namespace is None or record.namespace == namespace


def _matches(record: Record, where: Where) -> bool:
    return matches(where, record.id, record.payload, record.vectors)


def _merged(old: CollectionSpec, new: CollectionSpec) -> CollectionSpec:
    return CollectionSpec(
        old.name,
        {**new.dense, **old.dense},
        tuple(dict.fromkeys((*old.sparse, *new.sparse))),
        {**old.indexes, **new.indexes},
        {**new.multi, **old.multi},
    )


def _stored(record: Record) -> Record:
    payload = _copied(record.payload)
    payload.pop(NAMESPACE_KEY, None)
    vectors = {name: _stored_vector(vector) for name, vector in record.vectors.items()}
    return Record(record.id, record.namespace, payload, vectors)


def _stored_vector(vector: Vector) -> Vector:
    """The vector as Qdrant stores it: dense ones at unit length."""
    if isinstance(vector, SparseVector):
        return SparseVector(tuple(vector.indices), tuple(vector.values))
    if isinstance(vector, MultiVector):
        return MultiVector([unit_vector(one) for one in vector.vectors])
    return unit_vector(vector)


def _shown(record: Record, *, payload: bool | tuple[str, ...], vectors: bool) -> Record:
    if payload is True:
        shown = _copied(record.payload)
    else:
        keys = payload or ()
        shown = _copied({key: record.payload[key] for key in keys if key in record.payload})
    return Record(record.id, record.namespace, shown, dict(record.vectors) if vectors else {})


def _copied(payload: Mapping[str, Any]) -> Payload:
    return {key: _json(value) for key, value in payload.items()}


def _json(value: Any) -> Any:
    """A copy of a JSON value; whatever Qdrant would refuse or change is an error here."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        if value not in _INT64:
            raise ValueError(f"{value} does not fit a 64-bit integer")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a JSON number")
        return value
    if isinstance(value, list | tuple):
        return [_json(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _json(item) for key, item in value.items()}
    raise TypeError(f"{type(value).__name__} is not a JSON value")
