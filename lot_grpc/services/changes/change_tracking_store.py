"""A store that numbers what is written to watched collections, so that the change feed finds it.

It stands between the services and the adapter, since whatever a service writes is a change: no
service has to remember it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from lot_grpc.ports import Record, Update, VectorStore, Where
from lot_grpc.services.changes.sequencer import ChangeSequencer, ReservedNumbers
from lot_grpc.services.forwarding_store import ForwardingStore
from lot_grpc.services.records.changes import first_stamp, stamp, stored_stamp
from lot_grpc.services.registry import Registry


class ChangeTrackingStore(ForwardingStore):
    """``VectorStore`` over another.

    Reads and vectors pass through, and so do deletes, which the feed reads from their tombstones.
    Expiry is not reported.
    """

    def __init__(self, inner: VectorStore, sequencer: ChangeSequencer, registry: Registry) -> None:
        super().__init__(inner)
        self._sequencer = sequencer
        self._tracked = registry.tracked
        self._quiet = {
            one.collection.name: one.watch.quiet
            for one in registry.watched.values()
            if one.watch is not None
        }

    async def insert(self, collection: str, records: Sequence[Record]) -> set[str]:
        """Insert records, each stamped as new."""
        if collection not in self._tracked or not records:
            return await self._inner.insert(collection, records)
        async with self._taking(collection, len(records)) as taken:
            return await self._inner.insert(collection, _numbered(records, taken))

    async def put(self, collection: str, records: Sequence[Record]) -> None:
        """Put records, each stamped as new."""
        if collection not in self._tracked or not records:
            await self._inner.put(collection, records)
            return
        async with self._taking(collection, len(records)) as taken:
            await self._inner.put(collection, _numbered(records, taken))

    async def replace(self, collection: str, record: Record, when: Where) -> bool:
        """Replace with a new stamp; the stamp of the record's first write is carried over."""
        if collection not in self._tracked:
            return await self._inner.replace(collection, record, when)
        found = await self._inner.get(collection, record.namespace, [record.id])
        kept = stored_stamp(found[record.id].payload) if record.id in found else {}
        async with self._taking(collection, 1) as taken:
            keys = {**kept, **stamp(taken.writer_id, taken.first)}
            tracked = replace(record, payload={**record.payload, **keys})
            return await self._inner.replace(collection, tracked, when)

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
        """Update with a new stamp, unless only bookkeeping is written."""
        if collection not in self._tracked or set.keys() <= self._quiet.get(
            collection, frozenset()
        ):
            return await self._inner.update(
                collection, namespace, id, set=set, unset=unset, when=when
            )
        async with self._taking(collection, 1) as taken:
            keys = stamp(taken.writer_id, taken.first)
            return await self._inner.update(
                collection, namespace, id, set={**set, **keys}, unset=unset, when=when
            )

    async def update_many(self, collection: str, updates: Sequence[Update]) -> set[str]:
        """Update, with a new stamp for each record unless only bookkeeping is written."""
        if collection not in self._tracked or not updates:
            return await self._inner.update_many(collection, updates)
        quiet = self._quiet.get(collection, frozenset())
        async with self._taking(collection, len(updates)) as taken:
            tracked = [
                one
                if one.set.keys() <= quiet
                else replace(one, set={**one.set, **stamp(taken.writer_id, taken.first + number)})
                for number, one in enumerate(updates)
            ]
            return await self._inner.update_many(collection, tracked)

    @asynccontextmanager
    async def _taking(self, collection: str, count: int) -> AsyncIterator[ReservedNumbers]:
        taken = await self._sequencer.take(collection, count)
        try:
            yield taken
        except BaseException:
            self._sequencer.settle(taken, sure=False)
            raise
        self._sequencer.settle(taken)


def _numbered(records: Sequence[Record], taken: ReservedNumbers) -> list[Record]:
    return [
        replace(one, payload={**one.payload, **first_stamp(taken.writer_id, taken.first + number)})
        for number, one in enumerate(records)
    ]
