"""Export: every record of a namespace in an order that an import can follow.

Nothing is held still. What is written meanwhile is in the export if it lies behind the place that
the export has come to, and is not if it lies before it. So an entry of a log may come without the
thing it counts for, and is then left out by the import.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.transfer import ExportPosition, ExportSpec
from lot_grpc.ports import Condition, Equals, IdIn, Order, Range, Record, VectorStore
from lot_grpc.services.records.collections import (
    PATTERNS,
    REQUESTS,
    SORT_KEY,
)
from lot_grpc.services.records.patterns import claim_point, pattern_from_record
from lot_grpc.services.time_slice import TimeSlice
from lot_grpc.services.transfer.inner_rows import Inner, InnerRows
from lot_grpc.services.transfer.kinds import KINDS, Kind, Row

_BATCH = 64
_EVERY_ONE = 100_000
"""Records of one sort key at most: those that hang on one thing, of which each kind has a bound."""


class Exporter:
    """Reads what is to be moved."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store
        self._inner: dict[str, Inner] = InnerRows(store).by_kind

    async def counts(self, spec: ExportSpec) -> dict[ResourceKind, int]:
        """How many things there are now, by kind."""
        counts: dict[ResourceKind, int] = {}
        time_slice = TimeSlice()
        for kind in _requested_kinds(spec):
            if kind.is_thing:
                for namespace in await self._namespaces(spec, (kind,)):
                    count = await self._store.count(kind.collection, namespace)
                    counts[kind.resource_kind] = counts.get(kind.resource_kind, 0) + count
                    await time_slice.give_way()
        return counts

    async def rows(
        self, spec: ExportSpec, after: ExportPosition | None = None
    ) -> AsyncGenerator[tuple[Row, ExportPosition]]:
        """Every record behind a position, each with its own."""
        kinds = _requested_kinds(spec)
        names = [kind.collection for kind in kinds]
        for namespace in sorted(await self._namespaces(spec, kinds)):
            if after is not None and namespace < after.namespace:
                continue
            here = after if after is not None and namespace == after.namespace else None
            start = names.index(here.kind) if here is not None and here.kind in names else 0
            for kind in kinds[start:]:
                behind = here if here is not None and here.kind == kind.collection else None
                async for found in self._of_kind(namespace, kind, behind, vectors=spec.vectors):
                    yield found

    async def _namespaces(self, spec: ExportSpec, kinds: Sequence[Kind]) -> set[str]:
        if spec.namespace:
            return {spec.namespace}
        found: set[str] = set()
        for collection in {kind.collection for kind in kinds}:
            found |= await self._store.namespaces(collection)
        return found

    async def _of_kind(
        self, namespace: str, kind: Kind, behind: ExportPosition | None, *, vectors: bool
    ) -> AsyncIterator[tuple[Row, ExportPosition]]:
        if kind.collection in self._inner:
            found = self._inside(namespace, kind, behind)
        else:
            found = self._by_sort_key(namespace, kind, behind, vectors=vectors)
        time_slice = TimeSlice()
        async for one in found:
            yield one
            await time_slice.give_way()

    async def _inside(
        self, namespace: str, kind: Kind, behind: ExportPosition | None
    ) -> AsyncIterator[tuple[Row, ExportPosition]]:
        """What hangs on a thing without a sort key of its own: thing by thing."""
        inner = self._inner[kind.collection]
        at = (behind.sort_key, behind.id) if behind is not None else None
        async for batch in self._batches(namespace, inner.outer, at, vectors=False, again=True):
            for thing in batch:
                key = thing.payload[SORT_KEY]
                after = behind.inner if behind is not None and thing.id == behind.id else ""
                async for record, name in inner.read(thing, after):
                    moved = replace(record, payload=kind.as_done(record.payload))
                    position = ExportPosition(namespace, kind.collection, key, thing.id, name)
                    yield Row(kind, moved, key), position

    async def _by_sort_key(
        self, namespace: str, kind: Kind, behind: ExportPosition | None, *, vectors: bool
    ) -> AsyncIterator[tuple[Row, ExportPosition]]:
        at = (behind.sort_key, behind.id) if behind is not None else None
        async for batch in self._batches(namespace, kind.collection, at, vectors=vectors):
            whole = [record for record in batch if not kind.half_done(record.payload)]
            births = await self._births(namespace, kind, whole)
            claimed = await self._claimed(namespace, whole) if kind.collection == PATTERNS else ()
            for record in whole:
                if kind.parent is not None and record.id not in births:
                    continue  # what it hung on is gone
                moved = replace(record, payload=kind.as_done(record.payload))
                key = record.payload[SORT_KEY]
                position = ExportPosition(namespace, kind.collection, key, record.id)
                yield Row(kind, moved, births.get(record.id, 0), record.id in claimed), position

    async def _batches(
        self,
        namespace: str,
        collection: str,
        behind: tuple[int, str] | None,
        *,
        vectors: bool,
        again: bool = False,
    ) -> AsyncIterator[list[Record]]:
        """The records of a collection by sort key and id, from behind a place on.

        ``again``: the one at the place comes once more.
        """
        order = Order(SORT_KEY)
        where: list[Condition] = [] if behind is None else [Range(SORT_KEY, gte=behind[0])]
        while True:
            found = await self._store.scroll(
                collection, namespace, where, limit=_BATCH, order=order, vectors=vectors
            )
            full = len(found) == _BATCH
            if full:
                edge = found[-1].payload[SORT_KEY]
                inside = [one for one in found if one.payload[SORT_KEY] != edge]
                if inside:  # those of the last key may not all have come
                    found, where = inside, [Range(SORT_KEY, gte=edge)]
                else:
                    found = await self._store.scroll(
                        collection,
                        namespace,
                        [Equals(SORT_KEY, edge)],
                        limit=_EVERY_ONE,
                        vectors=vectors,
                    )
                    where = [Range(SORT_KEY, gt=edge)]
            found.sort(key=_place)
            if behind is not None:
                first = behind
                found = [
                    one for one in found if _place(one) > first or (again and _place(one) == first)
                ]
            yield found
            if not full:
                return

    async def _births(
        self, namespace: str, kind: Kind, records: Sequence[Record]
    ) -> dict[str, int]:
        """By record, the sort key of what it hangs on, if that is there."""
        if kind.parent is None:
            return {}
        parents = {record.id: kind.parent(namespace, record.payload) for record in records}
        there: dict[tuple[str, str], int] = {}
        for collection in {place[0] for place in parents.values()}:
            points = tuple({point for at, point in parents.values() if at == collection})
            rows = await self._store.scroll(
                collection, namespace, [IdIn(points)], limit=len(points), payload=(SORT_KEY,)
            )
            there.update({(collection, row.id): row.payload[SORT_KEY] for row in rows})
        return {
            record.id: there[parents[record.id]]
            for record in records
            if parents[record.id] in there
            and (kind.birth is None or kind.birth(record.payload) == there[parents[record.id]])
        }

    async def _claimed(self, namespace: str, records: Sequence[Record]) -> set[str]:
        """Those of the patterns that hold the claim on their content."""
        claims = {
            record.id: claim_point(namespace, pattern_from_record(record).content)
            for record in records
        }
        held = await self._store.get(REQUESTS, namespace, list(claims.values()))
        owners = {claim: row.payload["pattern_id"] for claim, row in held.items()}
        return {
            record.id
            for record in records
            if owners.get(claims[record.id]) == record.payload["pattern_id"]
        }


def _requested_kinds(spec: ExportSpec) -> list[Kind]:
    return [
        kind
        for kind in KINDS
        if not spec.resource_kinds or kind.resource_kind in spec.resource_kinds
    ]


def _place(record: Record) -> tuple[int, str]:
    return record.payload[SORT_KEY], record.id
