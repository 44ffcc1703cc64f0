"""What a kind of record is, said once for each: the words in which a ``spec.py`` says it.

What a kind does with state of its own, such as finishing a delete, is no part of its spec: its
``module.py`` hands that over as ``Resources`` (``services.operations``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from lot_grpc.domain.errors import NotFoundError
from lot_grpc.domain.knowledge import KnowledgePack
from lot_grpc.domain.policy import NamespacePolicy
from lot_grpc.domain.search_text import SearchText
from lot_grpc.kernel.create import Kind
from lot_grpc.ports import (
    CollectionSpec,
    Condition,
    Index,
    Payload,
    Range,
    Record,
    Vector,
    VectorStore,
)
from lot_grpc.services.recall.search_fields import SearchFields
from lot_grpc.services.records.collections import (
    CHANGE_SEQ,
    SORT_KEY,
    WRITER_ID,
)

Place: TypeAlias = tuple[str, str]
"""A collection, and the point in it."""
Rank: TypeAlias = Callable[[Payload], tuple[Any, ...]]
"""What records are ordered by; the larger, the better."""


def indexes(
    *, keyword: str = "", integer: str = "", floating: str = "", boolean: str = ""
) -> dict[str, Index]:
    """Payload keys by the kind of their index, separated by blanks."""
    return {
        **dict.fromkeys(keyword.split(), Index.KEYWORD),
        **dict.fromkeys(integer.split(), Index.INTEGER),
        **dict.fromkeys(floating.split(), Index.FLOAT),
        **dict.fromkeys(boolean.split(), Index.BOOL),
    }


COMMON_INDEXES: Final = indexes(keyword="tags label_pairs", integer=f"create_time {SORT_KEY}")
"""Of a kind whose records have tags, labels and a time of creation, and are listed."""

CHANGE_INDEXES: Final = indexes(keyword=WRITER_ID, integer=CHANGE_SEQ)
"""Of what the change feed reads."""


@dataclass(frozen=True, slots=True)
class RecordSet:
    """Records of a collection. ``where`` empty: all of the namespace."""

    collection: str
    where: tuple[Condition, ...] = ()


InnerReader: TypeAlias = Callable[[VectorStore, Record, str], AsyncIterator[tuple[Record, str]]]
"""Given a store, a record, and a name: what belongs to it, in order, from behind the name on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRule:
    """How the records of a collection are exported and imported.

    A record is exported as if all unfinished work on it were done, and imported so.

    Attributes:
        point: Where a payload of a namespace lies. None: where the kind puts the id in it.
        id_keys: What names a record to a caller. Empty: the kind's ``id_key``.
        dropped: Keys that are of this store alone and stay behind.
        done: What keys say once the work is done, where a record has them.
        reset: Keys that take the value of another key, where a record has them.
        parents: The collections of what its records belong to. Empty: they stand by themselves.
        parent: Where the record lies that a payload belongs to.
        birth: The parent's sort key, where the payload knows it; else it is looked up.
        half_done: Whether a record says nothing yet that is worth exporting.
        inner: Reads the records of a parent, where they have no sort key of their own.
        last: Comes behind all other collections.
    """

    point: Callable[[str, Payload], str] | None = None
    id_keys: tuple[str, ...] = ()
    dropped: frozenset[str] = frozenset()
    done: Mapping[str, Any] = field(default_factory=dict)
    reset: Mapping[str, str] = field(default_factory=dict)
    parents: tuple[str, ...] = ()
    parent: Callable[[str, Payload], Place] | None = None
    birth: Callable[[Payload], int] | None = None
    half_done: Callable[[Payload], bool] = lambda payload: False
    inner: InnerReader | None = None
    last: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceCollection:
    """A collection of the store.

    Attributes:
        name: Its name in the store.
        description: What one record is, in a sentence (for `docs/data-model.md`, as the next two).
        key: What the point of a record is derived from. Empty: the kind's ``id_key``.
        writer: The package below ``lot_grpc`` that writes it. Empty: that of the kind.
        indexes: The payload keys that conditions, orders and facets name.
        dense: Its vectors of a text each; the first is the one that every record has.
        multi: Its vectors of several passages each.
        sparse: Its vectors of terms.
        text_of: The text that a record is found by; the indexer makes its vectors.
        query_key: Else the key of a text that is embedded as a query.
        read: What a record says, which raises for one that is not whole. None: what the kind reads.
        export: How it is exported. None: it is not.
        counted_as: The kind that a reindex reports it as. Empty: its own.
        expires: Whether its records lapse at their ``EXPIRES_KEY`` and are swept then.
        of_store: Whether it belongs to the store as a whole, and to no namespace.
    """

    name: str
    description: str
    key: str = ""
    writer: str = ""
    indexes: Mapping[str, Index] = field(default_factory=dict)
    dense: tuple[str, ...] = ()
    multi: tuple[str, ...] = ()
    sparse: tuple[str, ...] = ()
    text_of: Callable[[Record], SearchText] | None = None
    query_key: str = ""
    read: Callable[[Record], Any] | None = None
    export: ExportRule | None = None
    counted_as: str = ""
    expires: bool = False
    of_store: bool = False

    def spec(self, dimensions: int) -> CollectionSpec:
        """As the store makes it, for an embedding model of so many dimensions."""
        return CollectionSpec(
            self.name,
            dense=dict.fromkeys(self.dense, dimensions),
            multi=dict.fromkeys(self.multi, dimensions),
            sparse=self.sparse,
            indexes=dict(self.indexes),
        )

    @property
    def search_fields(self) -> SearchFields:
        """By which vectors and what text its records are found. It must have a text."""
        if self.text_of is None:
            raise TypeError(f"{self.name} is not searched by a text")
        return SearchFields(self.name, (*self.dense, *self.multi), self.text_of)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRule:
    """How the change feed tells of a kind.

    Attributes:
        quiet: Keys that are bookkeeping: a write of nothing else is no change.
        learned_keys: What ``learned`` reads of a record.
        learned: Whether a record that was stored is one that the server learned.
    """

    quiet: frozenset[str] = frozenset()
    learned_keys: tuple[str, ...] = ()
    learned: Callable[[Payload], bool] = lambda payload: False


