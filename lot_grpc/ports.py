"""What the use cases need from the outside: a store, an embedder, a clock.

Nothing here knows Qdrant, ONNX or gRPC. The adapters in ``storage`` and ``embedding`` implement
these protocols; ``app`` hands them to the services.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

Micros: TypeAlias = int
"""An instant as whole microseconds since 1970-01-01 UTC. Exact in a double until the year 2255."""

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


# --- conditions -----------------------------------------------------------------------------
# On an array-valued key a condition holds when it holds for any element. A missing key satisfies
# only Missing, and Not of the others.


@dataclass(frozen=True, slots=True)
class Equals:
    """The value at ``key`` equals ``value``, without coercion between types."""

    key: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class AnyOf:
    """The value at ``key`` is one of ``values``. No values match nothing."""

    key: str
    values: tuple[str, ...] | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """The number at ``key`` lies within the given bounds (at least one)."""

    key: str
    gte: float | None = None
    gt: float | None = None
    lte: float | None = None
    lt: float | None = None


@dataclass(frozen=True, slots=True)
class Missing:
    """``key`` is absent, null or an empty array."""

    key: str


@dataclass(frozen=True, slots=True)
class IdIn:
    """The record's id is one of ``ids``. No ids match nothing."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HasVector:
    """The record has a vector of this name. For filters only: ``when`` refuses it."""

    name: str


@dataclass(frozen=True, slots=True)
class Not:
    """``condition`` does not hold."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class AllOf:
    """Each condition holds. None given holds always."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    """At least one condition holds. None given holds never."""

    conditions: tuple[Condition, ...]


Condition: TypeAlias = Equals | AnyOf | Range | Missing | IdIn | HasVector | Not | AllOf | OneOf
Where: TypeAlias = Sequence[Condition]
"""Conditions that must all hold."""


# --- collections ----------------------------------------------------------------------------


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


@dataclass(frozen=True, slots=True)
class Order:
    """Order of a scroll by an indexed integer key. Records without the key are left out."""

    key: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """One leg. Only what has the vector ``using`` is found; ``min_score`` None: no bound.

    ``vector`` is a single one, dense or sparse, also where records have several under the name.
    """

    using: str
    vector: Vector
    limit: int
    where: Where = ()
    min_score: float | None = None


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """What the store says of itself. ``points`` by collection; sizes in bytes, 0 when unknown."""

    backend: str
    location: str
    points: Mapping[str, int]
    disk_bytes: int = 0
    free_bytes: int = 0
    writable: bool = True
    detail: str = ""


class VectorStore(Protocol):
    """Records by (collection, namespace, id), their conditions and vectors.

    A write that returned is seen by the next read of any client and survives the death of the
    process. ``namespace=None`` means all namespaces; only sweeps and the operator's calls use it.
    Errors: ``domain.errors.StoreUnavailableError`` (cannot be reached or answered wrongly),
    ``StorageFullError`` (a write refused for want of space; nothing of it was written).
    """

    @property
    def exclusive(self) -> bool:
        """Whether no other process can write to this store while it is open."""

    async def ensure_collections(self, specs: Sequence[CollectionSpec]) -> None:
        """Create what is missing; add indexes and vectors that a spec names anew. Never drops."""

    async def extend(self, spec: CollectionSpec) -> None:
        """Add the vectors that a spec names anew to its open collection, while it is in use.

        Those of other names stay. A vector of another size is refused as ``ensure_collections``
        refuses it.
        """

    async def drop_vectors(self, collection: str, names: Sequence[str]) -> None:
        """Drop these named vectors, of all records and of the collection. Unknown ones are none."""

    async def insert(self, collection: str, records: Sequence[Record]) -> set[str]:
        """Insert records whose id is free; return the ids that were inserted by this call.

        A taken id leaves its record untouched. Of several calls at once, from any process, just
        one gets an id. Records of one call are written together or not at all on Edge.
        """

    async def put(self, collection: str, records: Sequence[Record]) -> None:
        """Insert or replace whole records, unconditionally."""

    async def replace(self, collection: str, record: Record, when: Where) -> bool:
        """Replace an existing record, payload and vectors at once, if ``when`` holds for it.

        False when it does not exist or ``when`` does not hold; then nothing changes.
        """

    async def update(
        self,
        collection: str,
        namespace: str,
        id: str,
        *,
        set: Mapping[str, Any],
        unset: Sequence[str] = (),
        when: Where = (),
    ) -> bool:
        """Set (and then remove) just these top-level payload keys of an existing record.

        False when it does not exist or ``when`` does not hold; then nothing changes. For a
        compare-and-set put the compared key into ``set`` with a new value. Removing keys is a
        second write on Qdrant, so ``unset`` only keys that no reader trusts after ``set``.
        """

    async def set_vectors(self, collection: str, records: Sequence[Record]) -> None:
        """Set just the named vectors given; payloads and vectors of other names stay.

        The records' payloads are not looked at. What is not there in the record's namespace, or has
        expired, is left out, never created.
        """

    async def delete(
        self, collection: str, namespace: str | None, where: Where, limit: int = 0
    ) -> int:
        """Delete matching records, expired ones included; return how many there were.

        ``limit``: no more than so many, whichever; 0: all of them.
        ``where`` must not be empty when ``namespace`` is None.
        """

    async def get(
        self, collection: str, namespace: str, ids: Sequence[str], *, vectors: bool = False
    ) -> dict[str, Record]:
        """Fetch by id; missing, expired and other namespaces' ids are left out."""

    async def scroll(
        self,
        collection: str,
        namespace: str | None,
        where: Where,
        *,
        limit: int,
        order: Order | None = None,
        payload: bool | tuple[str, ...] = True,
        vectors: bool = False,
    ) -> list[Record]:
        """Up to ``limit`` matching records, ordered by ``order``, else by id.

        There is no offset: continue with a condition on the order key.
        """

    async def search(
        self, collection: str, namespace: str, queries: Sequence[SearchQuery]
    ) -> list[Scores]:
        """Run all legs in one batch; filters are applied before the cut.

        What was found is read by ``get``: to read all of a pool costs more than to find it.
        """

    async def count(self, collection: str, namespace: str | None, where: Where = ()) -> int:
        """Exact number of matching records."""

    async def facet(
        self, collection: str, namespace: str | None, key: str, where: Where = (), limit: int = 100
    ) -> dict[Scalar, int]:
        """Exact counts by value of an indexed keyword, integer or bool key, most frequent first."""

    async def namespaces(self, collection: str) -> set[str]:
        """The namespaces that have records, perhaps with some whose records are all gone.

        Cheap, however many records there are.
        """

    async def expired(self, collection: str, *, limit: int) -> list[Record]:
        """Up to ``limit`` records whose expiry has passed and that still take up room."""

    async def delete_expired(self, collection: str, *, limit: int) -> int:
        """Delete up to ``limit`` records whose expiry has passed; return how many.

        Fewer than ``limit``: there are no more.
        """

    async def check(self) -> None:
        """Raise what a write would meet now (``StorageFullError``, ``StoreUnavailableError``)."""

    async def compact(self) -> bool:
        """Merge and index segments where the backend leaves that to us; True if anything changed.

        Slow and blocking on Edge: never while serving.
        """

    async def info(self) -> StoreInfo:
        """Backend, place, point counts, space."""

    async def flush(self) -> None:
        """Bring everything acknowledged to the disk itself."""

    async def close(self) -> None:
        """Flush and release files, locks, connections. Idempotent."""


