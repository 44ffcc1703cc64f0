"""Recall: one embedding, one search, one read of what may come onto the page, one pass of ranking.

The same for every noun. The search brings no payloads: to read those of a whole pool costs more
than to find it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from lot_grpc.domain.query import Ranking
from lot_grpc.domain.ranking import (
    Candidate,
    Ranked,
    RankingWeights,
    ScorePart,
    contenders,
    pool_size,
    rank,
)
from lot_grpc.ports import Condition, Embedder, Hit, Record, SearchQuery, VectorStore
from lot_grpc.services.records.collections import TEXT_VECTOR
from lot_grpc.services.retrievals import Retrievals

T = TypeVar("T")


class Learned(Protocol):
    """What was learned of a candidate: successes (PARTIAL as a half) and trials."""

    def __call__(self, payload: Mapping[str, Any]) -> tuple[float, int]:
        """Read it from its payload."""


@dataclass(frozen=True, slots=True)
class Noun(Generic[T]):
    """What is found: where it lies, how it is read, what was learned of it.

    Without ``learned`` similarity alone ranks. ``read`` makes a thing of its record; ``id_of``
    names one.
    """

    collection: str
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
    explain: bool = False


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
    """What was found. ``truncated``: the model did not read all of the query."""

    hits: list[Finding[T]]
    retrieval_id: str
    truncated: bool
    explanation: Explanation | None


class Recall(Generic[T]):
    """Finds things of one noun by meaning."""

    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder,
        retrievals: Retrievals,
        weights: RankingWeights,
        noun: Noun[T],
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._retrievals = retrievals
        self._weights = weights
        self._noun = noun

    async def find(self, namespace: str, asked: Question) -> Answer[T]:
        """The nearest things that the conditions let through, ranked."""
        embedding = await self._embedder.embed_query(asked.query)
        pool = await self._pool(namespace, asked, embedding.vector)
        ranking = asked.ranking if self._noun.learned else Ranking.SIMILARITY
        near, records = await self._near(namespace, pool, ranking, asked.limit)
        hits = [
            await self._finding(ranked, records[ranked.candidate.id])
            for ranked in rank(near, ranking, self._weights, asked.limit)
        ]
        retrieval_id = self._retrievals.remember(
            namespace,
            asked.query,
            embedding.vector,
            tuple(self._noun.id_of(hit.thing) for hit in hits),
        )
        explanation = None
        if asked.explain:
            explanation = await self._explain(namespace, asked, ranking, len(pool))
        return Answer(hits, retrieval_id, embedding.truncated, explanation)

    async def _pool(self, namespace: str, asked: Question, vector: Sequence[float]) -> list[Hit]:
        query = SearchQuery(
            TEXT_VECTOR,
            vector,
            pool_size(asked.limit),
            asked.where,
            payload=False,
            min_score=asked.min_similarity or None,
        )
        return (await self._store.search(self._noun.collection, namespace, [query]))[0]

    async def _near(
        self, namespace: str, pool: Sequence[Hit], ranking: Ranking, limit: int
    ) -> tuple[list[Candidate], dict[str, Record]]:
        """Who can come onto the page, with their records. One deleted since is left out."""
        # Rounding may take a cosine a little past 1; negative ones are no similarity at all.
        nearest = [(-min(1.0, max(0.0, hit.score)), hit.record.id) for hit in pool]
        nearest.sort()
        del nearest[contenders([-s for s, _ in nearest], ranking, self._weights, limit) :]
        records = await self._store.get(
            self._noun.collection, namespace, [point for _, point in nearest]
        )
        return [
            self._candidate(records[point], -negated)
            for negated, point in nearest
            if point in records
        ], records

    def _candidate(self, record: Record, similarity: float) -> Candidate:
        if self._noun.learned is None:
            return Candidate(record.id, similarity)
        successes, trials = self._noun.learned(record.payload)
        return Candidate(record.id, similarity, successes, trials)

    async def _finding(self, ranked: Ranked, record: Record) -> Finding[T]:
        thing = await self._noun.read(record)
        return Finding(thing, ranked.score, ranked.candidate.similarity, ranked.parts)

    async def _explain(
        self, namespace: str, asked: Question, ranking: Ranking, pool: int
    ) -> Explanation:
        collection = self._noun.collection
        return Explanation(
            ranking,
            pool,
            self._weights if ranking is not Ranking.SIMILARITY else RankingWeights(0.0, 0.0),
            await self._store.count(collection, namespace, asked.where),
            await self._store.count(collection, namespace),
        )
