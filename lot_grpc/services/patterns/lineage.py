"""Which pattern supersedes which, and what a pattern was made from.

If N supersedes X, N's content says so, and the mark on X is derived from it. Whoever writes,
changes or deletes such an N first records a note, then writes N, then sets X's mark to the newest
pattern that names X by a compare-and-set of X's ``stats_revision``, and then deletes the note. From
a note that a dead process left, the mark is derived again, so it is never wrong for long. No etag
changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from lot_grpc.domain.errors import (
    PatternNotFoundError,
    RequestInvalidError,
    invalid,
)
from lot_grpc.domain.ids import new_id, point_id
from lot_grpc.domain.pattern import Pattern
from lot_grpc.kernel.compare_and_set import compare_and_set, update_as_read
from lot_grpc.kernel.intents import recover
from lot_grpc.ports import AnyOf, Equals, IdIn, Order, Record, VectorStore
from lot_grpc.services.records.collections import PATTERNS, REQUESTS, SORT_KEY
from lot_grpc.services.records.counters import STATS_REVISION
from lot_grpc.services.records.patterns import (
    SUPERSEDED,
    SUPERSEDED_BY,
    pattern_from_record,
    pattern_point,
)
from lot_grpc.services.scanning import scan
from lot_grpc.services.time_source import TimeSource

NOTE_KIND = "lineage"
_LONGEST_CHAIN = 1000
MOST_OF_A_RELATION = 100


class Relation(StrEnum):
    """How another pattern is related to a given one."""

    SUPERSEDED = "superseded"
    SUCCESSOR = "successor"
    GROUP = "group"
    MEMBER = "member"


@dataclass(frozen=True, slots=True)
class Relative:
    """A related pattern, ``distance`` steps away."""

    relation: Relation
    pattern: Pattern
    distance: int


@dataclass(frozen=True, slots=True)
class Note:
    """That a pattern's ``supersedes`` is about to be written, or to go, and whom it concerns."""

    namespace: str
    point: str
    pattern_id: str
    superseded: tuple[str, ...]


