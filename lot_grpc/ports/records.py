"""Records, and the collections that hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeAlias

Payload: TypeAlias = dict[str, Any]
"""JSON-like values; keys that filters name are top level and in ``CollectionSpec.indexes``."""

Scalar: TypeAlias = str | int | bool

NAMESPACE_KEY = "namespace"
"""Payload key of the tenant. Written and filtered by the store itself, never by a service."""

EXPIRES_KEY = "expires"
"""Payload key of an expiry (``Micros``), present only where set. A record whose expiry is at or
before now is absent to every read, and its id is free for a new record."""


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Term weights by term id; ``indices`` are unique and as many as ``values``."""

    indices: Sequence[int]
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class MultiVector:
    """Several dense vectors under one name, at least one. A search counts the nearest of them."""

    vectors: Sequence[Sequence[float]]


Vector: TypeAlias = Sequence[float] | SparseVector | MultiVector


@dataclass(frozen=True, slots=True)
class Record:
    """A stored point. ``id`` is a UUID string, ``vectors`` by name (empty unless asked for)."""

    id: str
    namespace: str
    payload: Payload
    vectors: Mapping[str, Vector] = field(default_factory=dict)


Scores: TypeAlias = dict[str, float]
"""What a search found: ids with scores, best first; larger is nearer."""


class Index(StrEnum):
    """Kind of a payload index. Every key that a condition, a facet or an order names has one."""

    KEYWORD = "keyword"
    INTEGER = "integer"
    FLOAT = "float"
    BOOL = "bool"


@dataclass(frozen=True, slots=True)
class CollectionSpec:
    """A collection: dense vectors by name and dimensions (cosine), sparse ones (IDF), indexes.

    ``multi`` are dense ones of which a record has several under one name. ``namespace`` (keyword,
    tenant) and ``expires`` (integer) are indexed in every collection and are not listed. All
    vectors may be absent: then points carry a payload only.
    """

    name: str
    dense: Mapping[str, int] = field(default_factory=dict)
    sparse: tuple[str, ...] = ()
    indexes: Mapping[str, Index] = field(default_factory=dict)
    multi: Mapping[str, int] = field(default_factory=dict)

    @property
    def vector_names(self) -> tuple[str, ...]:
        """Every name under which a record may have vectors."""
        return (*self.dense, *self.sparse, *self.multi)

    def extended(self, other: CollectionSpec) -> CollectionSpec:
        """With the vectors of another spec as well."""
        return replace(
            self,
            dense={**self.dense, **other.dense},
            sparse=tuple(dict.fromkeys((*self.sparse, *other.sparse))),
            multi={**self.multi, **other.multi},
        )

    def without(self, names: Sequence[str]) -> CollectionSpec:
        """Without the vectors of these names."""
        return replace(
            self,
            dense={name: size for name, size in self.dense.items() if name not in names},
            sparse=tuple(name for name in self.sparse if name not in names),
            multi={name: size for name, size in self.multi.items() if name not in names},
        )
