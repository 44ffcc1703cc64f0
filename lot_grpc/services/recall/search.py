"""Candidates for an answer: both legs in one batch to the store, fused into one list.

The dense leg looks into every vector of a kind (``text``, and ``code`` where it has code) and a
thing counts by its best one; the lexical leg into ``bm25``. The store gives no payloads: to read
those of a whole pool costs more than to find it. A hit that only one leg brought gets its true
cosine by a second search among just those ids, so that ``similarity`` means the same for each hit.

Words are looked for twice in that batch, with function words and without; which of both counts is
decided by the best hits (``domain.fusion``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from lot_grpc.domain.fusion import NO_OVERLAP, FusionWeights, Overlap, Relevance, fuse
from lot_grpc.domain.query import Legs
from lot_grpc.lexical.bm25 import LexicalQuery, lexical_query
from lot_grpc.ports import (
    Condition,
    Embedder,
    Embedding,
    IdIn,
    Record,
    Scores,
    SearchQuery,
    VectorStore,
)
from lot_grpc.services.recall.search_fields import SearchFields
from lot_grpc.services.records.collections import SPARSE_VECTOR

_WORDLESS_CHARACTERS = 256
"""Read of a query without words, for the record of it alone."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What to look for. ``min_similarity`` 0: no bound. ``pool``: hits of each leg.

    ``also`` finds points that are candidates whatever the legs say; ``where`` must hold for them.
    It is asked while the query is embedded. ``embedding`` of the query, where somebody else makes
    it: until it is there the words are looked for.
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

    ``truncated``: not all of the query was read. ``wordless``: it has nothing to look for.
    ``also``: what ``SearchRequest.also`` found.
    """

    found: list[Relevance]
    vector: Sequence[float]
    truncated: bool = False
    wordless: bool = False
    also: frozenset[str] = frozenset()


class HybridSearch:
    """Searches one kind."""

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
        """What comes into question, the most relevant first."""
        words = lexical_query(request.query)
        if not words.terms:
            embedding = await (request.embedding or embed_wordless(self._embedder, request.query))
            return Candidates([], embedding.vector, wordless=True)
        early: list[Scores] | None = None
        if request.embedding is not None and not request.embedding.done():
            early = await self._by_words(namespace, request, words)
        embedding, also = await asyncio.gather(
            request.embedding or self._embedder.embed_query(request.query),
            request.also() if request.also else _nothing(),
        )
        pools, by_words = await self._legs(namespace, request, embedding.vector, words, early)
        lexical, best = await self._decided(namespace, by_words, words)
        cosines = await self._cosines(namespace, request, pools, lexical, embedding.vector, also)
        similar, others = _apart(pools, cosines, request.pool)
        lexical = {point: score for point, score in lexical.items() if point in cosines}
        found = fuse(similar, others, lexical, self._meaning(request.legs, best))
        return Candidates(
            [one for one in found if one.similarity >= request.min_similarity],
            embedding.vector,
            embedding.truncated or (words.cut and request.legs is not Legs.DENSE),
            also=also,
        )

    async def _by_words(
        self, namespace: str, request: SearchRequest, words: LexicalQuery
    ) -> list[Scores]:
        """The pools of the words alone."""
        queries = _of_words(request, words)
        if not queries:
            return []
        return await self._store.search(self._searched.collection, namespace, queries)

    async def _legs(
        self,
        namespace: str,
        request: SearchRequest,
        vector: Sequence[float],
        words: LexicalQuery,
        early: list[Scores] | None,
    ) -> tuple[dict[str, Scores], list[Scores]]:
        """The pool of each dense vector, by its name, and those of the words (``early``: known)."""
        dense = self._searched.dense if request.legs is not Legs.BM25 else ()
        queries = [
            SearchQuery(
                name,
                vector,
                request.pool,
                request.where,
            )
            for name in dense
        ]
        if early is None:
            queries += _of_words(request, words)
        found = await self._store.search(self._searched.collection, namespace, queries)
        by_words = found[len(dense) :] if early is None else early
        return dict(zip(dense, found[: len(dense)], strict=True)), by_words

    async def _cosines(
        self,
        namespace: str,
        request: SearchRequest,
        pools: Mapping[str, Scores],
        lexical: Scores,
        vector: Sequence[float],
        also: frozenset[str],
    ) -> Scores:
        """The best cosine of every hit of any leg.

        A pool that is not full has all there is, so only full ones hide some.
        """
        hits = {point for pool in pools.values() for point in pool} | lexical.keys() | also
        cosines: Scores = {}
        queries = []
        for name in self._searched.dense:
            pool = pools.get(name)
            for point, cosine in (pool or {}).items():
                cosines[point] = max(cosine, cosines.get(point, 0.0))
            hidden = hits if pool is None else hits - pool.keys()
            if hidden and (pool is None or len(pool) >= request.pool):
                ids = IdIn(tuple(hidden))
                queries.append(SearchQuery(name, vector, len(hidden), (ids,)))
        if queries:
            for found in await self._store.search(self._searched.collection, namespace, queries):
                for point, cosine in found.items():
                    cosines[point] = max(cosine, cosines.get(point, 0.0))
        return cosines

    async def _decided(
        self, namespace: str, by_words: Sequence[Scores], words: LexicalQuery
    ) -> tuple[Scores, _Best]:
        """The pool of the words that counts, and its best hit."""
        heads = [min(pool, key=lambda point: (-pool[point], point)) for pool in by_words if pool]
        if not heads:
            return {}, _Best()
        records = await self._store.get(self._searched.collection, namespace, list(set(heads)))
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
    """What the query has in common with the best lexical hit, and whether that is bare code."""

    shared: Overlap = NO_OVERLAP
    code: bool = False


def _of_words(request: SearchRequest, words: LexicalQuery) -> list[SearchQuery]:
    """The searches for words: the telling ones, and where it differs with function words."""
    if request.legs is Legs.DENSE:
        return []
    vectors = (words.vector, words.form) if words.form else (words.vector,)
    return [SearchQuery(SPARSE_VECTOR, one, request.pool, request.where) for one in vectors]


async def embed_wordless(embedder: Embedder, query: str) -> Embedding:
    """The vector of a query that has no words; whatever it is, it is remembered with the query."""
    return await embedder.embed_query(query[:_WORDLESS_CHARACTERS])


async def _nothing() -> frozenset[str]:
    return frozenset()


def _apart(pools: Mapping[str, Scores], cosines: Scores, pool: int) -> tuple[Scores, Scores]:
    """The dense leg's hits, at most ``pool`` of them, and the rest of the hits."""
    dense = {point for found in pools.values() for point in found if point in cosines}
    if len(dense) > pool:
        dense = set(sorted(dense, key=lambda point: (-cosines[point], point))[:pool])
    similar = {point: _share(cosine) for point, cosine in cosines.items() if point in dense}
    return similar, {
        point: _share(cosine) for point, cosine in cosines.items() if point not in dense
    }


def _share(cosine: float) -> float:
    """Rounding may take a cosine a little past 1; a negative one is no similarity at all."""
    return min(1.0, max(0.0, cosine))
