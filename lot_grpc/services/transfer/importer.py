"""Import: stores what was exported, exactly once however often it is sent.

A record is compared with the one at its point. If they are equal, it is unchanged. If there is
none, it is inserted, by one of several concurrent imports. If they differ, the caller's choice
applies. So an import that died between any two writes is completed by sending it again.

Parts are stored only with the very parent they belong to, which is identified by its birth: the log
of a skipped pattern must not be counted for the one that was kept.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lot_grpc.domain.errors import ImportConflictError
from lot_grpc.domain.quota import Usage
from lot_grpc.domain.transfer import ImportConflictPolicy, ImportTerms, Tally
from lot_grpc.kernel.compare_and_set import ConflictError, compare_and_set
from lot_grpc.ports import (
    EXPIRES_KEY,
    Condition,
    Equals,
    Payload,
    Record,
)
from lot_grpc.services.operations import ResourcesByKind
from lot_grpc.services.record_embedder import RecordEmbedder
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.registry import ExportedCollection
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.time_slice import TimeSlice
from lot_grpc.services.transfer.rows import Row, births_at

_BATCH = 64
_WITH_VECTORS = 16
"""Written at once, so that other calls wait no longer than 20 ms."""


@dataclass(slots=True)
class ImportRun:
    """An import in progress. ``stored`` counts by kind; the other counts include parts."""

    terms: ImportTerms
    imported: int = 0
    unchanged: int = 0
    skipped: int = 0
    stored: Counter[str] = field(default_factory=Counter)

    def tally(self) -> Tally:
        """The counts so far."""
        return Tally(self.imported, self.unchanged, self.skipped, dict(self.stored))


class Importer:
    """Stores imported records."""

    def __init__(
        self,
        runtime: Runtime,
        embedder: RecordEmbedder,
        resources: ResourcesByKind,
    ) -> None:
        self._store = runtime.store
        self._quotas = runtime.stack.quotas
        self._embedder = embedder
        self._time = runtime.time
        self._resources = resources

    async def take(self, run: ImportRun, rows: Sequence[Row]) -> None:
        """Store rows, all in the namespaces they name and in the places that follow from them.

        Raises ImportConflictError (the rows before it are stored), EpisodeStreamOpenError,
        ContentionError.
        """
        start = 0
        while start < len(rows):
            kind, namespace = rows[start].kind, rows[start].record.namespace
            end = start
            while (
                end < len(rows)
                and end - start < _BATCH
                and rows[end].kind is kind
                and rows[end].record.namespace == namespace
            ):
                end += 1
            await self._take(run, kind, namespace, rows[start:end])
            start = end

    async def _take(
        self, run: ImportRun, kind: ExportedCollection, namespace: str, given: Sequence[Row]
    ) -> None:
        """Rows of one kind in one namespace."""
        rows: dict[str, Row] = {}
        for row in given:
            if row.record.id in rows:  # twice in one message: the second is compared with the first
                await self._settle(run, kind, namespace, rows)
                rows = {}
            rows[row.record.id] = row
        await self._settle(run, kind, namespace, rows)

    async def _settle(
        self, run: ImportRun, kind: ExportedCollection, namespace: str, rows: Mapping[str, Row]
    ) -> None:
        left = await self._requested(run, kind, namespace, rows)

        async def attempt() -> None:
            nonlocal left
            if left := await self._attempt(run, kind, namespace, left):
                raise ConflictError

        name = _name(next(iter(left.values()))) if left else ""
        await compare_and_set(kind.resource_kind, name, attempt)

    async def _attempt(
        self,
        run: ImportRun,
        kind: ExportedCollection,
        namespace: str,
        rows: Mapping[str, Row],
    ) -> dict[str, Row]:
        """Store each; return those that conflicted with concurrent writes."""
        found = await self._store.get(kind.collection, namespace, list(rows))
        fresh = {point: row for point, row in rows.items() if point not in found}
        left = await self._insert(run, kind, fresh)
        time_slice = TimeSlice()
        for point, stored in found.items():
            row = rows[point]
            if kind.as_done(stored.payload) == row.record.payload:
                run.unchanged += 1
            elif run.terms.conflict_policy is ImportConflictPolicy.FAIL:
                raise ImportConflictError(
                    namespace, kind.resource_kind, _name(row), dry_run=run.terms.dry_run
                )
            elif run.terms.conflict_policy is ImportConflictPolicy.SKIP:
                run.skipped += 1
            elif await self._replace(run, kind, row, stored):
                _count(run, kind)
            else:
                left[point] = row
            await time_slice.give_way()
        if kind.is_thing and not run.terms.dry_run:
            await self._resources.of(kind.resource_kind).after_import(namespace, rows, found)
        return left

    async def _requested(
        self, run: ImportRun, kind: ExportedCollection, namespace: str, rows: Mapping[str, Row]
    ) -> dict[str, Row]:
        """The rows that have not expired, lack no parent, and have vectors or can get them."""
        now = self._time.now()
        left = {
            point: row
            for point, row in rows.items()
            if row.record.payload.get(EXPIRES_KEY, now + 1) > now and _has_vector(run, row)
        }
        parent = kind.rule.parent
        if parent is not None and left:
            places = {point: parent(namespace, row.record.payload) for point, row in left.items()}
            here = await births_at(self._store, namespace, places.values())
            left = {
                point: row
                for point, row in left.items()
                if here.get(places[point], _absent(run, row)) == row.birth
            }
        run.skipped += len(rows) - len(left)
        return left

    # --- writing ------------------------------------------------------------------------------

    async def _insert(
        self, run: ImportRun, kind: ExportedCollection, rows: Mapping[str, Row]
    ) -> dict[str, Row]:
        """Insert; return those whose point was taken in the meantime."""
        if not rows or run.terms.dry_run:
            for _ in rows:
                _count(run, kind)
            return {}
        records = await self._with_vectors(run, kind, list(rows.values()))
        await self._before_write(kind, list(rows.values()))
        inserted: set[str] = set()
        at_once = _WITH_VECTORS if records[0].vectors else _BATCH
        for start in range(0, len(records), at_once):
            await asyncio.sleep(0)  # the embedded store does not give way
            piece = records[start : start + at_once]
            inserted |= await self._store.insert(kind.collection, piece)
        for _ in inserted:
            _count(run, kind)
        return {point: row for point, row in rows.items() if point not in inserted}

    async def _replace(
        self, run: ImportRun, kind: ExportedCollection, row: Row, stored: Record
    ) -> bool:
        """Replace a record and everything that belongs to it; False if it has changed."""
        if run.terms.dry_run:
            return True
        (record,) = await self._with_vectors(run, kind, [row])
        await self._before_write(kind, [row])

        async def measure() -> Usage:
            return await self._quotas.growth(kind.collection, [record])

        # Else the record might be refused after what belonged to it was dropped.
        async with self._quotas.reserved(record.namespace, measure):
            if kind.is_thing:
                await self._drop_belongings(kind, stored)
            return await self._store.replace(kind.collection, record, _as_it_was(stored.payload))

    async def _with_vectors(
        self, run: ImportRun, kind: ExportedCollection, rows: Sequence[Row]
    ) -> list[Record]:
        """The records with the exported vectors, or with new ones made from their texts."""
        records = {row.record.id: _as_stored(kind, row.record) for row in rows}
        if not kind.source.dense:
            return list(records.values())
        lacking = [one for one in records.values() if not (run.terms.same_space and one.vectors)]
        if lacking:
            vectors = await self._embedder.vectors(kind.source, lacking)
            for one, made in zip(lacking, vectors, strict=True):
                records[one.id] = replace(one, vectors=made)
        return list(records.values())

    async def _before_write(self, kind: ExportedCollection, rows: Sequence[Row]) -> None:
        if kind.is_thing:
            await self._resources.of(kind.resource_kind).before_import(rows)

    async def _drop_belongings(self, kind: ExportedCollection, stored: Record) -> None:
        """Delete what belongs to a record, before the record itself is replaced.

        In this order a death in between leaves the old one with less history, and the import that
        is sent again meets it, and replaces it.
        """
        await self._resources.of(kind.resource_kind).before_replace(stored)
        for belongings in kind.resource.belongings(stored):
            await self._store.delete(belongings.collection, stored.namespace, belongings.where)


def _as_it_was(payload: Payload) -> list[Condition]:
    """The conditions under which a record is still the one that was read."""
    keys = ("revision", "stats_revision", "result_revision", "reuse_revision", SORT_KEY)
    return [Equals(key, payload[key]) for key in keys if key in payload]


def _as_stored(kind: ExportedCollection, record: Record) -> Record:
    derived = kind.rule.derived(record.namespace, record.payload)
    return replace(record, payload={**record.payload, **derived}) if derived else record


def _has_vector(run: ImportRun, row: Row) -> bool:
    """Whether its vectors exist, or can be made from its text."""
    hashed = row.record.payload.get(row.kind.source.hashed_key, False)
    return not hashed or (run.terms.same_space and bool(row.record.vectors))


def _absent(run: ImportRun, row: Row) -> int:
    """The birth of a parent that is not there: in a dry run it may have come before."""
    return row.birth if run.terms.dry_run else 0


def _count(run: ImportRun, kind: ExportedCollection) -> None:
    run.imported += 1
    if kind.is_thing:
        run.stored[kind.resource_kind] += 1


def _name(row: Row) -> str:
    return row.kind.name(row.record)
