"""Recall, the same for every kind: one embedding, few calls to the store, one ranking pass.

The calls: one for LEARNED patterns whose expression may match, while the query is embedded; one
search; one search among the outcomes of the near-ties, and at the same time one read of the page;
one read of what outcomes or importance raise onto the page, if anything. With the embedded store,
where a call costs little, another call finds out first whether any outcomes of the kind are known.
``rerank`` adds a read of the candidates that the cross-encoder scores, ``explain`` adds counts, and
some hits need further reads: running episodes, memories of several passages.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from lot_grpc.domain.context_stats import Evidence
from lot_grpc.domain.fusion import FusionWeights, Relevance, boost
from lot_grpc.domain.ids import ResourceRef
from lot_grpc.domain.match_probability import NONE_LEFT_OUT, LeftOut, fitting
from lot_grpc.domain.query import Legs, Ranking
from lot_grpc.domain.ranking import (
    Ranked,
    RankingWeights,
    ScorePart,
    pool_size,
)
from lot_grpc.domain.retrieval import RetrievalOptions, RetrievedItem, version_of
from lot_grpc.ports import AllOf, Condition, Embedder, Embedding, Not, Record, VectorStore
from lot_grpc.services.recall.matching import Lazy, judged, match_of
from lot_grpc.services.recall.ordering import NOTHING_KNOWN, Ordered, Ordering, OrderRequest
from lot_grpc.services.recall.reranks import Reranked, Reranks
from lot_grpc.services.recall.search import HybridSearch, SearchRequest
from lot_grpc.services.recall.search_target import SearchTarget
from lot_grpc.services.records.origin import RECALLABLE, held_back
from lot_grpc.services.retrievals.retrievals import BegunRetrieval, Retrievals
from lot_grpc.telemetry.spans import span

T = TypeVar("T")

_UNLEARNED = (Ranking.RELEVANCE, Ranking.SIMILARITY)
_NOTHING_LEARNED = RankingWeights(reorder_margin=0.0, learned=0.0)


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """A query with its options. ``min_similarity`` 0: no bound. ``seed`` None: a random one.

    ``min_match`` omits what is less likely to fit; None: no bound. ``as_of`` is only recorded.
    ``filters`` are conditions by the name of the request field that sets them. A caller that
    queries several kinds at once passes the ``embedding`` of the query and ``self_matched``, the
    points that declare themselves relevant to it (None: not looked up yet), and records and reports
    the answers itself: then each request is ``quiet`` and gets no retrieval_id. With ``holdout``,
    hits are ranked as if nothing had been learned.
    """

    query: str
    filters: Mapping[str, Sequence[Condition]]
    limit: int
    min_similarity: float = 0.0
    ranking: Ranking = Ranking.BALANCED
    seed: int | None = None
    rerank: bool = False
    explain: bool = False
    legs: Legs = Legs.HYBRID
    embedding: asyncio.Future[Embedding] | None = None
    self_matched: frozenset[str] | None = None
    quiet: bool = False
    min_match: float | None = None
    as_of: int | None = None
    holdout: bool | None = None

    @property
    def where(self) -> list[Condition]:
        """All conditions that must hold."""
        return [one for conditions in self.filters.values() for one in conditions]


@dataclass(frozen=True, slots=True)
class Hit(Generic[T]):
    """A resource that was found. ``parts`` add up to the score and are based on ``evidence``.

    ``lazy_thing`` and ``lazy_match`` compute ``thing`` and ``match`` on first use. ``record`` is
    that of the resource.
    """

    resource: ResourceRef
    record: Record
    lazy_thing: Lazy[T]
    score: float
    similarity: float
    parts: tuple[ScorePart, ...]
    evidence: Evidence
    lazy_match: Lazy[float | None]

    def item(self) -> RetrievedItem:
        """It as a retrieval records it, without its record."""
        version, matches = version_of(self.record.payload), self.lazy_match.values
        score, similarity = self.score, self.similarity
        return RetrievedItem(self.resource, version, score, similarity, matches, self.parts)

    @property
    def thing(self) -> T:
        """The resource."""
        return self.lazy_thing()

    @property
    def match(self) -> float | None:
        """The probability that it fits the query, None if unknown."""
        return self.lazy_match()


@dataclass(frozen=True, slots=True)
class Explanation:
    """How an answer came about.

    ``removed``: by filter, how many resources of the namespace that filter alone excludes. ``seed``
    is the one used by EXPLORE.
    """

    ranking: Ranking
    pool: int
    weights: RankingWeights
    matching: int
    in_namespace: int
    removed: Mapping[str, int]
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """The hits, and how they came about. ``vector`` is the query's.

    ``truncated``: not all of the query was read. ``wordless``: the query has no words to search
    for. ``unreached``: candidates that the cross-encoder had no time to read. ``left_out``:
    those below ``min_match`` that would have been on the page.
    """

    hits: list[Hit[T]]
    retrieval_id: str
    truncated: bool = False
    wordless: bool = False
    unreached: int = 0
    explanation: Explanation | None = None
    vector: Sequence[float] = ()
    left_out: LeftOut = NONE_LEFT_OUT


class Recall(Generic[T]):
    """Finds resources of one kind, by meaning and by words."""

    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder,
        retrievals: Retrievals,
        reranks: Reranks,
        weights: RankingWeights,
        target: SearchTarget[T],
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._searching = HybridSearch(store, embedder, target.searched, FusionWeights())
        self._retrievals = retrievals
        self._reranks = reranks
        self._weights = weights
        self._target = target
        self._ordering = Ordering(store, target, weights)

    async def find(self, namespace: str, request: RecallRequest) -> Answer[T]:
        """The most relevant resources that meet the conditions, ranked.

        Raises MatchUnavailableError.
        """
        limit = judged(self._embedder, request.min_match, request.limit)
        begun = None if request.quiet else await self._retrievals.begin(namespace)
        if request.ranking is Ranking.SIMILARITY:
            request = replace(request, legs=Legs.DENSE)  # its relevance is the similarity
        search = SearchRequest(
            request.query,
            request.where,
            pool_size(request.limit),
            request.min_similarity,
            request.legs,
            partial(self._self_matched, namespace, request),
            request.embedding,
        )
        candidates = await self._searching.search(namespace, search)
        reranked = Reranked(candidates.found)
        if request.rerank:
            excerpts = self._target.excerpts
            reranked = await self._reranks.rerank(
                namespace,
                self._target.searched,
                request.query,
                candidates.found,
                partial(excerpts, candidates.vector) if excerpts else None,
            )
        found = boost(reranked.found, candidates.also, self._weights.reorder_margin)
        ranking = request.ranking if self._target.ranks else Ranking.RELEVANCE
        if begun and self._target.learned is not None and ranking not in _UNLEARNED:
            request = replace(request, holdout=begun.holdout)
        seed = _seed(request, ranking)
        order = OrderRequest(
            namespace,
            candidates.vector,
            ranking,
            limit,
            seed or 0,
            candidates.also,
            learned=not request.holdout,
            recallable=RECALLABLE in request.filters.get("reviews", ()),
        )
        with span("ranking"):
            ordered = await self._ordering.order(order, found, reranked.records)
            relevant = {one.id: one for one in found}
            ranked = [
                await self._finding(request.query, one, relevant[one.candidate.id], ordered)
                for one in ordered.ranked
            ]
            hits, left_out = fitting(ranked, request.min_match, request.limit)
        explanation = None
        if request.explain:
            explanation = await self._explain(namespace, request, ranking, len(found), seed)
        return Answer(
            hits,
            self._remember(begun, request, ranking, candidates.vector, hits) if begun else "",
            candidates.truncated,
            candidates.wordless,
            reranked.unreached,
            explanation,
            candidates.vector,
            left_out,
        )

    def _remember(
        self,
        begun: BegunRetrieval,
        request: RecallRequest,
        ranking: Ranking,
        vector: Sequence[float],
        hits: Sequence[Hit[T]],
    ) -> str:
        """Record and report the answer; return its retrieval_id."""
        options = RetrievalOptions(
            ranking=ranking,
            limit=request.limit,
            min_similarity=request.min_similarity,
            min_match=request.min_match,
            as_of=request.as_of,
            rerank=request.rerank,
            holdout=request.holdout,
        )
        items = [hit.item() for hit in hits]
        retrieval = self._retrievals.remember(
            begun, self._target.method, request.query, vector, items, options
        )
        if self._target.on_recall is not None:
            # Watchers may act on what they are told, so they get nothing that is held back.
            recallable = [
                (hit.resource.id, hit.similarity)
                for hit in hits
                if not held_back(hit.record.payload)
            ]
            self._target.on_recall(
                begun.namespace, retrieval.query, recallable, retrieval.retrieval_id
            )
        return retrieval.retrieval_id

    async def _self_matched(self, namespace: str, request: RecallRequest) -> frozenset[str]:
        """The points that declare themselves relevant; none when a single leg is measured."""
        if self._target.tasks is None or request.legs is not Legs.HYBRID:
            return frozenset()
        if request.self_matched is not None:
            return request.self_matched
        return frozenset(
            await self._target.tasks.matching(namespace, (request.query,), request.where)
        )

    async def _finding(
        self,
        query: str,
        ranked: Ranked,
        relevance: Relevance,
        ordered: Ordered,
    ) -> Hit[T]:
        point = ranked.candidate.id
        record = ordered.records[point]
        return Hit(
            ResourceRef(self._target.kind, record.payload[self._target.id_key]),
            record,
            await self._read(record),
            ranked.score,
            relevance.similarity,
            (*relevance.parts, *ranked.parts),
            ordered.evidence.get(point, NOTHING_KNOWN),
            Lazy(partial(self._match, query, record, relevance.similarity)),
        )

    async def _read(self, record: Record) -> Lazy[T]:
        if self._target.read is None:
            return Lazy(partial(self._target.decode, record))
        thing = await self._target.read(record)
        return Lazy(lambda: thing)

    def _match(self, query: str, record: Record, similarity: float) -> float | None:
        """The probability that it fits the query."""
        return match_of(self._embedder, query, self._target.searched.text_of(record), similarity)

    async def _explain(
        self, namespace: str, request: RecallRequest, ranking: Ranking, pool: int, seed: int | None
    ) -> Explanation:
        collection = self._target.searched.collection
        removed = {}
        for name, conditions in request.filters.items():
            out = Not(AllOf(tuple(conditions)))
            removed[name] = await self._store.count(collection, namespace, [out])
        return Explanation(
            ranking,
            pool,
            self._weights if ranking not in _UNLEARNED else _NOTHING_LEARNED,
            await self._store.count(collection, namespace, request.where),
            await self._store.count(collection, namespace),
            removed,
            seed,
        )


def _seed(request: RecallRequest, ranking: Ranking) -> int | None:
    """The seed for sampling: as given, else a random one, which the explanation reports."""
    if ranking is not Ranking.EXPLORE:
        return None
    return request.seed if request.seed is not None else random.getrandbits(63)
