"""Stores the contents of knowledge packs.

Every entry has a fixed id and is written insert-only, so seeding may be repeated at any time, by
several processes, and after a crash between any two writes: existing records stay as they are. A
deleted one left a tombstone and is stored again only on request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from lot_grpc.domain.errors import invalid
from lot_grpc.domain.knowledge import PACK_LABEL, KnowledgePack
from lot_grpc.domain.origin import Origin, OriginKind, review_of_new
from lot_grpc.knowledge import built_in_packs
from lot_grpc.ports import Record, Vector
from lot_grpc.services.operations import ResourcesByKind
from lot_grpc.services.records.origin import origin_of, review_payload
from lot_grpc.services.resource_spec import ResourceSpec, SeedRule
from lot_grpc.services.runtime import Runtime

_AT_ONCE: Final = 256
"""Things that are embedded and written together."""


@dataclass(frozen=True, slots=True)
class Seeds:
    """What to seed: ``packs`` by name; empty: all."""

    packs: tuple[str, ...] = ()
    dry_run: bool = False
    restore_deleted: bool = False


@dataclass(frozen=True, slots=True)
class SeededPack:
    """A pack, and how many of its entries were stored, existed, or stay deleted."""

    name: str
    description: str
    created: int
    existing: int
    deleted: int


@dataclass(frozen=True, slots=True)
class Seeded:
    """The result. ``created`` counts by kind and includes every kind."""

    packs: tuple[SeededPack, ...]
    created: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Seed:
    """One entry of a pack."""

    pack: str
    resource: ResourceSpec
    rule: SeedRule
    id: str
    point: str
    content: Any


class KnowledgeSeeder:
    """Stores knowledge packs."""

    def __init__(self, runtime: Runtime, resources: ResourcesByKind) -> None:
        self._store = runtime.store
        self._indexer = runtime.indexer
        self._time = runtime.time
        self._tombstones = runtime.tombstones
        self._resources = resources
        self._policies = runtime.policies
        packs = runtime.settings.packs
        self._packs = {pack.name: pack for pack in (built_in_packs() if packs is None else packs)}

    async def seed(self, namespace: str, seeds: Seeds) -> Seeded:
        """Store missing entries; return what was done. A dry run stores nothing.

        Raises RequestInvalidError for an unknown pack.
        """
        packs = self._chosen(seeds.packs)
        things = [one for pack in packs for one in self._seeds(namespace, pack)]
        there = await self._there(namespace, things)
        missing = [one for one in things if one.point not in there]
        gone = set() if seeds.restore_deleted else await self._deleted(namespace, missing)
        fresh = [one for one in missing if one.point not in gone]
        made = {one.point for one in fresh}
        if not seeds.dry_run:
            made = set()
            for start in range(0, len(fresh), _AT_ONCE):
                made |= await self._write(namespace, fresh[start : start + _AT_ONCE])
        return self._summary(packs, things, made, gone)

    def _chosen(self, names: Sequence[str]) -> list[KnowledgePack]:
        for number, name in enumerate(names):
            if name not in self._packs:
                raise invalid(
                    f"packs[{number}]",
                    "packs.known",
                    f"no knowledge pack {name!r}; this server has {', '.join(self._packs)}",
                )
        return [self._packs[name] for name in names or self._packs]

    def _seeds(self, namespace: str, pack: KnowledgePack) -> list[_Seed]:
        return [
            _Seed(pack.name, resource, rule, own, resource.point_of(namespace, own), content)
            for resource in self._resources.registry.seeded
            if (rule := resource.seed) is not None
            for entry, content in rule.entries(pack).items()
            for own in [pack.id_of(entry)]
        ]

    async def _there(self, namespace: str, things: Sequence[_Seed]) -> set[str]:
        found: set[str] = set()
        for collection, seeds in _by_collection(things).items():
            found |= set(await self._store.get(collection, namespace, [one.point for one in seeds]))
        return found

    async def _deleted(self, namespace: str, things: Sequence[_Seed]) -> set[str]:
        """The points of deleted entries."""
        named = {(one.resource.kind, one.id): one.point for one in things}
        return {named[one] for one in await self._tombstones.those_of(namespace, list(named))}

    async def _write(self, namespace: str, things: Sequence[_Seed]) -> set[str]:
        """Embed all in one call and write each kind in one; return the points of new ones."""
        review_origins = await self._policies.review_origins(namespace)
        indexed = await self._indexer.vectors([one.rule.text_of(one.content) for one in things])
        vectors = {one.point: made.vectors for one, made in zip(things, indexed, strict=True)}
        made: set[str] = set()
        for seeds in _by_collection(things).values():
            records = [self._record(namespace, one, vectors[one.point]) for one in seeds]
            for record in records:
                review = review_of_new(origin_of(record.payload), review_origins)
                record.payload.update(review_payload(review))
            made |= await self._resources.of(seeds[0].resource.kind).insert(namespace, records)
        return made

    def _record(self, namespace: str, seed: _Seed, vectors: Mapping[str, Vector]) -> Record:
        labelled = {**seed.content.labels, PACK_LABEL: seed.pack}
        origin = Origin(OriginKind.IMPORT, seed.pack)
        content = replace(seed.content, labels=labelled, origin=origin)
        now, key = self._time.now(), self._time.sort_key()
        return seed.rule.record(namespace, seed.id, content, now, key, vectors)

    def _summary(
        self,
        packs: Sequence[KnowledgePack],
        things: Sequence[_Seed],
        made: set[str],
        gone: set[str],
    ) -> Seeded:
        created = Counter(one.pack for one in things if one.point in made)
        deleted = Counter(one.pack for one in things if one.point in gone)
        by_kind = Counter(one.resource.kind for one in things if one.point in made)
        return Seeded(
            tuple(
                SeededPack(
                    pack.name,
                    pack.description,
                    created[pack.name],
                    pack.size - created[pack.name] - deleted[pack.name],
                    deleted[pack.name],
                )
                for pack in packs
            ),
            {one.kind: by_kind[one.kind] for one in self._resources.registry.seeded},
        )


def _by_collection(seeds: Sequence[_Seed]) -> dict[str, list[_Seed]]:
    by_collection: dict[str, list[_Seed]] = {}
    for seed in seeds:
        by_collection.setdefault(seed.resource.collection.name, []).append(seed)
    return by_collection
