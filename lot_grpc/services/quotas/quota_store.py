"""A store that counts what each namespace holds, and refuses what would take it over its quota.

Whatever a service writes is counted here, so no service has to. Writes to a namespace with a quota
take turns: each is measured, checked, made and added up before the next, so that concurrent writes
cannot exceed the quota together. Everything in the namespace is counted when the usage is first
needed; then each write is added. Whatever puts the count in doubt, such as a write that failed,
makes the next need count everything again. So a count is never wrong for long, and is not stored.

Only writes that store something new are refused. Never refused are deletes, updates of single keys
(which services use for counters and marks), derived records (``ResourceCollection.derived``), and
what follows from an accepted write (``work.follow_up``).
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from typing import Any, Final

from lot_grpc.domain.quota import NamespaceQuota, Quota, Usage
from lot_grpc.ports import EXPIRES_KEY, IdIn, Range, Record, Update, VectorStore, Where
from lot_grpc.services.forwarding_store import ForwardingStore
from lot_grpc.services.quotas.counter import Counter, Meter
from lot_grpc.services.quotas.counters import Counters
from lot_grpc.services.records.collections import POLICIES
from lot_grpc.services.registry import Registry
from lot_grpc.services.time_source import TimeSource
from lot_grpc.work import follow_up, is_follow_up

_MOST_READ: Final = 1000
"""Records of a delete that are measured; of more, the namespace is counted again."""


class QuotaStore(ForwardingStore):
    """Wraps a ``VectorStore``. Refused writes raise QuotaExceededError and change nothing.

    Attributes:
        counters: What the namespaces hold, and their quotas.
    """

    def __init__(
        self, inner: VectorStore, registry: Registry, time_source: TimeSource, default: Quota
    ) -> None:
        """``default``: the quota of namespaces whose policy sets none."""
        super().__init__(inner)
        self._meter = Meter(registry)
        self._time = time_source
        self.counters = Counters(inner, self._meter, default)
        self._looks = asyncio.Lock()

    async def of(self, namespace: str) -> NamespaceQuota:
        """How much a namespace holds, and its limits. Counts everything if that is not known.

        Without a quota nothing is known, and writes go on meanwhile; those that are under way may
        be counted or not. Only one namespace is counted so at a time.
        """
        async with self.counters.writing([namespace], counted=True) as counters:
            for counter in counters.values():
                return NamespaceQuota(counter.usage or Usage(), counter.quota or Quota())
        async with self._looks:
            return NamespaceQuota(await self._meter.count(self._inner, namespace), Quota())

    @asynccontextmanager
    async def reserved(
        self, namespace: str, measure: Callable[[], Awaitable[Usage]]
    ) -> AsyncIterator[None]:
        """Make room for all that a call stores in several writes, which are then not refused.

        ``measure``: what they will add; only called if it counts. Raises QuotaExceededError.
        """
        if is_follow_up() or not (await self.counters.of(namespace)).counts:
            yield
            return
        growth = await measure()
        async with self.counters.writing([namespace], counted=True) as counters:
            for counter in counters.values():
                self.counters.require(namespace, counter, growth)
                counter.reserved += growth
                counter.users += 1
        try:
            with follow_up():
                yield
        finally:
            for counter in counters.values():
                counter.reserved -= growth
                counter.users -= 1

    async def growth(self, collection: str, records: Sequence[Record]) -> Usage:
        """What storing these records of one namespace would add to what is there."""
        if collection not in self._meter.collections:
            return Usage()
        there, expired = await self._there(collection, records)
        return self._growth(collection, records[0].namespace, records, {**expired, **there})

    # --- writing ------------------------------------------------------------------------------

    async def insert(self, collection: str, records: Sequence[Record]) -> set[str]:
        """Insert, unless those whose id is free would be too much."""
        if collection not in self._meter.collections:
            inserted = await self._inner.insert(collection, records)
            self._written(collection, (one.namespace for one in records))
            return inserted
        with self.counters.passing({one.namespace for one in records}) as passes:
            if passes:
                return await self._inner.insert(collection, records)
        async with self._storing(collection, records) as counters:
            if not counters:
                return await self._inner.insert(collection, records)
            there, expired = await self._there(collection, records)
            fresh: dict[str, Record] = {}
            for record in records:
                if record.id not in there:
                    fresh.setdefault(record.id, record)
            self._check(collection, counters, fresh.values(), expired)
            inserted = await self._inner.insert(collection, records)
            stored = [fresh[one] for one in inserted if one in fresh]
            replaced = {one: expired[one] for one in inserted if one in expired}
            self._add(collection, counters, stored, replaced)
            if len(stored) < len(inserted):
                self.counters.invalidate(counters)
            return inserted

    async def put(self, collection: str, records: Sequence[Record]) -> None:
        """Put, unless it would be too much."""
        if collection not in self._meter.collections:
            await self._inner.put(collection, records)
            self._written(collection, (one.namespace for one in records))
            return
        async with self._storing(collection, records) as counters:
            if not counters:
                await self._inner.put(collection, records)
                return
            there, expired = await self._there(collection, records)
            last = {record.id: record for record in records}
            replaced = {**expired, **there}
            self._check(collection, counters, last.values(), replaced)
            await self._inner.put(collection, records)
            self._add(collection, counters, last.values(), replaced)

    async def replace(self, collection: str, record: Record, when: Where) -> bool:
        """Replace, unless the new record is larger and that would be too much."""
        if collection not in self._meter.collections:
            done = await self._inner.replace(collection, record, when)
            self._written(collection, [record.namespace])
            return done
        with self.counters.passing([record.namespace]) as passes:
            if passes:
                return await self._inner.replace(collection, record, when)
        async with self._storing(collection, [record]) as counters:
            if not counters:
                return await self._inner.replace(collection, record, when)
            there = await self._inner.get(collection, record.namespace, [record.id])
            if there:
                self._check(collection, counters, [record], there)
            done = await self._inner.replace(collection, record, when)
            if done:
                self._add(collection, counters, [record], there)
            return done

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
        """Update, and count."""
        if collection not in self._meter.collections:
            done = await self._inner.update(
                collection, namespace, id, set=set, unset=unset, when=when
            )
            self._written(collection, [namespace])
            return done
        with self.counters.passing([namespace]) as passes:
            if passes:
                return await self._inner.update(
                    collection, namespace, id, set=set, unset=unset, when=when
                )
        async with self.counters.writing([namespace]) as counters:
            there = await self._measured(collection, counters, namespace, [id])
            done = await self._inner.update(
                collection, namespace, id, set=set, unset=unset, when=when
            )
            if done:
                self._updated(collection, counters, there, namespace, id, set, unset)
            return done

    async def update_many(self, collection: str, updates: Sequence[Update]) -> set[str]:
        """Update, and count."""
        if collection not in self._meter.collections:
            return await self._inner.update_many(collection, updates)
        with self.counters.passing({one.namespace for one in updates}) as passes:
            if passes:
                return await self._inner.update_many(collection, updates)
        async with self.counters.writing([one.namespace for one in updates]) as counters:
            there: dict[str, Record] = {}
            for namespace in counters:
                ids = [one.id for one in updates if one.namespace == namespace]
                there |= await self._measured(collection, counters, namespace, ids)
            updated = await self._inner.update_many(collection, updates)
            for one in updates:
                if one.id in updated:
                    given = (one.namespace, one.id, one.set)
                    self._updated(collection, counters, there, *given)
            return updated

    # --- deleting -----------------------------------------------------------------------------

    async def delete(
        self, collection: str, namespace: str | None, where: Where, limit: int = 0
    ) -> int:
        """Delete, and count."""
        if collection not in self._meter.collections:
            deleted = await self._inner.delete(collection, namespace, where, limit)
            self._written(collection, None if namespace is None else [namespace])
            return deleted
        affected = {namespace} if namespace is not None else set[str]()
        if namespace is None and self.counters.counting():
            affected = {one.namespace for one in await self._matching(collection, None, where)}
        async with self.counters.writing(affected) as counters:
            measured = any(one.usage is not None for one in counters.values())
            gone = await self._matching(collection, namespace, where) if measured else []
            deleted = await self._inner.delete(collection, namespace, where, limit)
            known = deleted == len(gone) <= _MOST_READ
            if measured and known and affected.issuperset(one.namespace for one in gone):
                for name, counter in counters.items():
                    counter.add(Usage() - self._growth(collection, name, gone, {}))
            elif deleted:
                self.counters.invalidate(counters if namespace is not None else None)
            return deleted

    async def delete_expired(self, collection: str, *, limit: int) -> int:
        """Delete, and count."""
        if collection not in self._meter.collections:
            return await self._inner.delete_expired(collection, limit=limit)
        ids = tuple(one.id for one in await self._inner.expired(collection, limit=limit))
        if not ids:
            return 0
        still = Range(EXPIRES_KEY, lte=self._time.now())
        await self.delete(collection, None, [IdIn(ids), still])
        return len(ids)

    @asynccontextmanager
    async def _storing(
        self, collection: str, records: Sequence[Record]
    ) -> AsyncIterator[Mapping[str, Counter]]:
        refusable = not (self._meter.collections[collection].derived or is_follow_up())
        names = {record.namespace for record in records}
        async with self.counters.writing(names, counted=refusable) as counters:
            yield counters

    # --- measuring ----------------------------------------------------------------------------

    async def _there(
        self, collection: str, records: Sequence[Record]
    ) -> tuple[dict[str, Record], dict[str, Record]]:
        """The records that have these ids, and those that have expired."""
        there: dict[str, Record] = {}
        for namespace in {record.namespace for record in records}:
            ids = [record.id for record in records if record.namespace == namespace]
            there |= await self._inner.get(collection, namespace, ids)
        ids = [record.id for record in records if record.id not in there]
        if not ids:
            return there, {}
        where = [IdIn(tuple(ids))]
        expired = await self._inner.expired(collection, limit=len(ids), where=where)
        return there, {record.id: record for record in expired}

    async def _matching(self, collection: str, namespace: str | None, where: Where) -> list[Record]:
        """What a delete would delete; too many, if there are more than can be measured."""
        found = await self._inner.scroll(collection, namespace, where, limit=_MOST_READ + 1)
        expired = await self._inner.expired(collection, limit=_MOST_READ + 1, where=where)
        ours = [one for one in expired if namespace in (None, one.namespace)]
        return found + (ours if len(expired) <= _MOST_READ else expired)

    async def _measured(
        self, collection: str, counters: Mapping[str, Counter], namespace: str, ids: Sequence[str]
    ) -> dict[str, Record]:
        """The records before an update, if it is counted."""
        if namespace not in counters or counters[namespace].usage is None:
            return {}
        return await self._inner.get(collection, namespace, ids)

    def _updated(
        self,
        collection: str,
        counters: Mapping[str, Counter],
        there: Mapping[str, Record],
        namespace: str,
        id: str,
        changed: Mapping[str, Any],
        unset: Sequence[str] = (),
    ) -> None:
        """Count an update of a record that was ``there`` before."""
        if namespace not in counters:
            return
        if id not in there:
            counters[namespace].usage = None
            return
        payload = {**there[id].payload, **changed}
        for key in unset:
            payload.pop(key, None)
        self._add(collection, counters, [Record(id, namespace, payload)], there)

    def _written(self, collection: str, namespaces: Iterable[str] | None) -> None:
        if collection == POLICIES:
            self.counters.policy_written(namespaces)

    def _growth(
        self,
        collection: str,
        namespace: str,
        stored: Collection[Record],
        replaced: Mapping[str, Record],
    ) -> Usage:
        growth = Usage()
        for record in stored:
            if record.namespace == namespace:
                growth += self._meter.size(collection, record)
                if record.id in replaced:
                    growth -= self._meter.size(collection, replaced[record.id])
        return growth

    def _check(
        self,
        collection: str,
        counters: Mapping[str, Counter],
        stored: Collection[Record],
        replaced: Mapping[str, Record],
    ) -> None:
        if self._meter.collections[collection].derived or is_follow_up():
            return
        for namespace, counter in counters.items():
            growth = self._growth(collection, namespace, stored, replaced)
            self.counters.require(namespace, counter, growth)

    def _add(
        self,
        collection: str,
        counters: Mapping[str, Counter],
        stored: Collection[Record],
        replaced: Mapping[str, Record],
    ) -> None:
        for namespace, counter in counters.items():
            if counter.usage is not None:
                counter.add(self._growth(collection, namespace, stored, replaced))
