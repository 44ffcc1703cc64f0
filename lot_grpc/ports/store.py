"""The store of all records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lot_grpc.ports.conditions import Where
from lot_grpc.ports.records import CollectionSpec, Record, Scalar, Scores, Vector


@dataclass(frozen=True, slots=True)
class Order:
    """Order of a scroll by an indexed integer key. Records without the key are left out."""

    key: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """One query of a search, over records with the vector ``using``; ``min_score`` None: no bound.

    ``vector`` is a single vector, dense or sparse, even where records have several under the name.
    ``records``: how many of the best hits come with their records. With a ``fallback``, the
    hits are those of another query if the best hit of this one is refused or there is none.
    """

    using: str
    vector: Vector
    limit: int
    where: Where = ()
    min_score: float | None = None
    records: int = 0
    fallback: Fallback | None = None


@dataclass(frozen=True, slots=True)
class Fallback:
    """The query to use instead, unless ``accepts`` returns true for the record of the best hit.

    It is also used if there is no hit. It must not have a fallback itself.
    """

    query: SearchQuery
    accepts: Callable[[Record], bool]


@dataclass(frozen=True, slots=True)
class Rescore:
    """Request the cosine of every hit with ``vector``, whichever query found it.

    A hit gets the best cosine over its dense vectors ``using``, or none if it has none of them.
    ``ids`` are rescored as well. All queries of a rescored search must have the same conditions,
    and the records of ``ids`` must meet them.
    """

    using: Sequence[str]
    vector: Sequence[float]
    ids: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits of each query, the requested records by id, and the cosines if rescored."""

    hits: list[Scores]
    records: Mapping[str, Record] = field(default_factory=dict)
    cosines: Scores = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """Facts about the store. Sizes in bytes, 0 when unknown.

    ``points`` by collection; ``sizes`` also, empty when unknown.
    """

    backend: str
    location: str
    points: Mapping[str, int]
    used_bytes: int = 0
    free_bytes: int = 0
    writable: bool = True
    detail: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Update:
    """An update of one record, with the arguments of ``VectorStore.update``."""

    namespace: str
    id: str
    set: Mapping[str, Any]
    when: Where = ()


class VectorStore(Protocol):
    """Records by (collection, namespace, id), their conditions and vectors.

    Once a write has returned, the next read of any client sees it and it survives the death of the
    process. ``namespace=None`` means all namespaces; only sweeps and operator calls use it.
    Errors: ``domain.errors.StoreUnavailableError`` (unreachable, or an unexpected response),
    ``StorageFullError`` (a write refused for lack of space; nothing was written).
    """

    @property
    def exclusive(self) -> bool:
        """Whether no other process can write to this store while it is open."""

    async def ensure_collections(self, specs: Sequence[CollectionSpec]) -> None:
        """Create missing collections, and add missing indexes and vectors. Never drops any."""

    async def extend(self, spec: CollectionSpec) -> None:
        """Add the missing vectors of a spec to its open collection, while it is in use.

        Vectors of other names stay. One of a different size is refused, as in
        ``ensure_collections``.
        """

    async def drop_vectors(self, collection: str, names: Sequence[str]) -> None:
        """Drop these vectors from the collection and all its records. Unknown names are ignored."""

    async def insert(self, collection: str, records: Sequence[Record]) -> set[str]:
        """Insert records whose id is free; return the ids that were inserted by this call.

        A record whose id is taken is left untouched. Of concurrent calls, from any process, exactly
        one gets an id. On Edge, the records of one call are written together or not at all.
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
        """Set (and then remove) only these top-level payload keys of an existing record.

        False when it does not exist or ``when`` does not hold; then nothing changes. For a
        compare-and-set, give the compared key a new value in ``set``. Removing keys is a second
        write on Qdrant, so ``unset`` only keys that no reader relies on after ``set``.
        """

    async def update_many(self, collection: str, updates: Sequence[Update]) -> set[str]:
        """Update several records, each on its own condition; return the ids of those that changed.

        Each record may occur once only. The updates are not atomic together: if the process dies or
        the call fails, some records may have changed.
        """

    async def set_vectors(self, collection: str, records: Sequence[Record]) -> None:
        """Set only the given vectors; payloads and vectors of other names stay.

        The payloads given are ignored. A record that does not exist in its namespace, or has
        expired, is skipped, never created.
        """

    async def delete(
        self, collection: str, namespace: str | None, where: Where, limit: int = 0
    ) -> int:
        """Delete matching records, expired ones included; return how many there were.

        ``limit``: at most this many, in no particular order; 0: all of them.
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
        after: str = "",
        payload: bool | tuple[str, ...] = True,
        vectors: bool = False,
    ) -> list[Record]:
        """Up to ``limit`` matching records, ordered by ``order``, else by id.

        ``after``: only those whose id comes after this one; not with an ``order``, where a
        condition on its key continues.
        """

    async def search(
        self,
        collection: str,
        namespace: str,
        queries: Sequence[SearchQuery],
        rescore: Rescore | None = None,
    ) -> SearchResult:
        """Run all queries in one batch; filters are applied before the limit.

        Records come only with as many of the best hits as a query requests, since reading a whole
        pool costs more than finding it.
        """

    async def count(self, collection: str, namespace: str | None, where: Where = ()) -> int:
        """Exact number of matching records."""

    async def facet(
        self, collection: str, namespace: str | None, key: str, where: Where = (), limit: int = 100
    ) -> dict[Scalar, int]:
        """Exact counts by value of an indexed keyword, integer or bool key, most frequent first."""

    async def namespaces(self, collection: str) -> set[str]:
        """The namespaces that have records, and possibly some whose records are all gone.

        Cheap, however many records there are.
        """

    async def expired(self, collection: str, *, limit: int, where: Where = ()) -> list[Record]:
        """Up to ``limit`` matching records that have expired and still take up space."""

    async def delete_expired(self, collection: str, *, limit: int) -> int:
        """Delete up to ``limit`` records whose expiry has passed; return how many.

        Fewer than ``limit`` means that none are left.
        """

    async def check(self) -> None:
        """Raise what a write would raise now (``StorageFullError``, ``StoreUnavailableError``)."""

    async def compact(self) -> bool:
        """Merge and index segments if the backend leaves that to us; True if anything changed.

        Slow and blocking on Edge: never while serving.
        """

    async def info(self) -> StoreInfo:
        """Backend, location, point counts and space."""

    async def flush(self) -> None:
        """Sync every acknowledged write to the disk itself."""

    async def close(self) -> None:
        """Flush and release files, locks, connections. Idempotent."""