# --- embedding and time ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EmbeddingContract:
    """What vectors in a store were made with. Stored in ``meta`` and compared at start."""

    model: str
    dimensions: int
    distance: str
    query_prefix: str
    model_sha256: str
    vocabulary_sha256: str
    """Hash of the model's tokenizer, empty where there is none."""
    tokenizer: str
    """Name and version of the sparse tokenizer. An embedder leaves it empty: the store's contract
    names it, and it is empty there while records have no sparse vectors."""


@dataclass(frozen=True, slots=True)
class Embedding:
    """A unit vector of a text.

    ``truncated``: the text was so long that its tail was not read. A text that is longer than the
    model reads at once is read in windows (see ``embedding.windows``), so only one that fills all
    of them is truncated.
    """

    vector: list[float]
    truncated: bool = False


class Embedder(Protocol):
    """Text to unit vectors. Queries and documents are apart, since models prefix them apart."""

    @property
    def contract(self) -> EmbeddingContract:
        """What this embedder makes."""

    @property
    def max_tokens(self) -> int:
        """Word pieces that the model reads at once: of a text, or of a window of a longer one."""

    async def embed_query(self, text: str) -> Embedding:
        """Embed a search text. Never blocks the event loop."""

    async def embed_documents(self, texts: Sequence[str]) -> list[Embedding]:
        """Embed texts to store, in order. Never blocks the event loop."""

    async def count_tokens(self, texts: Sequence[str]) -> list[int] | None:
        """How many tokens each text has as it stands, special tokens included.

        None if the model does not tell. Never blocks the event loop.
        """

    async def close(self) -> None:
        """Stop workers. Idempotent."""


class Reranker(Protocol):
    """How well texts answer a query, read together by a cross-encoder."""

    @property
    def model(self) -> str:
        """Name of the model."""

    async def score(
        self, query: str, texts: Sequence[str], *, seconds: float
    ) -> list[float | None]:
        """How well each text answers the query, in [0, 1], in order; the first go first.

        None for those that were not reached within ``seconds``. The scores of one query order its
        texts; they are no probabilities. Never blocks the event loop.
        Errors: ``EmbeddingFailedError``, ``ModelUnavailableError``.
        """

    async def close(self) -> None:
        """Stop workers. Idempotent."""


class Clock(Protocol):
    """The time. Tests pass a fixed one."""

    def now(self) -> Micros:
        """Now; may repeat, and may step back when the machine's clock does."""
