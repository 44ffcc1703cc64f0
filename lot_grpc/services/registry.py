"""The registry of kinds of record.

The package of a kind declares a ``ResourceSpec`` in its ``spec.py``; ``services.resources`` lists
the specs. Whatever works on all kinds (collections, change feed, export and import, retention,
clearing, reindexing, seeding, expiry) takes a ``Registry`` and knows no kind by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lot_grpc.kernel.create import SIGNATURE
from lot_grpc.ports import (
    CollectionSpec,
    Payload,
    Record,
)
from lot_grpc.services.records.changes import STAMP_KEYS
from lot_grpc.services.records.collections import (
    META,
    REPLICAS,
    REQUESTS,
    TOMBSTONES,
)
from lot_grpc.services.resource_spec import (
    CHANGE_INDEXES,
    ExportRule,
    ResourceCollection,
    ResourceSpec,
    indexes,
)


@dataclass(frozen=True, slots=True)
class ExportedCollection:
    """A collection as exports and imports see it."""

    resource: ResourceSpec
    source: ResourceCollection
    rule: ExportRule

    @property
    def resource_kind(self) -> str:
        """The kind under which it is exported."""
        return self.resource.kind

    @property
    def collection(self) -> str:
        """Its name."""
        return self.source.name

    @property
    def is_thing(self) -> bool:
        """Whether its records are those of the kind, and not parts of them."""
        return self.source is self.resource.collection

    def read(self, record: Record) -> Any:
        """Decode a record. Raises if it is incomplete."""
        return (self.source.read or self.resource.read)(record)

    def point(self, namespace: str, payload: Payload) -> str:
        """The point of a payload."""
        if self.rule.point is not None:
            return self.rule.point(namespace, payload)
        id_key = self.resource.id_key
        return self.resource.point_of(namespace, payload[id_key] if id_key else "")

    def name(self, record: Record) -> str:
        """The id of a record, as shown to a caller."""
        keys = self.rule.id_keys or (self.resource.id_key,)
        named = [str(record.payload[key]) for key in keys if key in record.payload]
        return "/".join(named) or record.namespace

    def as_done(self, payload: Payload) -> Payload:
        """The payload as exported and compared."""
        rule = self.rule
        moved = {
            key: value
            for key, value in payload.items()
            if key not in STAMP_KEYS and key != SIGNATURE and key not in rule.dropped
        }
        moved.update({key: value for key, value in rule.done.items() if key in payload})
        moved.update({key: moved[other] for key, other in rule.reset.items() if key in moved})
        return moved


@dataclass(frozen=True, slots=True)
class Metered:
    """A collection that counts against quotas.

    Attributes:
        counted: Whether its records count, and not only their bytes.
        derived: As declared by the collection.
    """

    counted: bool
    derived: bool


BOOKKEEPING: Final[tuple[ResourceCollection, ...]] = (
    ResourceCollection(
        name=META,
        description="What the store was made with; the latest clear of a namespace; "
        "when a namespace was last distilled.",
        key="which of these, and the namespace",
        writer="services",
        indexes=indexes(integer="turn", boolean="clearing"),
        of_store=True,
    ),
    ResourceCollection(
        name=REPLICAS,
        description="A process that writes to the store, and how far its changes are complete.",
        key="`writer_id`",
        writer="services/changes",
        of_store=True,
    ),
    ResourceCollection(
        name=REQUESTS,
        description="What a request ID did; the claim of a pattern on its content; "
        "a change of lineage in progress.",
        key="method and request ID; hash of the content; random",
        writer="kernel, services",
        indexes=indexes(keyword="kind pattern_id", boolean="done"),
        expires=True,
    ),
    ResourceCollection(
        name=TOMBSTONES,
        description="A delete, or a clear of a kind or a namespace.",
        key="`resource_kind`, `id`",
        writer="kernel",
        indexes=CHANGE_INDEXES | indexes(boolean="done"),
    ),
)
"""Collections of no kind. They are not exported: request IDs are valid in one store only."""


class Registry:
    """The kinds of record, in the order of the contract, and what is derived from them.

    Attributes:
        resources: The kinds by name.
        collections: All collections by name, including those of no kind.
        watched: The kinds in the change feed, in the order of a watch from the start.
        watched_by_default: Those that a watch need not name.
        watched_collections: The watched kinds by collection.
        tracked: The collections whose records carry the number of their last change.
        exported: The exported collections by name, in order: parents before their parts.
        searched: The vectors and the text by which collections are searched.
        embedded: The collections with dense vectors.
        counted_as: The kind under which a reindex counts a collection.
        expiring: The names of the collections whose records expire.
        retained: The kinds that a policy bounds.
        seeded: The kinds in knowledge packs.
        counted: The kinds whose outcomes are counted.
        metered: The collections that count against quotas.
    """

    def __init__(
        self, resources: Iterable[ResourceSpec], others: Iterable[ResourceCollection] = BOOKKEEPING
    ) -> None:
        """``others`` are collections that belong to no kind."""
        self.resources: Mapping[str, ResourceSpec] = {one.kind: one for one in resources}
        specs, others = self.resources.values(), tuple(others)
        own = [one for spec in specs for one in spec.collections]
        self.collections = {one.name: one for one in (*others, *own)}
        if len(self.collections) != len(others) + len(own):
            raise ValueError("two kinds declare a collection of one name")
        self.resource_collections: Sequence[str] = [one.name for one in own]
        self.bookkeeping: Sequence[str] = [one.name for one in others if not one.of_store]
        self.watched = {one.kind: one for one in specs if one.watch is not None}
        self.watched_by_default = tuple(
            kind
            for kind, one in self.watched.items()
            if one.watch is not None and not one.watch.only_if_named
        )
        self.watched_collections = {one.collection.name: one for one in self.watched.values()}
        self.tracked = frozenset({*self.watched_collections, TOMBSTONES})
        self.exported = {one.collection: one for one in _in_order(specs)}
        self.searched = {one.name: one.search_fields for one in own if one.text_of is not None}
        self.embedded = {one.name: one for one in own if one.dense}
        self.counted_as = {
            one.name: one.counted_as or spec.kind for spec in specs for one in spec.collections
        }
        self.expiring = tuple(one.name for one in self.collections.values() if one.expires)
        self.retained = tuple(one for one in specs if one.retention is not None)
        self.seeded = tuple(one for one in specs if one.seed is not None)
        self.counted = {one.kind: one for one in specs if one.counted}
        self.metered = {
            one.name: Metered(one is spec.collection, one.derived)
            for spec in specs
            if spec.metered
            for one in spec.collections
        }

    def collection_specs(self, dimensions: int) -> list[CollectionSpec]:
        """The schemas of all collections, for an embedding model of the given dimensions."""
        return [one.spec(dimensions) for one in self.collections.values()]


def _in_order(specs: Iterable[ResourceSpec]) -> list[ExportedCollection]:
    """The exported collections: as listed, but parents before their parts."""
    left = [
        ExportedCollection(spec, one, one.export)
        for spec in specs
        for one in spec.collections
        if one.export is not None
    ]
    left.sort(key=lambda one: one.rule.last)
    done: list[ExportedCollection] = []
    while left:
        waiting = {one.collection for one in left}
        first = next((one for one in left if not waiting & {*one.rule.parents}), None)
        if first is None:
            raise ValueError(f"collections that belong to each other: {sorted(waiting)}")
        left.remove(first)
        done.append(first)
    return done
