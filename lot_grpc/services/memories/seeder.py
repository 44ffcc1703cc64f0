"""Storing the knowledge of packs.

Every thing has a fixed id and is written insert-only, so that seeding may be done again at any
time, by several processes, and after a death between any two writes: what is there stays as it is.
What somebody deleted left a tombstone and stays away, unless it is asked back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from lot_grpc.domain.error_solution import ErrorSolution, ErrorSolutionContent
from lot_grpc.domain.error_solution import search_text as error_solution_text
from lot_grpc.domain.errors import invalid
from lot_grpc.domain.knowledge import PACK_LABEL, KnowledgePack
from lot_grpc.domain.memory import Memory, MemoryContent
from lot_grpc.domain.memory import search_text as memory_text
from lot_grpc.domain.outcomes import Outcomes
from lot_grpc.domain.pattern import Pattern, PatternContent
from lot_grpc.domain.pattern import search_text as pattern_text
from lot_grpc.domain.search_text import SearchText
from lot_grpc.kernel.tombstones import Tombstones
from lot_grpc.ports import AnyOf, Condition, Range, Record, Vector, VectorStore
from lot_grpc.services.indexer import Indexer
from lot_grpc.services.memories import drafts, error_solutions
from lot_grpc.services.patterns import patterns
from lot_grpc.services.patterns.lineage import Lineage
from lot_grpc.services.records.collections import (
    ERROR_SOLUTIONS,
    MEMORIES,
    OUTCOMES,
    PATTERNS,
    SORT_KEY,
)
from lot_grpc.services.records.error_solutions import error_solution_point, error_solution_record
from lot_grpc.services.records.memories import memory_point, memory_record
from lot_grpc.services.records.patterns import pattern_point, pattern_record
from lot_grpc.services.time_source import TimeSource

_AT_ONCE: Final = 256
"""Things that are embedded and written together."""

_COLLECTIONS: Final = (PATTERNS, MEMORIES, ERROR_SOLUTIONS)
_RESOURCE_KINDS: Final = {
    PATTERNS: patterns.RESOURCE_KIND,
    MEMORIES: drafts.RESOURCE_KIND,
    ERROR_SOLUTIONS: error_solutions.RESOURCE_KIND,
}
_POINTS: Final[Mapping[str, Callable[[str, str], str]]] = {
    PATTERNS: pattern_point,
    MEMORIES: memory_point,
    ERROR_SOLUTIONS: error_solution_point,
}


@dataclass(frozen=True, slots=True)
class Seeds:
    """What to seed: ``packs`` by name, () for all."""

    packs: tuple[str, ...] = ()
    dry_run: bool = False
    restore_deleted: bool = False


@dataclass(frozen=True, slots=True)
class SeededGroup:
    """A pack, and how many of its things were stored, were there, or stay deleted."""

    name: str
    description: str
    created: int
    existing: int
    deleted: int


@dataclass(frozen=True, slots=True)
class Seeded:
    """What became of it. ``created`` counts by kind, with every kind in it."""

    groups: tuple[SeededGroup, ...]
    created: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Thing:
    """One entry of a pack."""

    pack: str
    collection: str
    id: str
    point: str
    content: PatternContent | MemoryContent | ErrorSolutionContent

    @property
    def text(self) -> SearchText:
        """What it is found by."""
        content = self.content
        if isinstance(content, PatternContent):
            return pattern_text(content)
        if isinstance(content, MemoryContent):
            return memory_text(content)
        return error_solution_text(content)


class KnowledgeSeeder:
    """Stores packs of knowledge."""

    def __init__(
        self,
        store: VectorStore,
        indexer: Indexer,
        time_source: TimeSource,
        tombstones: Tombstones,
        packs: Sequence[KnowledgePack],
    ) -> None:
        self._store = store
        self._indexer = indexer
        self._time = time_source
        self._lineage = Lineage(store, time_source)
        self._tombstones = tombstones
        self._packs = {pack.name: pack for pack in packs}

    async def seed(self, namespace: str, seeds: Seeds) -> Seeded:
        """Store what is not there; say what there was to do. A dry run stores nothing.

        Raises RequestInvalidError for a pack that is not known.
        """
        packs = self._chosen(seeds.packs)
        things = [one for pack in packs for one in _things(namespace, pack)]
        there = await self._there(namespace, things)
        missing = [one for one in things if one.point not in there]
        gone = set() if seeds.restore_deleted else await self._deleted(namespace, missing)
        fresh = [one for one in missing if one.point not in gone]
        made = {one.point for one in fresh}
        if not seeds.dry_run:
            made = set()
            for start in range(0, len(fresh), _AT_ONCE):
                made |= await self._write(namespace, fresh[start : start + _AT_ONCE])
        return _summary(packs, things, made, gone)

    def _chosen(self, names: Sequence[str]) -> list[KnowledgePack]:
        for number, name in enumerate(names):
            if name not in self._packs:
                raise invalid(
                    f"packs[{number}]",
                    "packs.known",
                    f"no knowledge pack {name!r}; this server has {', '.join(self._packs)}",
                )
        return [self._packs[name] for name in names or self._packs]

    async def _there(self, namespace: str, things: Sequence[_Thing]) -> set[str]:
        found: set[str] = set()
        for collection in _COLLECTIONS:
            points = [one.point for one in things if one.collection == collection]
            if points:
                found |= set(await self._store.get(collection, namespace, points))
        return found

    async def _deleted(self, namespace: str, things: Sequence[_Thing]) -> set[str]:
        """Points of those that somebody deleted."""
        named = {(_RESOURCE_KINDS[one.collection], one.id): one.point for one in things}
        return {named[one] for one in await self._tombstones.those_of(namespace, list(named))}

    async def _write(self, namespace: str, things: Sequence[_Thing]) -> set[str]:
        """Embed them in one call and write each kind in one; the points of those that were new."""
        indexed = await self._indexer.vectors([one.text for one in things])
        records: dict[str, list[Record]] = {name: [] for name in _COLLECTIONS}
        for thing, one in zip(things, indexed, strict=True):
            records[thing.collection].append(self._record(namespace, thing, one.vectors))
        made: set[str] = set()
        for collection, batch in records.items():
            if not batch:
                continue
            if collection == PATTERNS:
                inserted = await self._lineage.insert(batch)
            else:
                inserted = await self._store.insert(collection, batch)
            made |= inserted
            if collection == PATTERNS and inserted:
                fresh = [record for record in batch if record.id in inserted]
                await self._drop_older_outcomes(namespace, fresh)
        return made

    async def _drop_older_outcomes(self, namespace: str, fresh: Sequence[Record]) -> None:
        """Forget what was recorded of expired patterns whose ids were just taken again."""
        theirs: list[Condition] = [
            AnyOf("pattern_id", tuple(record.payload["pattern_id"] for record in fresh)),
            Range(SORT_KEY, lt=min(record.payload[SORT_KEY] for record in fresh)),
        ]
        await self._store.delete(OUTCOMES, namespace, theirs)

    def _record(self, namespace: str, thing: _Thing, vectors: Mapping[str, Vector]) -> Record:
        now, key = self._time.now(), self._time.sort_key()
        labelled = {**thing.content.labels, PACK_LABEL: thing.pack}
        content = replace(thing.content, labels=labelled)
        if isinstance(content, PatternContent):
            pattern = Pattern(namespace, thing.id, content, Outcomes(), 1, now, now)
            return pattern_record(pattern, key, vectors)
        if isinstance(content, MemoryContent):
            return memory_record(Memory(namespace, thing.id, content, 1, now, now), key, vectors)
        rate = Outcomes(success_rate=content.first_success_rate)
        solution = ErrorSolution(
            namespace, thing.id, content, content.error.signature, rate, 1, now, now
        )
        return error_solution_record(solution, key, vectors)


def _things(namespace: str, pack: KnowledgePack) -> list[_Thing]:
    contents: tuple[
        tuple[str, Mapping[str, PatternContent | MemoryContent | ErrorSolutionContent]], ...
    ] = (
        (PATTERNS, pack.patterns),
        (MEMORIES, pack.memories),
        (ERROR_SOLUTIONS, pack.error_solutions),
    )
    return [
        _Thing(pack.name, collection, given, _POINTS[collection](namespace, given), content)
        for collection, entries in contents
        for entry, content in entries.items()
        for given in [pack.id_of(entry)]
    ]


def _summary(
    packs: Sequence[KnowledgePack], things: Sequence[_Thing], made: set[str], gone: set[str]
) -> Seeded:
    created = Counter(one.pack for one in things if one.point in made)
    deleted = Counter(one.pack for one in things if one.point in gone)
    return Seeded(
        tuple(
            SeededGroup(
                pack.name,
                pack.description,
                created[pack.name],
                pack.size - created[pack.name] - deleted[pack.name],
                deleted[pack.name],
            )
            for pack in packs
        ),
        {
            _RESOURCE_KINDS[collection]: sum(
                one.point in made for one in things if one.collection == collection
            )
            for collection in _COLLECTIONS
        },
    )
