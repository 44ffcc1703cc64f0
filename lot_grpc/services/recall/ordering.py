"""Ranks candidates by what was learned and by importance, and reads those of the page.

The page by relevance is read while the outcomes of the near-ties are looked up. What outcomes raise
onto the page is read after that, and so is what may rise onto it by its importance.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from lot_grpc.domain.context_stats import Evidence
from lot_grpc.domain.fusion import Relevance
from lot_grpc.domain.query import Ranking
from lot_grpc.domain.ranking import (
    Candidate,
    Ranked,
    RankingWeights,
    before_importance,
    contenders,
    rank,
    within_margin,
)
from lot_grpc.ports import Record, VectorStore
from lot_grpc.services.recall.importance import ImportanceReader
from lot_grpc.services.recall.search_target import SearchTarget
from lot_grpc.services.records.origin import held_back

T = TypeVar("T")

NOTHING_KNOWN = Evidence()


@dataclass(frozen=True, slots=True)
class OrderRequest:
    """How to order candidates. ``vector`` is the query's; ``reserved`` as in ``ranking.rank``.

    ``learned``: whether what was learned counts. ``recallable``: whether to omit what is held back
    when it is read, even if it was not when it was found.
    """

    namespace: str
    vector: Sequence[float]
    ranking: Ranking
    limit: int
    seed: int
    reserved: Collection[str]
    learned: bool = True
    recallable: bool = False

    def admit(self, records: Mapping[str, Record]) -> Mapping[str, Record]:
        """The records that may be returned."""
        if not self.recallable:
            return records
        return {point: one for point, one in records.items() if not held_back(one.payload)}


@dataclass(frozen=True, slots=True)
class Ordered:
    """The page, and for each candidate on it, by point, the record and its outcomes."""

    ranked: Sequence[Ranked]
    records: Mapping[str, Record]
    evidence: Mapping[str, Evidence]


class Ordering(Generic[T]):
    """Orders candidates of one kind."""

    def __init__(
        self, store: VectorStore, target: SearchTarget[T], weights: RankingWeights
    ) -> None:
        self._store = store
        self._target = target
        self._weights = weights
        self._collection = target.searched.collection
        self._important = None
        if target.importance is not None:
            self._important = ImportanceReader(store, self._collection, target.importance)

    async def order(
        self, request: OrderRequest, found: Sequence[Relevance], known: Mapping[str, Record]
    ) -> Ordered:
        """The best candidates. ``found``: most relevant first; ``known``: records by point."""
        known = request.admit(known)
        contending = self._contending(found, request)
        page = _with_reserved(contending, request.limit, request)
        evidence, records = await self._look_up(request, found, page, known)
        near = contending if evidence else page
        if self._important is not None:
            rising = await self._rising(request, contending, evidence, records)
            records = {**records, **request.admit(rising)}
            near = contending if evidence else [one for one in contending if one.id in records]
        ranked = self._rank(request, near, evidence, records)
        chosen = [one.candidate for one in ranked]
        if self._important is None:
            records = await self._read(request, chosen, records)
        if any(one.id not in records for one in chosen):  # some are gone since the search
            records = await self._read(request, contending, records)
            near = [one for one in contending if one.id in records]
            ranked = self._rank(request, near, evidence, records)
        return Ordered(ranked, records, evidence)

    async def _look_up(
        self,
        request: OrderRequest,
        found: Sequence[Relevance],
        page: Sequence[Relevance],
        known: Mapping[str, Record],
    ) -> tuple[Mapping[str, Evidence], Mapping[str, Record]]:
        """The outcomes, and the records of the page; from another server both are read at once."""
        if not self._store.exclusive:
            return await asyncio.gather(
                self._evidence(request, found), self._read(request, page, known)
            )
        evidence = await self._evidence(request, found)
        if evidence and self._important is None:
            return evidence, known  # only ranking tells which records are needed
        return evidence, await self._read(request, page, known)

    def _contending(self, found: Sequence[Relevance], request: OrderRequest) -> list[Relevance]:
        """The candidates that can reach the page."""
        values = [one.value for one in found]
        count = contenders(values, request.ranking, self._weights, request.limit)
        return _with_reserved(found, count, request)

    async def _read(
        self,
        request: OrderRequest,
        those: Iterable[Relevance | Candidate],
        known: Mapping[str, Record],
    ) -> Mapping[str, Record]:
        """The known records, and those of the candidates that still exist."""
        unread = [one.id for one in those if one.id not in known]
        if not unread:
            return known
        read = await self._store.get(self._collection, request.namespace, unread)
        return {**known, **request.admit(read)}

    async def _evidence(
        self, request: OrderRequest, found: Sequence[Relevance]
    ) -> Mapping[str, Evidence]:
        """What outcomes say about the near-ties; nothing else is reordered."""
        learned, weights = self._target.learned, self._weights
        if learned is None or not request.learned or not found:
            return {}
        if not weights.weight_of(request.ranking) or await learned.nothing(request.namespace):
            return {}
        near = within_margin([one.value for one in found], request.ranking, weights)
        points = [one.id for one in found[:near]]
        return await learned.of(request.namespace, request.vector, points)

    async def _rising(
        self,
        request: OrderRequest,
        contending: Sequence[Relevance],
        evidence: Mapping[str, Evidence],
        records: Mapping[str, Record],
    ) -> Mapping[str, Record]:
        """The records beyond the page that may rise onto it by their importance."""
        assert self._important is not None
        scores = [one.value for one in contending]
        if evidence:
            candidates = [self._candidate(one, evidence, {}) for one in contending]
            scores = before_importance(candidates, request.ranking, self._weights, request.seed)
        near_ties = [(one.id, score) for one, score in zip(contending, scores, strict=True)]
        weight = self._weights.importance if self._weights.most(request.ranking) else 0.0
        return await self._important.rising(
            request.namespace, near_ties, request.limit, weight, records
        )

    def _rank(
        self,
        request: OrderRequest,
        near: Sequence[Relevance],
        evidence: Mapping[str, Evidence],
        records: Mapping[str, Record],
    ) -> list[Ranked]:
        candidates = [self._candidate(one, evidence, records) for one in near]
        return rank(
            candidates,
            request.ranking,
            self._weights,
            request.limit,
            request.seed,
            request.reserved,
        )

    def _candidate(
        self, found: Relevance, evidence: Mapping[str, Evidence], records: Mapping[str, Record]
    ) -> Candidate:
        """A candidate. One whose importance was not read counts as unimportant: it cannot rise."""
        importance = None
        if self._target.importance is not None:
            record = records.get(found.id)
            importance = self._target.importance(record) if record is not None else 0.0
        known = evidence.get(found.id)
        if known is None:
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


def _with_reserved(
    found: Sequence[Relevance], count: int, request: OrderRequest
) -> list[Relevance]:
    """The first ones, and the first of the reserved if it comes after them."""
    reserved = request.reserved
    behind = [one for one in found[count:] if one.id in reserved] if reserved else []
    return [*found[:count], *behind[:1]]
