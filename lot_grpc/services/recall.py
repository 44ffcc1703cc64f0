"""Recall: one embedding, one batch to the store, one pass of ranking. The same for every noun."""

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
    pool_size,
    rank,
)
from lot_grpc.ports import Condition, Embedder, Hit, SearchQuery, VectorStore
from lot_grpc.services.records.collections import TEXT_VECTOR
from lot_grpc.services.retrievals import Retrievals

T = TypeVar("T")


class Learned(Protocol):
    """What was learned of a candidate: successes (PARTIAL as a half) and trials."""

    def __call__(self, payload: Mapping[str, Any]) -> tuple[float, int]:
        """Read it from the keys that the search brought along."""


@dataclass(frozen=True, slots=True)
class Noun(Generic[T]):
    """What is found: where it lies, how it is read, what was learned of it.

    ``keys`` are the payload keys that ``learned`` reads; without ``learned`` similarity alone
    ranks. ``fetch`` reads things by point; ``id_of`` names one.
    """

    collection: str
    fetch: Callable[[str, Sequence[str]], Awaitable[Mapping[str, T]]]
    id_of: Callable[[T], str]
    keys: tuple[str, ...] = ()
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
        candidates = [self._candidate(hit) for hit in pool]
        hits = await self._read(namespace, rank(candidates, ranking, self._weights, asked.limit))
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
            payload=self._noun.keys or False,
            min_score=asked.min_similarity or None,
        )
        return (await self._store.search(self._noun.collection, namespace, [query]))[0]

    def _candidate(self, hit: Hit) -> Candidate:
        # Rounding may take a cosine a little past 1; negative ones are no similarity at all.
        similarity = min(1.0, max(0.0, hit.score))
        if self._noun.learned is None:
            return Candidate(hit.record.id, similarity)
        successes, trials = self._noun.learned(hit.record.payload)
        return Candidate(hit.record.id, similarity, successes, trials)

    async def _read(self, namespace: str, ranked: Sequence[Ranked]) -> list[Finding[T]]:
        """The hits in full. One deleted since the search is left out."""
        found = await self._noun.fetch(namespace, [item.candidate.id for item in ranked])
        return [
            Finding(found[item.candidate.id], item.score, item.candidate.similarity, item.parts)
            for item in ranked
            if item.candidate.id in found
        ]

    async def _explain(
        self, namespace: str, asked: Question, ranking: Ranking, pool: int
    ) -> Explanation:
        collection = self._noun.collection
        return Explanation(
            ranking,
            pool,
            self._weights,
            await self._store.count(collection, namespace, asked.where),
            await self._store.count(collection, namespace),
        )
