"""Import: what an export gave, stored once however often it is sent.

A record is compared with what lies in its place. The same: it is unchanged. Nothing: it is
inserted, which one of several at once does. Something else: as the caller said. So an import that
died between any two writes is completed by sending it again.

What hangs on a thing is stored only where that very thing is, which its birth tells: the log of a
pattern that was skipped must not be counted to the one that was kept.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import ImportConflictError
from lot_grpc.domain.transfer import Conflict, ImportTerms, Tally
from lot_grpc.kernel.compare_and_set import ConflictError, compare_and_set
from lot_grpc.ports import (
    EXPIRES_KEY,
    Condition,
    Embedder,
    Equals,
    IdIn,
    Payload,
    Record,
    VectorStore,
)
from lot_grpc.services.claims import Claims
from lot_grpc.services.indexer import Indexer
from lot_grpc.services.patterns.lineage import Lineage
from lot_grpc.services.recall.search_fields import SEARCHED_COLLECTIONS, texts_of
from lot_grpc.services.records.collections import CELLS, PATTERNS, QUERY_VECTOR, SORT_KEY
from lot_grpc.services.records.patterns import (
    SUPERSEDED,
    claim_point,
    pattern_from_record,
    pattern_point,
)
from lot_grpc.services.time_slice import TimeSlice
from lot_grpc.services.time_source import TimeSource
from lot_grpc.services.transfer.kinds import Kind, Place, Row
from lot_grpc.services.transfer.replacer import RecordReplacer

_BATCH = 64
_WITH_VECTORS = 16
"""Written at once, so that other calls wait no longer than 20 ms."""


@dataclass(slots=True)
class ImportRun:
    """One import on its way. ``stored`` by kind counts things, the other counts are of records."""

    terms: ImportTerms
    imported: int = 0
    unchanged: int = 0
    skipped: int = 0
    stored: Counter[ResourceKind] = field(default_factory=Counter)

    def tally(self) -> Tally:
        """How far it has come."""
        return Tally(self.imported, self.unchanged, self.skipped, dict(self.stored))


class Importer:
    """Stores what is moved."""

    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder,
        indexer: Indexer,
        time_source: TimeSource,
        claims: Claims,
        replacing: RecordReplacer,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._indexer = indexer
        self._time = time_source
        self._claims = claims
        self._lineage = Lineage(store, time_source)
        self._replacing = replacing

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

    async def _take(self, run: ImportRun, kind: Kind, namespace: str, given: Sequence[Row]) -> None:
        """Rows of one kind in one namespace."""
        rows: dict[str, Row] = {}
        for row in given:
            if row.record.id in rows:  # twice in one message: the second is compared with the first
                await self._settle(run, kind, namespace, rows)
                rows = {}
            rows[row.record.id] = row
        await self._settle(run, kind, namespace, rows)

    async def _settle(
        self, run: ImportRun, kind: Kind, namespace: str, rows: Mapping[str, Row]
    ) -> None:
        wanted = await self._wanted(run, kind, namespace, rows)

        async def attempt() -> None:
            nonlocal wanted
            if wanted := await self._once(run, kind, namespace, wanted):
                raise ConflictError

        name = _name(next(iter(wanted.values()))) if wanted else ""
        await compare_and_set(kind.resource_kind.value, name, attempt)

    async def _once(
        self,
        run: ImportRun,
        kind: Kind,
        namespace: str,
        rows: Mapping[str, Row],
    ) -> dict[str, Row]:
        """Store each; return those that others came in between of."""
        found = await self._store.get(kind.collection, namespace, list(rows))
        fresh = {point: row for point, row in rows.items() if point not in found}
        left = await self._insert(run, kind, fresh)
        time_slice = TimeSlice()
        for point, stored in found.items():
            row = rows[point]
            if kind.as_done(stored.payload) == row.record.payload:
                run.unchanged += 1
            elif run.terms.conflict is Conflict.FAIL:
                raise ImportConflictError(
                    namespace, kind.resource_kind.value, _name(row), dry_run=run.terms.dry_run
                )
            elif run.terms.conflict is Conflict.SKIP:
                run.skipped += 1
            elif await self._replace(run, kind, row, stored):
                _count(run, kind)
            else:
                left[point] = row
            await time_slice.give_way()
        if kind.collection == PATTERNS and not run.terms.dry_run:
            await self._mark(namespace, rows, found)
        return left

    async def _mark(
        self, namespace: str, rows: Mapping[str, Row], former: Mapping[str, Record]
    ) -> None:
        """Mark what patterns that came supersede, and those of them that others supersede.

        Marks that come along stay: who is named by them may come later.
        """
        given = [row.record.payload for row in rows.values()]
        ids = {one["pattern_id"] for one in given} | {one.get("supersedes") for one in given}
        points = [pattern_point(namespace, one) for one in ids if one]
        stored = (await self._store.get(PATTERNS, namespace, points)).values()
        await self._lineage.settle_all([one for one in stored if not one.payload.get(SUPERSEDED)])
        for point, one in former.items():  # replaced by one that no longer supersedes it
            old, new = one.payload.get("supersedes"), rows[point].record.payload.get("supersedes")
            if old and old != new:
                await self._lineage.settle(namespace, old)

    async def _wanted(
        self, run: ImportRun, kind: Kind, namespace: str, rows: Mapping[str, Row]
    ) -> dict[str, Row]:
        """Without what has expired, and what hangs on nothing that is here."""
        now = self._time.now()
        wanted = {
            point: row
            for point, row in rows.items()
            if row.record.payload.get(EXPIRES_KEY, now + 1) > now
        }
        if kind.parent is not None and wanted:
            places = {
                point: kind.parent(namespace, row.record.payload) for point, row in wanted.items()
            }
            here = await self._births(namespace, set(places.values()))
            wanted = {
                point: row
                for point, row in wanted.items()
                if here.get(places[point], _absent(run, row)) == row.birth
            }
        run.skipped += len(rows) - len(wanted)
        return wanted

    async def _births(self, namespace: str, places: set[Place]) -> dict[Place, int]:
        """The sort keys of what lies there."""
        here: dict[Place, int] = {}
        for collection in {place[0] for place in places}:
            points = tuple(point for at, point in places if at == collection)
            found = await self._store.scroll(
                collection, namespace, [IdIn(points)], limit=len(points), payload=(SORT_KEY,)
            )
            here.update({(collection, one.id): one.payload[SORT_KEY] for one in found})
        return here

    # --- writing ------------------------------------------------------------------------------

    async def _insert(self, run: ImportRun, kind: Kind, rows: Mapping[str, Row]) -> dict[str, Row]:
        """Insert; return those whose place was taken meanwhile."""
        if not rows or run.terms.dry_run:
            for _ in rows:
                _count(run, kind)
            return {}
        records = await self._with_vectors(run, kind, list(rows.values()))
        await self._claim(list(rows.values()))
        inserted: set[str] = set()
        at_once = _WITH_VECTORS if records[0].vectors else _BATCH
        for start in range(0, len(records), at_once):
            await asyncio.sleep(0)  # the embedded store does not give way
            piece = records[start : start + at_once]
            inserted |= await self._store.insert(kind.collection, piece)
        for _ in inserted:
            _count(run, kind)
        return {point: row for point, row in rows.items() if point not in inserted}

    async def _replace(self, run: ImportRun, kind: Kind, row: Row, stored: Record) -> bool:
        """Replace what lies there, with all that hangs on it; False if it is another by now."""
        if run.terms.dry_run:
            return True
        (record,) = await self._with_vectors(run, kind, [row])
        await self._claim([row])
        await self._replacing.drop_what_hangs_on(kind, stored)
        return await self._store.replace(kind.collection, record, _as_it_was(stored.payload))

    async def _with_vectors(self, run: ImportRun, kind: Kind, rows: Sequence[Row]) -> list[Record]:
        """The records with the vectors that came along, or made anew from their texts."""
        if kind.collection not in SEARCHED_COLLECTIONS and kind.collection != CELLS:
            return [row.record for row in rows]
        records = {row.record.id: row.record for row in rows}
        lacking = [one for one in records.values() if not (run.terms.same_space and one.vectors)]
        if kind.collection == CELLS:
            embedded = await asyncio.gather(
                *(self._embedder.embed_query(one.payload["query"]) for one in lacking)
            )
            for one, embedding in zip(lacking, embedded, strict=True):
                records[one.id] = replace(one, vectors={QUERY_VECTOR: embedding.vector})
        elif lacking:
            indexed = await self._indexer.vectors(await texts_of(kind.collection, lacking))
            for one, made in zip(lacking, indexed, strict=True):
                records[one.id] = replace(one, vectors=made.vectors)
        return list(records.values())

    async def _claim(self, rows: Sequence[Row]) -> None:
        """Take the claims that patterns held, before they are stored: as saves do, which meet them.

        One that a pattern of another id holds here stays with that, if it is there.
        """
        claiming = [row.record for row in rows if row.claimed]
        if not claiming:
            return
        namespace = claiming[0].namespace
        wanted: dict[str, str] = {}
        time_slice = TimeSlice()
        for one in claiming:
            claim = claim_point(namespace, pattern_from_record(one).content)
            wanted[claim] = str(one.payload["pattern_id"])
            await time_slice.give_way()
        taken = await self._claims.take(namespace, wanted)
        for claim in wanted.keys() - taken:
            owner = await self._claims.owner(namespace, claim, wanted[claim])
            point = pattern_point(namespace, owner)
            if owner != wanted[claim] and not await self._store.get(PATTERNS, namespace, [point]):
                await self._claims.move(namespace, claim, owner, wanted[claim])


def _as_it_was(payload: Payload) -> list[Condition]:
    """That a record is still the one that was read."""
    keys = ("revision", "stats_revision", "result_revision", "reuse_revision", SORT_KEY)
    return [Equals(key, payload[key]) for key in keys if key in payload]


def _absent(run: ImportRun, row: Row) -> int:
    """The birth of a parent that is not there: in a dry run it may have come before."""
    return row.birth if run.terms.dry_run else 0


def _count(run: ImportRun, kind: Kind) -> None:
    run.imported += 1
    if kind.is_thing:
        run.stored[kind.resource_kind] += 1


def _name(row: Row) -> str:
    payload, kind = row.record.payload, row.kind
    named = str(payload.get(kind.id_key, row.record.namespace))
    of = payload.get("episode_id") if kind.resource_kind is ResourceKind.EPISODE_EVENT else ""
    return f"{of}/{named}" if of else named
