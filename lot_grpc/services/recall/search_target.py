"""What a recall needs to know about a kind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from lot_grpc.domain.context_stats import Evidence
from lot_grpc.domain.retrieval import RetrievalMethod
from lot_grpc.ports import Condition, Record
from lot_grpc.services.recall.search_fields import SearchFields

T = TypeVar("T")


class Matching(Protocol):
    """Finds resources that declare themselves relevant to a query."""

    async def matching(
        self, namespace: str, texts: Sequence[str], where: Sequence[Condition]
    ) -> Collection[str]:
        """The points of those relevant to any of the texts, among ``where``."""


class Learned(Protocol):
    """Looks up what outcomes on similar queries say about resources."""

    @property
    def nothing(self) -> Callable[[str], Awaitable[bool]]:
        """Tells whether a namespace has none; False if only a search could tell."""

    async def of(
        self, namespace: str, vector: Sequence[float], points: Sequence[str]
    ) -> Mapping[str, Evidence]:
        """By point, for those with any outcomes; ``vector`` is the query's."""


@dataclass(frozen=True, slots=True)
class SearchTarget(Generic[T]):
    """A kind to recall: its collection and fields, how it is read, and how it is ranked.

    Without ``learned`` and ``importance`` (in [0, 1], of a record) only relevance ranks; matches of
    ``tasks`` are at least near-ties. ``decode`` decodes a record; ``read`` replaces it where that
    takes more than the record; ``kind`` names the kind, ``method`` the call that recalls it, and
    ``id_key`` is the payload key of the id. ``on_recall`` is called for every answer with the
    namespace, the query, (id, similarity) best first, and the retrieval_id.
    """

    searched: SearchFields
    kind: str
    method: RetrievalMethod
    id_key: str
    decode: Callable[[Record], T]
    read: Callable[[Record], Awaitable[T]] | None = None
    learned: Learned | None = None
    tasks: Matching | None = None
    on_recall: Callable[[str, str, Sequence[tuple[str, float]], str], None] | None = None
    importance: Callable[[Record], float] | None = None
    excerpts: Callable[[Sequence[float], Sequence[Record]], Awaitable[Sequence[str]]] | None = None
    """For a query vector, the excerpts of long texts that the cross-encoder reads."""

    @property
    def ranks(self) -> bool:
        """Whether anything other than relevance ranks."""
        return self.learned is not None or self.importance is not None
