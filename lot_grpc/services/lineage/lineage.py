"""Which record of a kind supersedes which.

If N supersedes X, N's content says so, and the mark on X is derived from it. Whoever writes,
changes, reviews or deletes such an N first records a note, then writes N, then sets X's mark by all
that name X, by a compare-and-set of X's ``stats_revision``, and then deletes the note. An N that is
held back by its review does not count. From a note that a dead process left, the mark is derived
again, so it is never wrong for long. No etag changes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from lot_grpc.domain.errors import QuotaExceededError, RequestInvalidError, invalid
from lot_grpc.domain.ids import new_id, point_id
from lot_grpc.kernel.compare_and_set import ConflictError, compare_and_set, update_as_read
from lot_grpc.kernel.intents import recover
from lot_grpc.ports import AnyOf, Equals, IdIn, Payload, Record, VectorStore
from lot_grpc.services.records.collections import REQUESTS
from lot_grpc.services.records.counters import STATS_REVISION
from lot_grpc.services.records.lineage import (
    SUPERSEDED,
    SUPERSEDED_BY,
    SUPERSEDED_TIME,
    SUPERSEDES,
)
from lot_grpc.services.records.origin import RECALLABLE, held_back
from lot_grpc.services.resource_spec import ResourceSpec
from lot_grpc.services.scanning import scan
from lot_grpc.services.time_source import TimeSource
from lot_grpc.services.transfer.rows import Row

MOST_OF_A_RELATION = 100
_LONGEST_CHAIN = 1000

T = TypeVar("T")


class Relation(StrEnum):
    """How another record is related to a given one."""

    SUPERSEDED = "superseded"
    SUCCESSOR = "successor"
    GROUP = "group"
    MEMBER = "member"


@dataclass(frozen=True, slots=True)
class Relative(Generic[T]):
    """A related record, ``distance`` steps away."""

    relation: Relation
    thing: T
    distance: int


@dataclass(frozen=True, slots=True)
class Note:
    """Says that what a record supersedes is about to change, and which records that concerns."""

    namespace: str
    point: str
    id: str
    superseded: tuple[str, ...]


def note_kind(resource_kind: str) -> str:
    """The kind of the notes about records of a kind."""
    return f"{resource_kind}_lineage"


class Lineage(Generic[T]):
    """The lineage of all records of one kind, whose contents have ``supersedes``."""

    def __init__(
        self,
        spec: ResourceSpec,
        store: VectorStore,
        time_source: TimeSource,
        begin_of: Callable[[Mapping[str, Any]], int] | None = None,
    ) -> None:
        """``begin_of``: when a successor starts to supersede; None: at once, no time is kept."""
        self._spec = spec
        self._collection = spec.collection.name
        self._store = store
        self._time = time_source
        self._begin_of = begin_of

    # --- superseding --------------------------------------------------------------------------

    async def begin(self, namespace: str, id: str, new: str, old: str = "") -> Note:
        """Check what a record is about to supersede (``new``, "" for none), and write it down.

        ``old`` is what it superseded until now. Raises the kind's NotFoundError,
        RequestInvalidError.
        """
        if new and new != old:
            await self._check(namespace, id, new)
        superseded = tuple(dict.fromkeys(one for one in (new, old) if one))
        kind = note_kind(self._spec.kind)
        note = Note(namespace, point_id(namespace, kind, new_id("n")), id, superseded)
        payload = {
            "kind": kind,
            "successor_id": id,
            "superseded": list(superseded),
            "create_time": self._time.now(),
        }
        await self._store.insert(REQUESTS, [Record(note.point, namespace, payload)])
        return note

    async def follow(self, note: Note) -> None:
        """Update the marks, once the record is written or deleted.

        Raises RequestInvalidError if another process made it a circle at the same time; then the
        record no longer supersedes. Raises ContentionError.
        """
        circle = await self._break_circle(note.namespace, note.id)
        for superseded in note.superseded:
            await self.settle(note.namespace, superseded)
        await self.drop(note)
        if circle:
            raise self._circle()

    async def carry_out(
        self, before: Record, after: Mapping[str, Any], write: Callable[[], Awaitable[bool]]
    ) -> bool:
        """Write a change of a record, and update the marks of what it supersedes.

        ``after`` is its payload then. Raises what ``begin`` and ``follow`` raise.
        """
        old, new = (one.get(SUPERSEDES, "") for one in (before.payload, after))
        if old == new and (not old or self._counts(before.payload) == self._counts(after)):
            return await write()
        note = await self.begin(before.namespace, before.payload[self._spec.id_key], new, old)
        try:
            written = await write()
        except QuotaExceededError:
            await self.drop(note)
            raise
        await self.follow(note)
        return written

    def _counts(self, payload: Mapping[str, Any]) -> tuple[bool, int | None]:
        """Whether the review of a record lets it supersede, and from what time."""
        return held_back(payload), self._begin_of(payload) if self._begin_of else None

    async def drop(self, note: Note) -> None:
        """Delete a note whose write did not happen, or is complete."""
        await self._store.delete(REQUESTS, note.namespace, [IdIn((note.point,))])

    async def roll_forward(self, before: int) -> int:
        """Complete the notes left from before a time; return how many."""

        async def follow(row: Record) -> None:
            payload = row.payload
            superseded = tuple(payload["superseded"])
            with suppress(RequestInvalidError):  # a cycle is broken; no caller needs the error
                await self.follow(Note(row.namespace, row.id, payload["successor_id"], superseded))

        notes = Equals("kind", note_kind(self._spec.kind))
        return await recover(self._store, REQUESTS, notes, follow, before=before)

    async def insert(self, records: Sequence[Record], new: Collection[str] = ()) -> set[str]:
        """Insert records of one namespace, marked as superseded where others name their ids.

        Those took the ids of deleted ones. ``new`` are the points of those whose id is a new one,
        which nothing can name. Returns the points of the inserted.
        """
        named = [record for record in records if record.id not in new]
        await self.leave_expired(named)
        for record, mark in await self._with_marks(named):
            if mark[SUPERSEDED]:
                record.payload.update(mark)
        inserted = await self._store.insert(self._collection, records)
        await self.settle_all([record for record in named if record.id in inserted])
        return inserted

    async def leave_expired(self, records: Sequence[Record]) -> None:
        """Settle what expired records superseded, whose ids these are about to take."""
        if records:
            points = IdIn(tuple(record.id for record in records))
            gone = await self._store.expired(self._collection, limit=len(records), where=[points])
            for superseded in {one.payload.get(SUPERSEDES, "") for one in gone} - {""}:
                await self.settle(records[0].namespace, superseded)

    async def settle_all(self, records: Sequence[Record]) -> None:
        """Settle records of one namespace that were just written with these payloads."""
        for record, mark in await self._with_marks(records):
            if not _has(record, mark):
                await self.settle(record.namespace, record.payload[self._spec.id_key])

    async def settle(self, namespace: str, id: str) -> None:
        """Set a record's mark by those that supersede it. Raises ContentionError."""
        point = self._spec.point_of(namespace, id)

        async def attempt() -> None:
            record = (await self._store.get(self._collection, namespace, [point])).get(point)
            if record is None:
                return
            # Read after the record: who supersedes it since settles it since, too.
            mark = (await self._marks(namespace, (id,)))[id]
            if _has(record, mark):
                return
            await update_as_read(self._store, self._collection, record, mark, STATS_REVISION)
            # Read again after it is written: one that went in between found nothing to change.
            if (await self._marks(namespace, (id,)))[id] != mark:
                raise ConflictError

        await compare_and_set(self._spec.kind, id, attempt)

    async def settle_imported(
        self, namespace: str, rows: Mapping[str, Row], former: Mapping[str, Record]
    ) -> None:
        """Mark what imported records supersede, and those of them that others supersede.

        A mark that comes along stays while the one that it names may come later. One that closes a
        circle no longer supersedes. ``former`` are the records that they replaced.
        """
        key = self._spec.id_key
        given = [row.record.payload for row in rows.values()]
        await self._break_circles(namespace, [one[key] for one in given if one.get(SUPERSEDES)])
        concerned = {each for one in given for each in (one[key], one.get(SUPERSEDES))}
        stored = await self._stored(namespace, concerned)
        marked_by = {one.payload.get(SUPERSEDED_BY) for one in stored.values()}
        absent = marked_by - (await self._stored(namespace, marked_by)).keys() - {None, ""}
        await self.settle_all(
            [one for one in stored.values() if one.payload.get(SUPERSEDED_BY) not in absent]
        )
        for point, one in former.items():  # replaced by one that no longer supersedes it
            old, new = one.payload.get(SUPERSEDES), rows[point].record.payload.get(SUPERSEDES)
            if old and old != new:
                await self.settle(namespace, old)

    async def _break_circles(self, namespace: str, ids: Sequence[str]) -> None:
        """Break those that records which came, and supersede others, have closed."""
        if ids:
            where = [AnyOf(SUPERSEDES, tuple(ids))]
            rows = scan(self._store, self._collection, namespace, where, payload=(SUPERSEDES,))
            for named in {row.payload[SUPERSEDES] async for row in rows}:
                await self._break_circle(namespace, named)

    async def _stored(self, namespace: str, ids: Collection[str | None]) -> dict[str, Record]:
        """The records of the ids, as far as they are there, by id."""
        points = {self._spec.point_of(namespace, one): one for one in ids if one}
        found = await self._store.get(self._collection, namespace, list(points))
        return {points[point]: record for point, record in found.items()}

    async def _with_marks(self, records: Sequence[Record]) -> list[tuple[Record, Payload]]:
        """Each record, and its mark; all are of one namespace."""
        if not records:
            return []
        ids = tuple(str(record.payload[self._spec.id_key]) for record in records)
        marks = await self._marks(records[0].namespace, ids)
        return [(record, marks[one]) for record, one in zip(records, ids, strict=True)]

    async def _marks(self, namespace: str, ids: tuple[str, ...]) -> dict[str, Payload]:
        """The marks of ids, by those that supersede them now."""
        id_key, timed = self._spec.id_key, self._begin_of is not None
        nobody: Payload = {SUPERSEDED: False, SUPERSEDED_BY: ""}
        if timed:
            nobody[SUPERSEDED_TIME] = None
        marks = {one: dict(nobody) for one in ids}
        keys = (id_key, SUPERSEDES, *(("create_time", "valid_from") if timed else ()))
        where = [AnyOf(SUPERSEDES, ids), RECALLABLE]
        async for row in scan(self._store, self._collection, namespace, where, payload=keys):
            mark = marks[row.payload[SUPERSEDES]]
            mark.update({SUPERSEDED: True, SUPERSEDED_BY: row.payload[id_key]})  # oldest first
            if self._begin_of is not None:
                begin, first = self._begin_of(row.payload), mark[SUPERSEDED_TIME]
                mark[SUPERSEDED_TIME] = begin if first is None else min(first, begin)
        return marks

    async def _check(self, namespace: str, id: str, superseded: str) -> None:
        if superseded == id:
            raise invalid(
                f"{self._spec.kind}.supersedes",
                "supersedes.itself",
                f"a {self._spec.kind} cannot supersede itself; name the one it replaces",
            )
        chain = await self._chain(namespace, superseded)
        if not chain:
            hint = f"supersedes must name an existing {self._spec.kind}"
            raise self._spec.missing(namespace, superseded, hint)
        if id in {one.payload.get(SUPERSEDES) for one in chain}:
            raise self._circle()

    async def _chain(self, namespace: str, id: str) -> list[Record]:
        """A record, what it supersedes, what that supersedes, and so on, each once."""
        return await self._along(namespace, id, SUPERSEDES, _LONGEST_CHAIN)

    async def _along(self, namespace: str, id: str, key: str, most: int) -> list[Record]:
        """A record, the one that its ``key`` names, the one that this names, and so on."""
        chain: dict[str, Record] = {}
        after = id
        while after and after not in chain and len(chain) < most:
            point = self._spec.point_of(namespace, after)
            found = await self._store.get(self._collection, namespace, [point])
            if point not in found:
                break
            chain[after] = found[point]
            after = found[point].payload.get(key, "")
        return list(chain.values())

    async def _break_circle(self, namespace: str, id: str) -> bool:
        """Let a record supersede nothing if the chain from it leads back to it.

        Of several writers that close a circle together the last one sees it whole.
        """

        async def attempt() -> bool:
            chain = await self._chain(namespace, id)
            if not chain or chain[-1].payload.get(SUPERSEDES) != id:
                return False
            record = chain[0]
            update_time = max(self._time.now(), record.payload["update_time"])
            changed: Mapping[str, Any] = {SUPERSEDES: "", "update_time": update_time}
            await update_as_read(self._store, self._collection, record, changed, "revision")
            return True

        return await compare_and_set(self._spec.kind, id, attempt)

    def _circle(self) -> RequestInvalidError:
        return invalid(
            f"{self._spec.kind}.supersedes",
            "supersedes.circle",
            "the named record already supersedes this one, directly or indirectly; name another",
        )

    # --- reading ------------------------------------------------------------------------------

    async def read(self, namespace: str, id: str) -> list[Relative[T]]:
        """What it supersedes and what supersedes it, the nearest first."""
        return [
            *await self._relatives(namespace, id, Relation.SUPERSEDED, SUPERSEDES),
            *await self._relatives(namespace, id, Relation.SUCCESSOR, SUPERSEDED_BY),
        ]

    async def _relatives(
        self, namespace: str, id: str, relation: Relation, key: str
    ) -> list[Relative[T]]:
        """Those that a key leads to, step by step."""
        chain = (await self._along(namespace, id, key, MOST_OF_A_RELATION + 1))[1:]
        return [Relative(relation, self._spec.read(one), at) for at, one in enumerate(chain, 1)]


def _has(record: Record, mark: Payload) -> bool:
    """Whether a record has a mark. Without any it is not superseded."""
    has = {SUPERSEDED: False, SUPERSEDED_BY: "", SUPERSEDED_TIME: None, **record.payload}
    return all(has[key] == value for key, value in mark.items())