class Lineage:
    """The lineage of all patterns."""

    def __init__(self, store: VectorStore, time_source: TimeSource) -> None:
        self._store = store
        self._time = time_source

    # --- superseding --------------------------------------------------------------------------

    async def begin(self, namespace: str, pattern_id: str, new: str, old: str = "") -> Note:
        """Check what a pattern is about to supersede (``new``, "" for none), and write it down.

        ``old`` is what it superseded until now. Raises PatternNotFoundError, RequestInvalidError.
        """
        if new:
            await self._check(namespace, pattern_id, new)
        note = Note(
            namespace,
            point_id(namespace, NOTE_KIND, new_id("n")),
            pattern_id,
            tuple(one for one in (new, old) if one),
        )
        payload = {
            "kind": NOTE_KIND,
            "successor_id": pattern_id,
            "superseded": list(note.superseded),
            "create_time": self._time.now(),
        }
        await self._store.insert(REQUESTS, [Record(note.point, namespace, payload)])
        return note

    async def follow(self, note: Note) -> None:
        """Make the marks follow, once the pattern is written or gone.

        Raises RequestInvalidError if another process made it a circle at the same time; then the
        pattern no longer supersedes. Raises ContentionError.
        """
        circle = await self._break_circle(note)
        for superseded in note.superseded:
            await self.settle(note.namespace, superseded)
        await self.drop(note)
        if circle:
            raise _circle()

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

        notes = Equals("kind", NOTE_KIND)
        return await recover(self._store, REQUESTS, notes, follow, before=before)

    async def insert(self, records: Sequence[Record]) -> set[str]:
        """Insert patterns of one namespace, marked as superseded where others name their ids.

        Those took the ids of deleted patterns. Returns the points of the inserted.
        """
        for record, successor in await self._with_successors(records):
            if successor:
                record.payload.update({SUPERSEDED: True, SUPERSEDED_BY: successor})
        inserted = await self._store.insert(PATTERNS, records)
        await self.settle_all([record for record in records if record.id in inserted])
        return inserted

    async def settle_all(self, records: Sequence[Record]) -> None:
        """Settle patterns of one namespace that were just written with these records."""
        for record, successor in await self._with_successors(records):
            if successor != record.payload.get(SUPERSEDED_BY, ""):
                await self.settle(record.namespace, record.payload["pattern_id"])

    async def _with_successors(self, records: Sequence[Record]) -> list[tuple[Record, str]]:
        """Each record, and the newest pattern that supersedes it; all are of one namespace."""
        if not records:
            return []
        ids = tuple(str(record.payload["pattern_id"]) for record in records)
        newest: dict[str, Record] = {}
        async for one in scan(
            self._store,
            PATTERNS,
            records[0].namespace,
            [AnyOf("supersedes", ids)],
            payload=("pattern_id", "supersedes", SORT_KEY),
        ):
            superseded = one.payload["supersedes"]
            if superseded not in newest or _born(one) > _born(newest[superseded]):
                newest[superseded] = one
        return [
            (record, newest[one].payload["pattern_id"] if one in newest else "")
            for record, one in zip(records, ids, strict=True)
        ]

    async def settle(self, namespace: str, pattern_id: str) -> None:
        """Set a pattern's mark to the newest one that supersedes it. Raises ContentionError."""
        point = pattern_point(namespace, pattern_id)

        async def attempt() -> None:
            record = (await self._store.get(PATTERNS, namespace, [point])).get(point)
            if record is None:
                return
            # Read after the record: who supersedes it since settles it since, too.
            newest = await self._store.scroll(
                PATTERNS,
                namespace,
                [Equals("supersedes", pattern_id)],
                limit=1,
                order=Order(SORT_KEY, descending=True),
                payload=("pattern_id",),
            )
            successor = str(newest[0].payload["pattern_id"]) if newest else ""
            if successor != record.payload.get(SUPERSEDED_BY, ""):
                mark = {SUPERSEDED: bool(successor), SUPERSEDED_BY: successor}
                await update_as_read(self._store, PATTERNS, record, mark, STATS_REVISION)

        await compare_and_set("pattern", pattern_id, attempt)

    async def _check(self, namespace: str, pattern_id: str, superseded: str) -> None:
        if superseded == pattern_id:
            raise invalid(
                "pattern.supersedes",
                "supersedes.itself",
                "a pattern cannot supersede itself; name the one it replaces",
            )
        chain = await self._chain(namespace, superseded)
        if not chain:
            raise PatternNotFoundError(
                namespace, superseded, "supersedes must name an existing pattern"
            )
        if pattern_id in {one.content.supersedes for one in chain}:
            raise _circle()

    async def _chain(self, namespace: str, pattern_id: str) -> list[Pattern]:
        """A pattern, what it supersedes, what that supersedes, and so on, each once."""
        chain: dict[str, Pattern] = {}
        while pattern_id and pattern_id not in chain and len(chain) < _LONGEST_CHAIN:
            found = await self._get(namespace, [pattern_id])
            if pattern_id not in found:
                break
            chain[pattern_id] = found[pattern_id]
            pattern_id = found[pattern_id].content.supersedes
        return list(chain.values())

    async def _break_circle(self, note: Note) -> bool:
        """Let a pattern supersede nothing if the chain from it leads back to it.

        Of several writers that close a circle together the last one sees it whole.
        """
        point = pattern_point(note.namespace, note.pattern_id)

        async def attempt() -> bool:
            record = (await self._store.get(PATTERNS, note.namespace, [point])).get(point)
            chain = await self._chain(note.namespace, note.pattern_id)
            if record is None or not chain or chain[-1].content.supersedes != note.pattern_id:
                return False
            update_time = max(self._time.now(), record.payload["update_time"])
            changed = {"supersedes": "", "update_time": update_time}
            await update_as_read(self._store, PATTERNS, record, changed, "revision")
            return True

        return await compare_and_set("pattern", note.pattern_id, attempt)

    # --- reading ------------------------------------------------------------------------------

    async def read(self, namespace: str, pattern: Pattern) -> list[Relative]:
        """The ancestors and descendants of a pattern, the nearest first."""
        older = (await self._chain(namespace, pattern.pattern_id))[1:]
        relatives = [
            *_steps(Relation.SUPERSEDED, older),
            *_steps(Relation.SUCCESSOR, await self._upwards(namespace, pattern, successors=True)),
            *_steps(Relation.GROUP, await self._upwards(namespace, pattern, successors=False)),
        ]
        where = [Equals("parent_pattern_id", pattern.pattern_id)]
        members = await self._store.scroll(
            PATTERNS, namespace, where, limit=MOST_OF_A_RELATION, order=Order(SORT_KEY)
        )
        found = {one.pattern_id: one for one in map(pattern_from_record, members)}
        sources = pattern.content.source_pattern_ids[:MOST_OF_A_RELATION]
        found |= await self._get(namespace, [one for one in sources if one not in found])
        found.pop(pattern.pattern_id, None)
        inside = [
            Relative(Relation.MEMBER, one, 1) for one in list(found.values())[:MOST_OF_A_RELATION]
        ]
        return [*relatives, *inside]

    async def _upwards(
        self, namespace: str, pattern: Pattern, *, successors: bool
    ) -> list[Pattern]:
        """The newest successor and its own, or the group and its own, each once."""
        chain = {pattern.pattern_id: pattern}
        one = pattern
        while len(chain) <= MOST_OF_A_RELATION:
            above = one.superseded_by if successors else one.content.parent_pattern_id
            if not above or above in chain:
                break
            found = await self._get(namespace, [above])
            if above not in found:
                break
            one = chain[above] = found[above]
        return list(chain.values())[1:]

    async def _get(self, namespace: str, pattern_ids: Sequence[str]) -> dict[str, Pattern]:
        points = {pattern_point(namespace, pattern_id): pattern_id for pattern_id in pattern_ids}
        found = await self._store.get(PATTERNS, namespace, list(points)) if points else {}
        return {
            pattern_id: pattern_from_record(found[point])
            for point, pattern_id in points.items()
            if point in found
        }


def _born(record: Record) -> int:
    return int(record.payload[SORT_KEY])


def _steps(relation: Relation, chain: Sequence[Pattern]) -> list[Relative]:
    return [
        Relative(relation, one, number) for number, one in enumerate(chain[:MOST_OF_A_RELATION], 1)
    ]


def _circle() -> RequestInvalidError:
    return invalid(
        "pattern.supersedes",
        "supersedes.circle",
        "the named pattern already supersedes this one, directly or indirectly; name another",
    )