@dataclass(frozen=True, slots=True)
class Bound:
    """How much of a kind a policy keeps: 0 and None are all. Age in microseconds."""

    number: int
    age: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRule:
    """How a policy bounds a kind.

    Attributes:
        bound: Its bound in a policy.
        touched: What a sweep may delete.
        age_keys: The times that all must lie before the age of the bound. They are indexed.
        keys: What ``rank`` reads of a record.
        rank: Which records are better; None is the newest.
    """

    bound: Callable[[NamespacePolicy], Bound]
    touched: tuple[Condition, ...]
    age_keys: tuple[str, ...]
    keys: tuple[str, ...] = ()
    rank: Rank | None = None

    def older_than(self, time: int) -> list[Condition]:
        """What holds of the records last touched before a time."""
        return [Range(key, lt=time) for key in self.age_keys]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedRule:
    """How the entries of a knowledge pack become records.

    Attributes:
        entries: The contents that a pack has of the kind, by entry.
        text_of: The text that a content is found by.
        record: The record of a content, given namespace, id, content, time, sort key and vectors.
    """

    entries: Callable[[KnowledgePack], Mapping[str, Any]]
    text_of: Callable[[Any], SearchText]
    record: Callable[[str, str, Any, int, int, Mapping[str, Vector]], Record]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSpec:
    """A kind of record that a namespace holds.

    Attributes:
        kind: Its name, as in the contract's ``ResourceKind``, in lower case.
        id_key: The key of its id in a payload; empty: there is one record a namespace.
        point: Where the record of an id lies in a namespace. None: an id alone does not say.
        read: The thing that a record of ``collection`` is.
        collection: Where its records lie; their number is how many there are.
        parts: Further collections of its own, of what belongs to its records.
        belongings: What belongs to one record, and goes before an import replaces it.
        watch: How the change feed tells of it. None: it does not.
        retention: How a policy bounds it. None: no policy does.
        seed: How knowledge packs bring it. None: they do not.
        cleared_along: What a clear of it takes along of collections that others share.
        cleared_with: The kinds that it is a log of, and is only cleared with.
        conditions: What a filter of its lists asks of a record.
        missing: What is raised for one that is not there.
        method: The call that creates its records, for kinds that are created by request ids.
        unchanged: Keys on whose change, or that of ``revision``, a delete begins anew.
        unchanged_as_seen: The same of a delete of one as it was seen, which then spares it.
        seen_keys: What that delete reads of a record.
    """

    kind: str
    id_key: str
    read: Callable[[Record], Any]
    collection: ResourceCollection
    point: Callable[[str, str], str] | None = None
    parts: tuple[ResourceCollection, ...] = ()
    belongings: Callable[[Record], Sequence[RecordSet]] = lambda record: ()
    watch: WatchRule | None = None
    retention: RetentionRule | None = None
    seed: SeedRule | None = None
    cleared_along: tuple[RecordSet, ...] = ()
    cleared_with: tuple[str, ...] = ()
    conditions: Callable[[Any], Sequence[Condition]] = lambda narrowed: ()
    missing: type[NotFoundError] = NotFoundError
    method: str = ""
    unchanged: tuple[str, ...] = ()
    unchanged_as_seen: tuple[str, ...] = ()
    seen_keys: tuple[str, ...] = ()

    @property
    def creation(self) -> Kind:
        """As the kernel creates its records."""
        name = self.collection.name
        return Kind(self.method, name, self.kind, self.id_key, self.point_of, self.missing)

    @property
    def collections(self) -> tuple[ResourceCollection, ...]:
        """Those of its own."""
        return (self.collection, *self.parts)

    def point_of(self, namespace: str, id: str) -> str:
        """Where the record of an id lies. The kind must have a ``point``."""
        if self.point is None:
            raise TypeError(f"no record of kind {self.kind} is found by its id alone")
        return self.point(namespace, id)
