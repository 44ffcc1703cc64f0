"""The store of all records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """One leg. Only what has the vector ``using`` is found; ``min_score`` None: no bound.

    ``vector`` is a single one, dense or sparse, also where records have several under the name.
    ``records``: how many of the best hits come with their records.
    """

    using: str
    vector: Vector
    limit: int
    where: Where = ()
    min_score: float | None = None
    records: int = 0


@dataclass(frozen=True, slots=True)
class Rescore:
    """Asks for the cosine of every hit with ``vector``, whichever query found it.

    The best of those with the dense vectors ``using`` counts; a hit that has none of them gets no
    cosine. ``ids`` are rescored as well. The queries of one search that is rescored have the same
    conditions, and the records of ``ids`` meet them.
    """

    using: Sequence[str]
    vector: Sequence[float]
    ids: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits of each query, the records asked for by id, and the cosines if rescored."""

    hits: list[Scores]
    records: Mapping[str, Record] = field(default_factory=dict)
    cosines: Scores = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """What the store says of itself. ``points`` by collection; sizes in bytes, 0 when unknown."""

    backend: str
    location: str
    points: Mapping[str, int]
    used_bytes: int = 0
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
        self,
        collection: str,
        namespace: str,
        queries: Sequence[SearchQuery],
        rescore: Rescore | None = None,
    ) -> SearchResult:
        """Run all legs in one batch; filters are applied before the cut.

        Records come only with as many of the best hits as a query asks for, since reading a whole
        pool costs more than finding it.
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
