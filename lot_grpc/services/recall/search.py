"""Candidates for a recall: both legs in one call to the store, fused into one list.

The dense leg searches every vector of a kind (``text``, and ``code`` for records with code), and a
record is scored by its best one; the lexical leg searches ``bm25``. The same call rescores what
only the lexical leg found, so that ``similarity`` is a cosine for each hit.

The lexical leg searches with function words. Unless its best hit is nearly the same text as the
query (``domain.fusion``), the hits of a search without function words are used instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final

from lot_grpc.domain.fusion import NO_OVERLAP, FusionWeights, Overlap, Relevance, fuse
from lot_grpc.domain.query import Legs
from lot_grpc.lexical.bm25 import LexicalQuery, lexical_query
from lot_grpc.ports import (
    Condition,
    Embedder,
    Embedding,
    Fallback,
    Record,
    Rescore,
    Scores,
    SearchQuery,
    VectorStore,
)
from lot_grpc.services.recall.search_fields import SearchFields
from lot_grpc.services.records.collections import SPARSE_VECTOR

_NONE: Final[frozenset[str]] = frozenset()

_WORDLESS_CHARACTERS = 256
"""Characters that are embedded of a query without words, only so that it can be recorded."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What to search for. ``min_similarity`` 0: no bound. ``pool``: hits of each leg.

    ``also`` finds points that are candidates whatever the legs find; ``where`` must hold for them.
    It runs while the query is embedded. ``embedding``: of the query, if the caller computes it
    for several searches. Then the lexical leg is a separate call while the query is embedded.
    """

    query: str
    where: Sequence[Condition]
    pool: int
    min_similarity: float = 0.0
    legs: Legs = Legs.HYBRID
    also: Callable[[], Awaitable[frozenset[str]]] | None = None
    embedding: asyncio.Future[Embedding] | None = None


@dataclass(frozen=True, slots=True)
class Candidates:
    """The fused pool, best first, and the query's vector.

    ``truncated``: not all of the query was read. ``wordless``: it has no words to search for.
    ``also``: the points that ``SearchRequest.also`` found.
    """

    found: list[Relevance]
    vector: Sequence[float]
    truncated: bool = False
    wordless: bool = False
    also: frozenset[str] = frozenset()


class HybridSearch:
    """Searches the records of one kind with both legs."""

    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder,
        searched: SearchFields,
        weights: FusionWeights,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._searched = searched
        self._weights = weights

    async def search(self, namespace: str, request: SearchRequest) -> Candidates:
        """The candidates, most relevant first."""
        words = lexical_query(request.query)
        if not words.terms:
            embedding = await (request.embedding or embed_wordless(self._embedder, request.query))
            return Candidates([], embedding.vector, wordless=True)
        if request.embedding is not None:
            return await self._search(namespace, request, words, request.embedding)
        own = asyncio.ensure_future(self._embedder.embed_query(request.query))
        try:
            await asyncio.sleep(0)  # lets it start; a cached vector is then ready
            return await self._search(namespace, request, words, own)
        finally:
            own.cancel()

    async def _search(
        self,
        namespace: str,
        request: SearchRequest,
        words: LexicalQuery,
        embedding: asyncio.Future[Embedding],
    ) -> Candidates:
        """The candidates; searches that need no vector run while the query is embedded."""
        best = _BestHits(self._searched, self._weights, words)
        by_words = _of_words(request, words, best)
        early = bool(by_words) and request.embedding is not None and not embedding.done()
        lexical: Scores = {}
        records: Mapping[str, Record] = {}
        if early:
            found = await self._store.search(self._searched.collection, namespace, by_words)
            [lexical], records = found.hits, found.records
        also = await request.also() if request.also else _NONE
        embedded = await embedding
        dense = self._searched.dense if request.legs is not Legs.BM25 else ()
        queries = [
            SearchQuery(name, embedded.vector, request.pool, request.where) for name in dense
        ]
        found = await self._store.search(
            self._searched.collection,
            namespace,
            queries if early else [*queries, *by_words],
            Rescore(self._searched.dense, embedded.vector, tuple(also.union(lexical))),
        )
        if by_words and not early:
            lexical, records = found.hits[-1], found.records
        weight = self._meaning(request.legs, best.of(records.get(next(iter(lexical), ""))))
        pools = found.hits[: len(dense)]
        similar, others = _apart(pools, {*lexical, *also}, found.cosines, request.pool)
        lexical = {point: score for point, score in lexical.items() if point in found.cosines}
        relevances = fuse(similar, others, lexical, weight)
        return Candidates(
            [one for one in relevances if one.similarity >= request.min_similarity],
            embedded.vector,
            embedded.truncated or (words.cut and request.legs is not Legs.DENSE),
            also=also,
        )

    def _meaning(self, legs: Legs, best: _Best) -> float:
        if legs is not Legs.HYBRID:
            return 1.0 if legs is Legs.DENSE else 0.0
        return self._weights.meaning(best.shared, code=best.code)


@dataclass(frozen=True, slots=True)
class _Best:
    """What the query shares with the best lexical hit, and whether that hit is bare code."""

    shared: Overlap = NO_OVERLAP
    code: bool = False


class _BestHits:
    """Compares the best hits of the lexical searches with the query, each record once."""

    def __init__(self, searched: SearchFields, weights: FusionWeights, words: LexicalQuery) -> None:
        self._searched = searched
        self._weights = weights
        self._words = words
        self._known: dict[str, _Best] = {}

    def of(self, record: Record | None) -> _Best:
        """The comparison with the record of a best hit; None if there is no hit."""
        if record is None:
            return _Best()
        best = self._known.get(record.id)
        if best is None:
            text = self._searched.text_of(record)
            best = self._known[record.id] = _Best(self._words.overlap(text.whole), text.bare)
        return best

    def decides(self, record: Record) -> bool:
        """Whether the best hit is nearly the same text as the query."""
        best = self.of(record)
        return self._weights.words_decide(best.shared, code=best.code)


def _of_words(request: SearchRequest, words: LexicalQuery, best: _BestHits) -> list[SearchQuery]:
    """The lexical search: with function words, and without them as the fallback."""
    if request.legs is Legs.DENSE:
        return []
    query = SearchQuery(SPARSE_VECTOR, words.vector, request.pool, request.where, records=1)
    if words.form is None:
        return [query]
    return [replace(query, vector=words.form, fallback=Fallback(query, best.decides))]


async def embed_wordless(embedder: Embedder, query: str) -> Embedding:
    """A vector to record with a query that has no words; its value does not matter."""
    return await embedder.embed_query(query[:_WORDLESS_CHARACTERS])


def _apart(
    pools: Sequence[Scores], also: AbstractSet[str], cosines: Scores, pool: int
) -> tuple[Scores, Scores]:
    """The dense leg's hits, at most ``pool``, and ``also``, each with its similarity."""
    dense = {point for found in pools for point in found if point in cosines}
    if len(dense) > pool:
        dense = set(sorted(dense, key=lambda point: (-cosines[point], point))[:pool])
    hits = {*also, *(point for found in pools for point in found)} & cosines.keys()
    return (
        {point: _share(cosines[point]) for point in dense},
        {point: _share(cosines[point]) for point in hits - dense},
    )


def _share(cosine: float) -> float:
    """A cosine as a similarity in [0, 1]: rounding may exceed 1, and a negative one counts as 0."""
    return min(1.0, max(0.0, cosine))
