"""Recall: one embedding, one search, one read of what may come onto the page, one pass of ranking.

With ``rerank`` the cross-encoder reads the best candidates before the ranking. The same for every
noun.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from lot_grpc.domain.fusion import FusionWeights, Relevance
from lot_grpc.domain.query import Legs, Ranking
from lot_grpc.domain.ranking import (
    Candidate,
    Ranked,
    RankingWeights,
    ScorePart,
    contenders,
    pool_size,
    rank,
)
from lot_grpc.ports import Condition, Embedder, Record, VectorStore
from lot_grpc.services.reranks import Reranks
from lot_grpc.services.retrievals import Retrievals
from lot_grpc.services.search import Searching, Wanted
from lot_grpc.services.searched import Searched

T = TypeVar("T")


class Learned(Protocol):
    """What was learned of a candidate: successes (PARTIAL as a half) and trials."""

    def __call__(self, payload: Mapping[str, Any]) -> tuple[float, int]:
        """Read it from its payload."""


@dataclass(frozen=True, slots=True)
class Noun(Generic[T]):
    """What is found: where it lies and by what, how it is read, what was learned of it.

    Without ``learned`` relevance alone ranks. ``read`` makes a thing of its record; ``id_of``
    names one.
    """

    searched: Searched
    read: Callable[[Record], Awaitable[T]]
    id_of: Callable[[T], str]
    learned: Learned | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. ``min_similarity`` 0: no bound."""

    query: str
    where: Sequence[Condition]
    limit: int
    min_similarity: float = 0.0
    ranking: Ranking = Ranking.BALANCED
    rerank: bool = False
    explain: bool = False
    legs: Legs = Legs.HYBRID


@dataclass(frozen=True, slots=True)
class Finding(Generic[T]):
    """A thing that was found. ``parts`` add up to the score."""

    thing: T
    score: float
    similarity: float
    parts: tuple[ScorePart, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """How an answer came about."""

    ranking: Ranking
    pool: int
    weights: RankingWeights
    matching: int
    in_namespace: int


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What was found, and what is to be said about it.

    ``truncated``: not all of the query was read. ``wordless``: it has nothing to look for.
    ``unreached``: candidates that the cross-encoder was to read and had no time for.
    """

    hits: list[Finding[T]]
    retrieval_id: str
    truncated: bool = False
    wordless: bool = False
    unreached: int = 0
    explanation: Explanation | None = None


class Recall(Generic[T]):
    """Finds things of one noun, by meaning and by words."""

    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder,
        retrievals: Retrievals,
        reranks: Reranks,
        weights: RankingWeights,
        noun: Noun[T],
    ) -> None:
        self._store = store
        self._searching = Searching(store, embedder, noun.searched, FusionWeights())
        self._retrievals = retrievals
        self._reranks = reranks
        self._weights = weights
        self._noun = noun

    async def find(self, namespace: str, asked: Question) -> Answer[T]:
        """The most relevant things that the conditions let through, ranked."""
        pool = pool_size(asked.limit)
        candidates = await self._searching.search(
            namespace, Wanted(asked.query, asked.where, pool, asked.min_similarity, asked.legs)
        )
        found, unreached = candidates.found, 0
        if asked.rerank:
            found, unreached = await self._reranks.rerank(
                namespace, self._noun.searched, asked.query, found
            )
        ranking = asked.ranking if self._noun.learned else Ranking.SIMILARITY
        relevant = {one.id: one for one in found}
        near, records = await self._near(namespace, found, ranking, asked.limit)
        hits = [
            await self._finding(ranked, relevant[ranked.candidate.id], records)
            for ranked in rank(near, ranking, self._weights, asked.limit)
        ]
        retrieval_id = self._retrievals.remember(
            namespace,
            asked.query,
            candidates.vector,
            tuple(self._noun.id_of(hit.thing) for hit in hits),
        )
        explanation = None
        if asked.explain:
            explanation = await self._explain(namespace, asked, ranking, len(found))
        return Answer(
            hits,
            retrieval_id,
            candidates.truncated,
            candidates.wordless,
            unreached,
            explanation,
        )

    async def _near(
        self, namespace: str, found: Sequence[Relevance], ranking: Ranking, limit: int
    ) -> tuple[list[Candidate], dict[str, Record]]:
        """Who can come onto the page, with their records. One deleted since is left out."""
        readable = contenders([one.value for one in found], ranking, self._weights, limit)
        nearest = found[:readable]
        records = await self._store.get(
            self._noun.searched.collection, namespace, [one.id for one in nearest]
        )
        return [
            self._candidate(records[one.id], one) for one in nearest if one.id in records
        ], records

    def _candidate(self, record: Record, relevance: Relevance) -> Candidate:
        successes, trials = 0.0, 0
        if self._noun.learned is not None:
            successes, trials = self._noun.learned(record.payload)
        return Candidate(record.id, relevance.value, successes, trials)

    async def _finding(
        self, ranked: Ranked, relevance: Relevance, records: Mapping[str, Record]
    ) -> Finding[T]:
        thing = await self._noun.read(records[ranked.candidate.id])
        return Finding(thing, ranked.score, relevance.similarity, (*relevance.parts, *ranked.parts))

    async def _explain(
        self, namespace: str, asked: Question, ranking: Ranking, pool: int
    ) -> Explanation:
        collection = self._noun.searched.collection
        return Explanation(
            ranking,
            pool,
            self._weights if ranking is not Ranking.SIMILARITY else RankingWeights(0.0, 0.0),
            await self._store.count(collection, namespace, asked.where),
            await self._store.count(collection, namespace),
        )
