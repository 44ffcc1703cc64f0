"""The declaration of a kind of record, as each ``spec.py`` makes it.

Behaviour that needs state, such as finishing a delete, is not part of a spec: the kind's
``module.py`` provides it as ``Resources`` (``services.operations``).
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
    Equals,
    Index,
    Not,
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
from lot_grpc.services.records.origin import ORIGIN_KIND, REVIEW

Place: TypeAlias = tuple[str, str]
"""A collection, and the point in it."""
Rank: TypeAlias = Callable[[Payload], tuple[Any, ...]]
"""The sort key of records; larger is better."""


def indexes(
    *,
    keyword: str = "",
    integer: str = "",
    faceted: str = "",
    floating: str = "",
    boolean: str = "",
) -> dict[str, Index]:
    """Indexes by payload key. The arguments list keys separated by spaces.

    ``faceted``: integers for which facets count values.
    """
    return {
        **dict.fromkeys(keyword.split(), Index.KEYWORD),
        **dict.fromkeys(integer.split(), Index.INTEGER),
        **dict.fromkeys(faceted.split(), Index.FACETED_INTEGER),
        **dict.fromkeys(floating.split(), Index.FLOAT),
        **dict.fromkeys(boolean.split(), Index.BOOL),
    }


COMMON_INDEXES: Final = indexes(keyword="tags label_pairs", integer=f"create_time {SORT_KEY}")
"""For kinds whose records have tags, labels and a creation time, and are listed."""

REVIEW_INDEXES: Final = indexes(keyword=f"{ORIGIN_KIND} {REVIEW}")
"""For kinds whose records have an origin and a review."""

CHANGE_INDEXES: Final = indexes(keyword=WRITER_ID, integer=CHANGE_SEQ)
"""For collections that the change feed reads."""


@dataclass(frozen=True, slots=True)
class RecordSet:
    """Records of a collection. ``where`` empty: all records of the namespace."""

    collection: str
    where: tuple[Condition, ...] = ()


InnerReader: TypeAlias = Callable[[VectorStore, Record, str], AsyncIterator[tuple[Record, str]]]
"""Given a store, a record and a name: yields the parts of the record, in order, after the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRule:
    """How the records of a collection are exported and imported.

    A record is exported and imported as if all unfinished work on it were done.

    Attributes:
        point: The point of a payload. None: derived from the kind's id.
        id_keys: The keys that identify a record to a caller. Empty: the kind's ``id_key``.
        dropped: Keys that belong to this store and are not exported.
        derived: Keys that an import adds, since they follow from the namespace and the others.
        done: Values of keys once all work is done, for records that have these keys.
        reset: Keys that take the value of another key, for records that have them.
        parents: The collections that its records belong to. Empty: none.
        parent: The collection and point of the record that a payload belongs to; None: of none.
        birth: The parent's sort key, if the payload has it; else it is looked up.
        excluded: Whether a record is not exported: it is unfinished, or only refers to another.
        vectors_missing: Whether a record lacks some vectors. If so, none are exported.
        inner: Reads the records of a parent, if they have no sort key of their own.
        required: Keys that a record must have, besides those it is decoded from.
        last: Whether it is exported after all other collections.
    """

    point: Callable[[str, Payload], str] | None = None
    id_keys: tuple[str, ...] = ()
    dropped: frozenset[str] = frozenset()
    derived: Callable[[str, Payload], Payload] = lambda namespace, payload: {}
    done: Mapping[str, Any] = field(default_factory=dict)
    reset: Mapping[str, str] = field(default_factory=dict)
    parents: tuple[str, ...] = ()
    parent: Callable[[str, Payload], Place | None] | None = None
    birth: Callable[[Payload], int] | None = None
    excluded: Callable[[Payload], bool] = lambda payload: False
    vectors_missing: Callable[[Payload], bool] = lambda payload: False
    inner: InnerReader | None = None
    required: tuple[str, ...] = (SORT_KEY,)
    last: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceCollection:
    """A collection of the store.

    Attributes:
        name: Its name in the store.
        description: What one record is, in a sentence (for `docs/data-model.md`, as the next two).
        key: What the point of a record is derived from. Empty: the kind's ``id_key``.
        writer: The package below ``lot_grpc`` that writes it. Empty: that of the kind.
        indexes: The payload keys used in conditions, orders and facets.
        dense: Its dense vectors, one text each.
        with_vectors: The conditions that records with the first of these meet. Empty: all have it.
        multi: Its multi-vectors, one vector per passage.
        sparse: Its sparse vectors of terms.
        text_of: The text by which a record is found; the indexer makes its vectors.
        query_key: Without ``text_of``, the key of a text that is embedded as a query.
        hashed_key: The key that is True on records that have a hash instead of that text. Their
            vectors cannot be made again, so they are deleted with them.
        read: Decodes a record; raises if it is incomplete. None: as the kind does.
        export: How it is exported. None: it is not.
        counted_as: The kind under which a reindex counts it. Empty: its own.
        expires: Whether its records expire at their ``EXPIRES_KEY`` and are then swept.
        of_store: Whether it belongs to the store as a whole, not to a namespace.
        derived: Whether its records follow from others. They count against a quota, but are never
            refused by it.
    """

    name: str
    description: str
    key: str = ""
    writer: str = ""
    indexes: Mapping[str, Index] = field(default_factory=dict)
    dense: tuple[str, ...] = ()
    with_vectors: tuple[Condition, ...] = ()
    multi: tuple[str, ...] = ()
    sparse: tuple[str, ...] = ()
    text_of: Callable[[Record], SearchText] | None = None
    query_key: str = ""
    hashed_key: str = ""
    read: Callable[[Record], Any] | None = None
    export: ExportRule | None = None
    counted_as: str = ""
    expires: bool = False
    of_store: bool = False
    derived: bool = False

    def spec(self, dimensions: int) -> CollectionSpec:
        """Its schema, for an embedding model of the given dimensions."""
        return CollectionSpec(
            self.name,
            dense=dict.fromkeys(self.dense, dimensions),
            multi=dict.fromkeys(self.multi, dimensions),
            sparse=self.sparse,
            indexes=dict(self.indexes),
        )

    @property
    def embeddable(self) -> tuple[Condition, ...]:
        """The conditions on records whose dense vectors are made from their text."""
        if not self.hashed_key:
            return self.with_vectors
        return (*self.with_vectors, Not(Equals(self.hashed_key, True)))

    @property
    def search_fields(self) -> SearchFields:
        """The vectors and the text by which its records are found. Requires ``text_of``."""
        if self.text_of is None:
            raise TypeError(f"{self.name} is not searched by a text")
        return SearchFields(self.name, (*self.dense, *self.multi), self.text_of)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRule:
    """How the change feed reports a kind.

    Attributes:
        quiet: Bookkeeping keys: a write of nothing else is not a change.
        learned_keys: The keys that ``learned`` reads.
        learned: Whether the server learned a stored record.
        only_if_named: Whether only watches that name the kind report it, since there are many.
    """

    quiet: frozenset[str] = frozenset()
    learned_keys: tuple[str, ...] = ()
    learned: Callable[[Payload], bool] = lambda payload: False
    only_if_named: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """The most that a policy keeps of a kind: 0 and None mean all. Age in microseconds."""

    number: int
    age: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRule:
    """How a policy bounds a kind.

    Attributes:
        bound: Its bound in a policy.
        touched: The conditions on what a sweep may delete.
        age_keys: The indexed times that must all be older than the age of the bound.
        keys: The keys that ``rank`` reads.
        rank: Which records are better; None is the newest.
    """

    bound: Callable[[NamespacePolicy], Bound]
    touched: tuple[Condition, ...]
    age_keys: tuple[str, ...]
    keys: tuple[str, ...] = ()
    rank: Rank | None = None

    def older_than(self, time: int) -> list[Condition]:
        """The conditions on records last touched before a time."""
        return [Range(key, lt=time) for key in self.age_keys]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedRule:
    """How the entries of a knowledge pack become records.

    Attributes:
        entries: The contents of the kind in a pack, by entry.
        text_of: The text by which a content is found.
        record: Makes a record from namespace, id, content, time, sort key and vectors.
    """

    entries: Callable[[KnowledgePack], Mapping[str, Any]]
    text_of: Callable[[Any], SearchText]
    record: Callable[[str, str, Any, int, int, Mapping[str, Vector]], Record]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSpec:
    """A kind of record that a namespace holds.

    Attributes:
        kind: Its name, as in the contract's ``ResourceKind``, in lower case.
        id_key: The key of its id in a payload; empty: a namespace has one record.
        point: The point of an id in a namespace. None: an id alone does not determine it.
        read: Decodes a record of ``collection``.
        collection: The collection of its records, by which they are counted.
        parts: Its further collections, for what belongs to its records.
        belongings: What belongs to a record and is deleted before an import replaces it.
        watch: How the change feed reports it. None: it does not.
        retention: How a policy bounds it. None: no policy does.
        seed: How knowledge packs provide it. None: they do not.
        cleared_along: What a clear also deletes from collections shared with other kinds.
        cleared_with: The kinds that it is a log of; it is only cleared with them.
        conditions: The conditions of a filter on its lists.
        missing: The error for a record that does not exist.
        method: The call that creates its records, for kinds created with request ids.
        unchanged: Keys whose change, like that of ``revision``, makes a delete start over.
        unchanged_as_seen: The same for ``delete_as_seen``, which then spares the record.
        seen_keys: The keys that ``delete_as_seen`` reads.
        named_for_subject: Whether records belong to the subject that their id begins with, since
            they have no labels (``domain.subject``).
        counted: Whether outcomes of its records are counted (``records.counters``). Its
            ``belongings`` have sort keys, and are found by one key each.
        metered: Whether its records, and parts of them, count against the quota of a namespace.
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
    named_for_subject: bool = False
    counted: bool = False
    metered: bool = True

    @property
    def creation(self) -> Kind:
        """How the kernel creates its records."""
        name = self.collection.name
        return Kind(self.method, name, self.kind, self.id_key, self.point_of, self.missing)

    @property
    def collections(self) -> tuple[ResourceCollection, ...]:
        """All its collections."""
        return (self.collection, *self.parts)

    def point_of(self, namespace: str, id: str) -> str:
        """The point of an id. The kind must have a ``point``."""
        if self.point is None:
            raise TypeError(f"no record of kind {self.kind} is found by its id alone")
        return self.point(namespace, id)
