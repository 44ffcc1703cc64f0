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
    """One or more dense vectors under one name. A search scores the nearest of them."""

    vectors: Sequence[Sequence[float]]


Vector: TypeAlias = Sequence[float] | SparseVector | MultiVector


@dataclass(frozen=True, slots=True)
class Record:
    """A stored point. ``id`` is a UUID string, ``vectors`` by name (empty unless requested)."""

    id: str
    namespace: str
    payload: Payload
    vectors: Mapping[str, Vector] = field(default_factory=dict)


Scores: TypeAlias = dict[str, float]
"""The hits of a search: ids with scores, best first; larger is nearer."""


class Index(StrEnum):
    """Type of a payload index. Every key used in a condition, a facet or an order has one."""

    KEYWORD = "keyword"
    INTEGER = "integer"
    """Up to 2^53. Supports no facets: most integers are times, and each of these occurs once."""
    FACETED_INTEGER = "faceted integer"
    FLOAT = "float"
    BOOL = "bool"


@dataclass(frozen=True, slots=True)
class CollectionSpec:
    """A collection: dense vectors by name and dimensions (cosine), sparse ones (IDF), indexes.

    ``multi`` are dense vectors of which a record may have several under one name. ``namespace``
    (keyword, tenant) and ``expires`` (integer) are indexed in every collection and not listed.
    With no vectors at all, points carry only a payload.
    """

    name: str
    dense: Mapping[str, int] = field(default_factory=dict)
    sparse: tuple[str, ...] = ()
    indexes: Mapping[str, Index] = field(default_factory=dict)
    multi: Mapping[str, int] = field(default_factory=dict)

    @property
    def vector_names(self) -> tuple[str, ...]:
        """The names of all vectors that a record may have."""
        return (*self.dense, *self.sparse, *self.multi)

    def extended(self, other: CollectionSpec) -> CollectionSpec:
        """A copy that also has the vectors of another spec."""
        return replace(
            self,
            dense={**self.dense, **other.dense},
            sparse=tuple(dict.fromkeys((*self.sparse, *other.sparse))),
            multi={**self.multi, **other.multi},
        )

    def without(self, names: Sequence[str]) -> CollectionSpec:
        """A copy without the vectors of these names."""
        return replace(
            self,
            dense={name: size for name, size in self.dense.items() if name not in names},
            sparse=tuple(name for name in self.sparse if name not in names),
            multi={name: size for name, size in self.multi.items() if name not in names},
        )
