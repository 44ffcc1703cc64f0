"""A store that compares texts in one Unicode form, and returns them as they were sent.

A record's keywords, which conditions and facets use, are stored in NFC; a text sent in another form
is stored next to them. Conditions are converted to NFC too. So a filter by ``é`` finds it, however
each of the two was encoded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import Any, Final

from lot_grpc.domain.text_form import normal_form
from lot_grpc.ports import (
    AllOf,
    AnyOf,
    Condition,
    Equals,
    Fallback,
    Index,
    Not,
    OneOf,
    Order,
    Payload,
    Record,
    Rescore,
    Scalar,
    SearchQuery,
    SearchResult,
    Update,
    VectorStore,
    Where,
)
from lot_grpc.services.forwarding_store import ForwardingStore
from lot_grpc.services.registry import Registry

_NO_KEYS: Final[frozenset[str]] = frozenset()


class NormalFormStore(ForwardingStore):
    """``VectorStore`` over another."""

    def __init__(self, inner: VectorStore, registry: Registry) -> None:
        super().__init__(inner)
        self._sent: Mapping[str, Mapping[str, str]] = {
            one.name: {
                key: f"{key}_as_sent"
                for key, index in one.indexes.items()
                if index is Index.KEYWORD
            }
            for one in registry.collections.values()
        }
        """By collection and keyword, the key of the text as it was sent. It counts where its normal
        form is the keyword: an update of the keyword may have left an older one."""
        self._sent_keys = {name: frozenset(sent.values()) for name, sent in self._sent.items()}

    # --- writing ------------------------------------------------------------------------------

    async def insert(self, collection: str, records: Sequence[Record]) -> set[str]:
        """Insert, keywords in normal form."""
        return await self._inner.insert(collection, self._as_stored(collection, records))

    async def put(self, collection: str, records: Sequence[Record]) -> None:
        """Put, keywords in normal form."""
        await self._inner.put(collection, self._as_stored(collection, records))

    async def replace(self, collection: str, record: Record, when: Where) -> bool:
        """Replace, keywords in normal form."""
        [normalized] = self._as_stored(collection, [record])
        return await self._inner.replace(collection, normalized, _normal(when))

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
        """Update, keywords in normal form."""
        changed = self._payload(collection, set, update=True)
        return await self._inner.update(
            collection, namespace, id, set=changed, unset=unset, when=_normal(when)
        )

    async def update_many(self, collection: str, updates: Sequence[Update]) -> set[str]:
        """Update, keywords in normal form."""
        stored = [
            Update(
                one.namespace,
                one.id,
                self._payload(collection, one.set, update=True),
                _normal(one.when),
            )
            for one in updates
        ]
        return await self._inner.update_many(collection, stored)

    async def delete(
        self, collection: str, namespace: str | None, where: Where, limit: int = 0
    ) -> int:
        """Delete by conditions in normal form."""
        return await self._inner.delete(collection, namespace, _normal(where), limit)

    # --- reading ------------------------------------------------------------------------------

    async def get(
        self, collection: str, namespace: str, ids: Sequence[str], *, vectors: bool = False
    ) -> dict[str, Record]:
        """Fetch, keywords as they were sent."""
        found = await self._inner.get(collection, namespace, ids, vectors=vectors)
        return {point: self._as_sent(collection, record) for point, record in found.items()}

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
        """Scroll by conditions in normal form, keywords as they were sent."""
        if isinstance(payload, tuple):
            sent = self._sent.get(collection, {})
            payload = (*payload, *(sent[key] for key in payload if key in sent))
        found = await self._inner.scroll(
            collection,
            namespace,
            _normal(where),
            limit=limit,
            order=order,
            after=after,
            payload=payload,
            vectors=vectors,
        )
        return [self._as_sent(collection, record) for record in found]

    async def expired(self, collection: str, *, limit: int, where: Where = ()) -> list[Record]:
        """What has expired, keywords as they were sent."""
        found = await self._inner.expired(collection, limit=limit, where=_normal(where))
        return [self._as_sent(collection, record) for record in found]

    async def search(
        self,
        collection: str,
        namespace: str,
        queries: Sequence[SearchQuery],
        rescore: Rescore | None = None,
    ) -> SearchResult:
        """Search by conditions in normal form; keywords of records as they were sent."""
        queries = [self._query(collection, query) for query in queries]
        found = await self._inner.search(collection, namespace, queries, rescore)
        if not found.records:
            return found
        records = {i: self._as_sent(collection, record) for i, record in found.records.items()}
        return replace(found, records=records)

    async def count(self, collection: str, namespace: str | None, where: Where = ()) -> int:
        """Count by conditions in normal form."""
        return await self._inner.count(collection, namespace, _normal(where))

    async def facet(
        self, collection: str, namespace: str | None, key: str, where: Where = (), limit: int = 100
    ) -> dict[Scalar, int]:
        """Count by value; values are in normal form."""
        return await self._inner.facet(collection, namespace, key, _normal(where), limit)

    # --- keywords -----------------------------------------------------------------------------

    def _as_stored(self, collection: str, records: Sequence[Record]) -> Sequence[Record]:
        if not self._sent.get(collection):
            return records
        return [replace(one, payload=self._payload(collection, one.payload)) for one in records]

    def _payload(
        self, collection: str, given: Mapping[str, Any], *, update: bool = False
    ) -> Payload:
        """What is stored; an update leaves no older text in force that is not ASCII."""
        stored, sent = dict(given), self._sent.get(collection, {})
        for key in sent.keys() & given.keys():
            as_sent, value = sent[key], stored[key]
            normal = _normal_value(value)
            if normal != value or (update and not _is_ascii(value)):
                stored[key], stored[as_sent] = normal, value
        return stored

    def _query(self, collection: str, query: SearchQuery) -> SearchQuery:
        where, fallback = _normal(query.where), query.fallback
        if fallback is not None:
            accepts = fallback.accepts
            fallback = Fallback(
                self._query(collection, fallback.query),
                lambda record: accepts(self._as_sent(collection, record)),
            )
        elif where is query.where:
            return query
        return replace(query, where=where, fallback=fallback)

    def _as_sent(self, collection: str, record: Record) -> Record:
        if self._sent_keys.get(collection, _NO_KEYS).isdisjoint(record.payload):
            return record
        found = {
            key: as_sent
            for key, as_sent in self._sent[collection].items()
            if as_sent in record.payload
        }
        payload = {key: value for key, value in record.payload.items() if key not in found.values()}
        for key, as_sent in found.items():
            if _normal_value(record.payload[as_sent]) == payload.get(key):
                payload[key] = record.payload[as_sent]
        return replace(record, payload=payload)


def _normal_value(value: Any) -> Any:
    if isinstance(value, str):
        return normal_form(value)
    return [_normal_value(one) for one in value] if isinstance(value, list) else value


def _is_ascii(value: Any) -> bool:
    if isinstance(value, str):
        return value.isascii()
    return all(map(_is_ascii, value)) if isinstance(value, list) else True


def _both_forms(values: list[str]) -> tuple[str, ...]:
    """As they are kept, and as a store kept them that was written before there was one form."""
    return tuple(dict.fromkeys([*map(normal_form, values), *values]))


def _normal(where: Where) -> Where:
    """The conditions in normal form; the same object if nothing changes."""
    normal = [_normal_condition(one) for one in where]
    return where if all(map(is_, normal, where)) else normal


def _normal_condition(condition: Condition) -> Condition:
    """The condition in normal form; the same object if nothing changes."""
    match condition:
        case Equals(key, str() as value) if not value.isascii():
            return AnyOf(key, _both_forms([value]))
        case AnyOf(key, values) if not all(map(_is_ascii, values)):
            return AnyOf(key, _both_forms(list(map(str, values))))
        case Not(inner):
            normal = _normal_condition(inner)
            return condition if normal is inner else Not(normal)
        case AllOf(conditions) | OneOf(conditions):
            each = _normal(conditions)
            return condition if each is conditions else type(condition)(tuple(each))
        case _:
            return condition
