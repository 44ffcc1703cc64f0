"""Candidates for a recall: both legs in one call to the store, fused into one list.

The dense leg searches every vector of a kind (``text``, and ``code`` for records with code), and a
record is scored by its best one; the lexical leg searches ``bm25``. The same call rescores what
only the lexical leg found, so that ``similarity`` is a cosine for each hit.

The lexical leg runs twice, with function words and without. The record of each run's best hit comes
back with the call and decides which run is used (``domain.fusion``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from lot_grpc.domain.fusion import NO_OVERLAP, FusionWeights, Overlap, Relevance, fuse
from lot_grpc.domain.query import Legs
from lot_grpc.lexical.bm25 import LexicalQuery, lexical_query
from lot_grpc.ports import (
    Condition,
    Embedder,
    Embedding,
    Record,
    Rescore,
    Scores,
    SearchQuery,
    VectorStore,
)
from lot_grpc.services.recall.search_fields import SearchFields
from lot_grpc.services.records.collections import SPARSE_VECTOR

_WORDLESS_CHARACTERS = 256
"""Characters that are embedded of a query without words, only so that it can be recorded."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What to search for. ``min_similarity`` 0: no bound. ``pool``: hits of each leg.

    ``also`` finds points that are candidates whatever the legs find; ``where`` must hold for them.
    It runs while the query is embedded. ``embedding``: of the query, if the caller makes it; if it
    is not ready yet, the lexical leg runs first, in a call of its own.
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
        by_words = _of_words(request, words)
        early = bool(by_words) and request.embedding is not None and not request.embedding.done()
        lexical: Scores = {}
        if early:
            found = await self._store.search(self._searched.collection, namespace, by_words)
            lexical, best = self._choose(found.hits, found.records, words)
        embedding, also = await asyncio.gather(
            request.embedding or self._embedder.embed_query(request.query),
            request.also() if request.also else _nothing(),
        )
        dense = self._searched.dense if request.legs is not Legs.BM25 else ()
        queries = [
            SearchQuery(name, embedding.vector, request.pool, request.where) for name in dense
        ]
        found = await self._store.search(
            self._searched.collection,
            namespace,
            queries if early else [*queries, *by_words],
            Rescore(self._searched.dense, embedding.vector, tuple(also.union(lexical))),
        )
        pools = found.hits[: len(dense)]
        if not early:
            lexical, best = self._choose(found.hits[len(dense) :], found.records, words)
        similar, others = _apart(pools, {*lexical, *also}, found.cosines, request.pool)
        lexical = {point: score for point, score in lexical.items() if point in found.cosines}
        relevances = fuse(similar, others, lexical, self._meaning(request.legs, best))
        return Candidates(
            [one for one in relevances if one.similarity >= request.min_similarity],
            embedding.vector,
            embedding.truncated or (words.cut and request.legs is not Legs.DENSE),
            also=also,
        )

    def _choose(
        self, by_words: Sequence[Scores], records: Mapping[str, Record], words: LexicalQuery
    ) -> tuple[Scores, _Best]:
        """The lexical pool to use, and its best hit."""
        heads = [next(iter(pool)) for pool in by_words if pool]
        if not heads:
            return {}, _Best()
        bests = [self._best(records.get(head), words) for head in heads]
        form = bests[-1]
        if self._weights.words_decide(form.shared, code=form.code):
            return by_words[-1], form
        return by_words[0], bests[0]

    def _best(self, record: Record | None, words: LexicalQuery) -> _Best:
        if record is None:
            return _Best()
        text = self._searched.text_of(record)
        return _Best(words.overlap(text.whole), text.bare)

    def _meaning(self, legs: Legs, best: _Best) -> float:
        if legs is not Legs.HYBRID:
            return 1.0 if legs is Legs.DENSE else 0.0
        return self._weights.meaning(best.shared, code=best.code)


@dataclass(frozen=True, slots=True)
class _Best:
    """What the query shares with the best lexical hit, and whether that hit is bare code."""

    shared: Overlap = NO_OVERLAP
    code: bool = False


def _of_words(request: SearchRequest, words: LexicalQuery) -> list[SearchQuery]:
    """The lexical searches: without function words and, where it differs, with them."""
    if request.legs is Legs.DENSE:
        return []
    vectors = (words.vector, words.form) if words.form else (words.vector,)
    return [
        SearchQuery(SPARSE_VECTOR, one, request.pool, request.where, records=1) for one in vectors
    ]


async def embed_wordless(embedder: Embedder, query: str) -> Embedding:
    """A vector to record with a query that has no words; its value does not matter."""
    return await embedder.embed_query(query[:_WORDLESS_CHARACTERS])


async def _nothing() -> frozenset[str]:
    return frozenset()


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
