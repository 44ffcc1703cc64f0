"""Export: every record of a namespace, in an order that an import can follow.

Nothing is locked. A record written during the export is included if it is after the current
position, and not if it is before. So a log entry may be exported without its parent; the import
then omits it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Container, Sequence
from dataclasses import replace

from lot_grpc.domain.transfer import ExportPosition, ExportSpec
from lot_grpc.ports import Condition, Equals, Order, Range, Record, VectorStore
from lot_grpc.services.clearing.subject_records import SubjectRecords
from lot_grpc.services.operations import ResourcesByKind
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.registry import ExportedCollection
from lot_grpc.services.resource_spec import InnerReader, Place
from lot_grpc.services.retrievals.retrievals import Retrievals
from lot_grpc.services.time_slice import TimeSlice
from lot_grpc.services.transfer.rows import Row, births_at

_BATCH = 64
_EVERY_ONE = 100_000
"""Maximum number of records with one sort key: the parts of one resource, limited by its kind."""


class Exporter:
    """Reads the records to export."""

    def __init__(
        self, store: VectorStore, resources: ResourcesByKind, retrievals: Retrievals
    ) -> None:
        self._store = store
        self._resources = resources
        self._retrievals = retrievals
        self._subjects = SubjectRecords(store, resources.registry)

    async def counts(self, spec: ExportSpec) -> dict[str, int]:
        """The number of records to export, by kind."""
        await self._retrievals.flush()
        if spec.subject:
            return await self._counts_of_subject(spec)
        counts: dict[str, int] = {}
        time_slice = TimeSlice()
        for kind in self._chosen(spec):
            if kind.is_thing:
                for namespace in await self._namespaces(spec, (kind,)):
                    count = await self._store.count(kind.collection, namespace)
                    counts[kind.resource_kind] = counts.get(kind.resource_kind, 0) + count
                    await time_slice.give_way()
        return counts

    async def rows(
        self, spec: ExportSpec, after: ExportPosition | None = None
    ) -> AsyncGenerator[tuple[Row, ExportPosition]]:
        """Every record after a position, each with its own position."""
        await self._retrievals.flush()
        kinds = self._chosen(spec)
        names = [kind.collection for kind in kinds]
        for namespace in sorted(await self._namespaces(spec, kinds)):
            if after is not None and namespace < after.namespace:
                continue
            here = after if after is not None and namespace == after.namespace else None
            places = await self._places(namespace, spec.subject)
            start = names.index(here.kind) if here is not None and here.kind in names else 0
            for kind in kinds[start:]:
                behind = here if here is not None and here.kind == kind.collection else None
                async for found in self._of_kind(namespace, kind, behind, vectors=spec.vectors):
                    if places is None or _belongs(namespace, found[0], places):
                        yield found

    async def _counts_of_subject(self, spec: ExportSpec) -> dict[str, int]:
        counts: Counter[str] = Counter()
        async for row, _ in self.rows(replace(spec, vectors=False)):
            if row.kind.is_thing:
                counts[row.kind.resource_kind] += 1
        return counts

    async def _places(self, namespace: str, subject: str) -> Container[Place] | None:
        """Where the records of a subject are; None without one: everywhere."""
        return await self._subjects.places(namespace, subject) if subject else None

    def _chosen(self, spec: ExportSpec) -> list[ExportedCollection]:
        return [
            one
            for one in self._resources.registry.exported.values()
            if not spec.resource_kinds or one.resource_kind in spec.resource_kinds
        ]

    async def _namespaces(self, spec: ExportSpec, kinds: Sequence[ExportedCollection]) -> set[str]:
        if spec.namespace:
            return {spec.namespace}
        found: set[str] = set()
        for collection in {kind.collection for kind in kinds}:
            found |= await self._store.namespaces(collection)
        return found

    async def _of_kind(
        self,
        namespace: str,
        kind: ExportedCollection,
        behind: ExportPosition | None,
        *,
        vectors: bool,
    ) -> AsyncIterator[tuple[Row, ExportPosition]]:
        if kind.rule.inner is not None:
            found = self._inside(namespace, kind, kind.rule.inner, behind)
        else:
            found = self._by_sort_key(namespace, kind, behind, vectors=vectors)
        time_slice = TimeSlice()
        async for one in found:
            yield one
            await time_slice.give_way()

    async def _inside(
        self,
        namespace: str,
        kind: ExportedCollection,
        read: InnerReader,
        behind: ExportPosition | None,
    ) -> AsyncIterator[tuple[Row, ExportPosition]]:
        """The parts of resources without a sort key of their own, one resource at a time."""
        (outer,) = kind.rule.parents
        at = (behind.sort_key, behind.id) if behind is not None else None
        async for batch in self._batches(namespace, outer, at, vectors=False, again=True):
            for thing in batch:
                key = thing.payload[SORT_KEY]
                after = behind.inner if behind is not None and thing.id == behind.id else ""
                async for record, name in read(self._store, thing, after):
                    moved = replace(record, payload=kind.as_done(record.payload))
                    position = ExportPosition(namespace, kind.collection, key, thing.id, name)
                    yield Row(kind, moved, key), position

    async def _by_sort_key(
        self,
        namespace: str,
        kind: ExportedCollection,
        behind: ExportPosition | None,
        *,
        vectors: bool,
    ) -> AsyncIterator[tuple[Row, ExportPosition]]:
        at = (behind.sort_key, behind.id) if behind is not None else None
        resources = self._resources.of(kind.resource_kind)
        async for batch in self._batches(namespace, kind.collection, at, vectors=vectors):
            whole = [record for record in batch if not kind.rule.excluded(record.payload)]
            births = await self._births(namespace, kind, whole)
            claimed: Collection[str] = ()
            if kind.is_thing:
                claimed = await resources.unique_ids(namespace, whole)
            for record in whole:
                if kind.rule.parent is not None and record.id not in births:
                    continue  # its parent is gone
                moved = replace(record, payload=kind.as_done(record.payload))
                if kind.rule.vectors_missing(record.payload):
                    moved = replace(moved, vectors={})
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
        """The records of a collection by sort key and id, after a position.

        ``again``: the one at the position is repeated.
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
        self, namespace: str, kind: ExportedCollection, records: Sequence[Record]
    ) -> dict[str, int]:
        """By record, the sort key of its parent, if that exists."""
        rule = kind.rule
        if rule.parent is None:
            return {}
        parents = {record.id: rule.parent(namespace, record.payload) for record in records}
        there = await births_at(self._store, namespace, parents.values())
        return {
            record.id: there[parents[record.id]]
            for record in records
            if parents[record.id] in there
            and (rule.birth is None or rule.birth(record.payload) == there[parents[record.id]])
        }


def _belongs(namespace: str, row: Row, places: Container[Place]) -> bool:
    """Whether a record, or the one that it is part of, is at one of the places."""
    rule, record = row.kind.rule, row.record
    parent = rule.parent(namespace, record.payload) if rule.parent is not None else None
    return (row.kind.collection, record.id) in places or parent in places


def _place(record: Record) -> tuple[int, str]:
    return record.payload[SORT_KEY], record.id
