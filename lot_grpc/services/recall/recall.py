"""Recall, the same for every kind: one embedding, few calls to the store, one ranking pass.

The calls: one for LEARNED patterns whose expression may match, while the query is embedded; one
search; one read of the candidates that can reach the page; one search among the outcomes of those
near-ties that were ever used. With the embedded store, where a call costs little, another call
finds out whether the namespace has any outcomes: without them no near-tie beyond the page is read.
Of records with an importance the page is read first, and then only those near-ties that are
important enough to rise onto it.
``rerank`` adds a read of the candidates that the cross-encoder scores, ``explain`` adds counts, and
some hits need further reads: running episodes, memories of several passages.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from lot_grpc.domain.context_stats import Evidence
from lot_grpc.domain.fusion import FusionWeights, Relevance, boost
from lot_grpc.domain.query import Legs, Ranking
from lot_grpc.domain.ranking import (
    Candidate,
    Ranked,
    RankingWeights,
    ScorePart,
    contenders,
    pool_size,
    rank,
    within_margin,
)
from lot_grpc.ports import AllOf, Condition, Embedder, Embedding, Not, Record, VectorStore
from lot_grpc.services.recall.importance import ImportanceReader
from lot_grpc.services.recall.matching import Lazy, match_of
from lot_grpc.services.recall.reranks import Reranked, Reranks
from lot_grpc.services.recall.retrievals import Retrievals
from lot_grpc.services.recall.search import HybridSearch, SearchRequest
from lot_grpc.services.recall.search_target import SearchTarget
from lot_grpc.services.records.origin import RECALLABLE, held_back

T = TypeVar("T")

_UNLEARNED = (Ranking.RELEVANCE, Ranking.SIMILARITY)
_NOTHING_LEARNED = RankingWeights(reorder_margin=0.0, learned=0.0)
NOTHING_KNOWN = Evidence()


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """A query with its options. ``min_similarity`` 0: no bound. ``seed`` None: a random one.

    ``filters`` are conditions by the name of the request field that sets them. A caller that
    queries several kinds at once passes the ``embedding`` of the query and ``self_matched``, the
    points that declare themselves relevant to it (None: not looked up yet), and records and reports
    the answers itself: then each request is ``quiet`` and gets no retrieval_id.
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

    record: Record
    lazy_thing: Lazy[T]
    score: float
    similarity: float
    parts: tuple[ScorePart, ...]
    evidence: Evidence
    lazy_match: Lazy[float | None]

    @property
    def thing(self) -> T:
        """The resource."""
        return self.lazy_thing()

    @property
    def match(self) -> float | None:
        """The probability that it is for the same task, None if unknown."""
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
    for. ``unreached``: candidates that the cross-encoder had no time to read.
    """

    hits: list[Hit[T]]
    retrieval_id: str
    truncated: bool = False
    wordless: bool = False
    unreached: int = 0
    explanation: Explanation | None = None
    vector: Sequence[float] = ()


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
        self._important = ImportanceReader(store, target.searched.collection, target.importance)

    async def find(self, namespace: str, request: RecallRequest) -> Answer[T]:
        """The most relevant resources that meet the conditions, ranked."""
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
        seed = _seed(request, ranking)
        relevant = {one.id: one for one in found}
        tried = await self._tried(namespace)
        pages = [
            self._page(found, one, request.limit, candidates.also)
            for one in ((ranking,) if tried else (Ranking.RELEVANCE, ranking))
        ]
        weight = self._weights.weight_of(ranking)
        records = await self._important.read(
            namespace, found[: len(pages[0])], request.limit, weight, reranked.records
        )
        if records is None:
            records = await self._records(namespace, pages, reranked.records)
        if RECALLABLE in request.filters.get("reviews", ()):  # as it is now, not when searched
            records = {
                one: record for one, record in records.items() if not held_back(record.payload)
            }
        known: Mapping[str, Evidence] = {}
        if tried:
            known = await self._evidence(namespace, candidates.vector, found, records, ranking)
        near = [
            self._candidate(relevant[one], record, known.get(one, NOTHING_KNOWN))
            for one, record in records.items()
        ]
        hits = [
            await self._finding(
                request.query, ranked, relevant[ranked.candidate.id], records, known
            )
            for ranked in rank(
                near, ranking, self._weights, request.limit, seed or 0, candidates.also
            )
        ]
        retrieval_id = (
            "" if request.quiet else self._remember(namespace, request, candidates.vector, hits)
        )
        explanation = None
        if request.explain:
            explanation = await self._explain(namespace, request, ranking, len(found), seed)
        return Answer(
            hits,
            retrieval_id,
            candidates.truncated,
            candidates.wordless,
            reranked.unreached,
            explanation,
            candidates.vector,
        )

    def _remember(
        self,
        namespace: str,
        request: RecallRequest,
        vector: Sequence[float],
        hits: Sequence[Hit[T]],
    ) -> str:
        """Record and report the answer; return its retrieval_id."""
        key = self._target.id_key
        pairs = [(hit.record.payload[key], hit.similarity) for hit in hits]
        retrieval_id = self._retrievals.remember(
            namespace, request.query, vector, tuple(found for found, _ in pairs)
        )
        if self._target.on_recall is not None:
            # What only a reviewer finds is not for watchers, who may act on it.
            recallable = [
                pair
                for hit, pair in zip(hits, pairs, strict=True)
                if not held_back(hit.record.payload)
            ]
            self._target.on_recall(namespace, request.query, recallable, retrieval_id)
        return retrieval_id

    async def _self_matched(self, namespace: str, request: RecallRequest) -> frozenset[str]:
        """The points that declare themselves relevant; none when a single leg is measured."""
        if self._target.tasks is None or request.legs is not Legs.HYBRID:
            return frozenset()
        if request.self_matched is not None:
            return request.self_matched
        return frozenset(
            await self._target.tasks.matching(namespace, (request.query,), request.where)
        )

    def _page(
        self, found: Sequence[Relevance], ranking: Ranking, limit: int, reserved: Collection[str]
    ) -> list[str]:
        """The candidates that can reach the page."""
        readable = contenders([one.value for one in found], ranking, self._weights, limit)
        ids = [one.id for one in found]
        return ids[:readable] + [one for one in ids[readable:] if one in reserved][:1]

    async def _tried(self, namespace: str) -> bool:
        """Whether anything but relevance may reorder near-ties."""
        if self._target.learned is None:
            return self._target.ranks
        return not await self._target.learned.nothing(namespace)

    async def _records(
        self, namespace: str, pages: Sequence[Sequence[str]], known: Mapping[str, Record]
    ) -> Mapping[str, Record]:
        """The records of the first page of which none was deleted since, else of the last one."""
        collection, records = self._target.searched.collection, dict(known)
        there: dict[str, Record] = {}
        for page in pages:
            unread = [one for one in page if one not in records]
            if unread:
                records |= await self._store.get(collection, namespace, unread)
            there = {one: records[one] for one in page if one in records}
            if len(there) == len(page):
                break
        return there

    async def _evidence(
        self,
        namespace: str,
        vector: Sequence[float],
        found: Sequence[Relevance],
        records: Mapping[str, Record],
        ranking: Ranking,
    ) -> Mapping[str, Evidence]:
        """What outcomes say about the near-ties; nothing else is reordered."""
        near = found[: within_margin([one.value for one in found], ranking, self._weights)]
        if self._target.learned is None or not near:
            return {}
        there = [records[one.id] for one in near if one.id in records]
        return await self._target.learned.of(namespace, vector, there)

    def _candidate(self, found: Relevance, record: Record, known: Evidence) -> Candidate:
        importance = self._target.importance and self._target.importance(record)
        if known is NOTHING_KNOWN:
            return Candidate(found.id, found.value, importance=importance)
        successes, trials = known.same_query
        return Candidate(
            found.id,
            found.value,
            successes,
            trials,
            max(0.0, known.successes - successes),
            max(0.0, known.trials - trials),
            importance,
        )

    async def _finding(
        self,
        query: str,
        ranked: Ranked,
        relevance: Relevance,
        records: Mapping[str, Record],
        known: Mapping[str, Evidence],
    ) -> Hit[T]:
        point = ranked.candidate.id
        record = records[point]
        return Hit(
            record,
            await self._read(record),
            ranked.score,
            relevance.similarity,
            (*relevance.parts, *ranked.parts),
            known.get(point, NOTHING_KNOWN),
            Lazy(partial(self._match, query, record, relevance.similarity)),
        )

    async def _read(self, record: Record) -> Lazy[T]:
        if self._target.read is None:
            return Lazy(partial(self._target.decode, record))
        thing = await self._target.read(record)
        return Lazy(lambda: thing)

    def _match(self, query: str, record: Record, similarity: float) -> float | None:
        """The probability that it is for the same task, for kinds that are for tasks."""
        if not self._target.of_tasks:
            return None
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
