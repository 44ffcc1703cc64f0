"""What worked on similar tasks: the successful episodes with the best structural score.

An episode agrees with a task in category, type and complexity, or does not: at most eight groups,
each with one score but for the text. So the best of each group by cosine hold the best of all, and
a search in each, from the group that agrees most on, finds them exactly, however many episodes
there are. It ends where the next group can reach neither the bound nor the best so far; mostly one
or two searches are enough, which is why they are not sent in one batch.

Where the task or an episode names neither category nor type, there is nothing to agree in: the
score is then the cosine of both texts, in a group of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Protocol

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.episode import Episode, EpisodeStatus, search_text
from lot_grpc.domain.ids import ResourceRef
from lot_grpc.domain.ranking import ScorePart
from lot_grpc.domain.recommendation import (
    LEAST_COSINE,
    NEIGHBOURS,
    TEXT_ONLY,
    Agreement,
    Recommendations,
    StructuralWeights,
    TaskProfile,
    recommend,
)
from lot_grpc.domain.retrieval import RetrievedItem
from lot_grpc.lexical.bm25 import lexical_query
from lot_grpc.ports import (
    Condition,
    Embedder,
    Embedding,
    Equals,
    Missing,
    Not,
    Order,
    Range,
    Record,
    SearchQuery,
    VectorStore,
)
from lot_grpc.services.recall.matching import match_of
from lot_grpc.services.records.collections import EPISODES, SORT_KEY, TEXT_VECTOR
from lot_grpc.services.records.episodes import episode_from_record
from lot_grpc.services.time_slice import TimeSlice

_NEWEST_FIRST = Order(SORT_KEY, descending=True)
_EQUALS_WITHIN = 500
"""Of episodes with equal scores the newest are taken, from at most this many of their group; a
recurring task has thousands."""
_NOTHING = Agreement(category=False, task_type=False, complexity=False)
_SLACK = 1e-6
"""How far below the bound the store is queried; the exact bound is applied here."""


class Thresholds(Protocol):
    """Reads the thresholds that a namespace has set."""

    async def __call__(self, namespace: str) -> tuple[float, float]:
        """The minimum structural score that counts as similar, and the confidence boost."""


@dataclass(frozen=True, slots=True)
class SimilarEpisode:
    """An episode with its structural score; ``parts`` add up to it.

    ``match``: how likely it is of the same task, None where that is not known.
    """

    episode: Episode
    score: float
    similarity: float
    parts: tuple[ScorePart, ...]
    match: float | None = None

    def item(self) -> RetrievedItem:
        """It as a retrieval records it, without the episode."""
        one = self.episode
        resource = ResourceRef(ResourceKind.EPISODE, one.episode_id)
        version = (one.create_time, one.update_time, one.revision)
        return RetrievedItem(
            resource, version, self.score, self.similarity, (self.match,), self.parts
        )


@dataclass(frozen=True, slots=True)
class Recommended:
    """What to do, and the episodes it comes from, best first.

    ``truncated``: not all of the task was read. ``wordless``: it has no text to compare.
    """

    recommendations: Recommendations
    similar: list[SimilarEpisode]
    truncated: bool = False
    wordless: bool = False


@dataclass(frozen=True, slots=True)
class _Group:
    """The episodes of one status that agree with a task in the same attributes."""

    agreement: Agreement
    weights: StructuralWeights
    where: tuple[Condition, ...]
    bound: float
    """The least score that counts."""

    @property
    def least_cosine(self) -> float | None:
        """The least cosine that reaches the bound, up to rounding; None: any does."""
        lacking = self.bound - self.agreement.score(self.weights) - _SLACK
        return lacking / self.weights.text if lacking > 0 else None

    def hit(self, cosine: float) -> _Hit:
        """One of its episodes."""
        return _Hit(self.agreement.score(self.weights, cosine), cosine, self)


@dataclass(frozen=True, slots=True)
class _Hit:
    """An episode that was found."""

    score: float
    cosine: float
    group: _Group


class Recommender:
    """Recommends what worked on similar tasks."""

    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder,
        weights: StructuralWeights,
        thresholds: Thresholds,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._weights = weights
        self._thresholds = thresholds

    async def recommend(
        self,
        namespace: str,
        profile: TaskProfile,
        limit: int,
        min_score: float | None = None,
        given: asyncio.Future[Embedding] | None = None,
        *,
        matches: bool = True,
    ) -> Recommended:
        """What worked on similar tasks, from the best ``limit`` episodes.

        ``min_score`` None: the namespace's own threshold. ``given``: the embedding of the task, if
        the caller has it. ``matches``: whether to compute the ``match`` of each episode returned.
        """
        threshold, boost = await self._thresholds(namespace)
        bound = threshold if min_score is None else min_score
        least_cosine = max(threshold, LEAST_COSINE) if min_score is None else min_score
        most = max(limit, NEIGHBOURS)
        wordless = bool(profile.task) and not lexical_query(profile.task).terms
        embedding = None
        if profile.task and not wordless:
            embedding = await (given or self._embedder.embed_query(profile.task))
        vector = embedding.vector if embedding else None
        succeeded = EpisodeStatus.SUCCEEDED
        groups = self._groups(profile, vector, succeeded, bound, least_cosine)
        hits = await self._best(namespace, groups, vector, most)
        # Of the failed ones only those count that are among the most similar of all.
        edge = _edge(hits, NEIGHBOURS)
        groups = self._groups(
            profile, vector, EpisodeStatus.FAILED, max(bound, edge), max(least_cosine, edge)
        )
        hits |= await self._best(namespace, groups, vector, NEIGHBOURS)
        ranked = await self._read(namespace, hits)
        similar = [record for record in ranked if _status(record) is succeeded][:most]
        episodes = [episode_from_record(record) for record in similar]
        compared = profile.task if matches and embedding else ""
        return Recommended(
            recommend(
                episodes,
                profile.assessed,
                boost,
                [_status(record) for record in ranked[:NEIGHBOURS]],
            ),
            [
                self._matched(_similar(episode, hits[record.id]), compared)
                for episode, record in zip(episodes[:limit], similar, strict=False)
            ],
            embedding is not None and embedding.truncated,
            wordless,
        )

    def _groups(
        self,
        profile: TaskProfile,
        vector: Sequence[float] | None,
        status: EpisodeStatus,
        bound: float,
        least_cosine: float,
    ) -> list[_Group]:
        """The groups of a status that can reach the bounds, the best first."""
        groups = []
        named = bool(profile.category or profile.task_type)
        if vector is not None:
            nameless = (Missing("category"), Missing("task_type")) if named else ()
            groups.append(
                _Group(
                    _NOTHING, TEXT_ONLY, (Equals("status", status.value), *nameless), least_cosine
                )
            )
        if named or vector is None:
            groups += _structural(profile, self._weights, status, bound)
        return groups

    async def _best(
        self,
        namespace: str,
        groups: Sequence[_Group],
        vector: Sequence[float] | None,
        count: int,
    ) -> dict[str, _Hit]:
        """The best ``count`` that reach their bounds; of those equal to the last, the newest too.

        One more is asked of each group: only if that is equal to the last may others be hidden.
        """
        hits: dict[str, _Hit] = {}
        full, time_slice = [], TimeSlice()
        for group in groups:
            most = group.agreement.score(group.weights, 0.0 if vector is None else 1.0)
            if _edge(hits, count) > most:
                break
            found = await self._nearest(namespace, group, vector, count + 1)
            _take_best(hits, found)
            if len(found) > count:
                full.append((group, min(hit.score for hit in found.values())))
            await time_slice.give_way()
        edge = _edge(hits, count)
        hits = {point: hit for point, hit in hits.items() if hit.score >= edge}
        if vector is None:  # then a group has given its newest already
            return hits
        for group, last in full:
            if last == edge:
                equals = await self._equals(namespace, group, vector, edge, count)
                _take_best(hits, equals)
        return hits

    async def _nearest(
        self, namespace: str, group: _Group, vector: Sequence[float] | None, count: int
    ) -> dict[str, _Hit]:
        """The best of a group. Without a text to compare they are all equal: the newest."""
        if vector is None:
            newest = await self._newest(namespace, group, count)
            return {record.id: group.hit(0.0) for record in newest}
        query = SearchQuery(TEXT_VECTOR, vector, count, group.where, group.least_cosine)
        [found] = (await self._store.search(EPISODES, namespace, [query])).hits
        return {point: group.hit(cosine) for point, cosine in found.items()}

    async def _equals(
        self,
        namespace: str,
        group: _Group,
        vector: Sequence[float],
        score: float,
        count: int,
    ) -> dict[str, _Hit]:
        """The newest of a group that have just this score; its pool may hide them."""
        newest = await self._newest(namespace, group, _EQUALS_WITHIN)
        if not newest:
            return {}
        since = Range(SORT_KEY, gte=newest[-1].payload[SORT_KEY])
        where = (*group.where, since)
        query = SearchQuery(TEXT_VECTOR, vector, len(newest), where, group.least_cosine)
        [found] = (await self._store.search(EPISODES, namespace, [query])).hits
        hits = {record.id: group.hit(found[record.id]) for record in newest if record.id in found}
        equal = [(point, hit) for point, hit in hits.items() if hit.score == score]
        return dict(equal[:count])

    async def _newest(self, namespace: str, group: _Group, limit: int) -> list[Record]:
        return await self._store.scroll(
            EPISODES,
            namespace,
            group.where,
            limit=limit,
            order=_NEWEST_FIRST,
            payload=(SORT_KEY,),
        )

    async def _read(self, namespace: str, hits: dict[str, _Hit]) -> list[Record]:
        """Best first, of equals the newest, without those deleted since."""
        records = await self._store.get(EPISODES, namespace, list(hits))
        return sorted(
            records.values(),
            key=lambda record: (-hits[record.id].score, -record.payload[SORT_KEY], record.id),
        )

    def _matched(self, one: SimilarEpisode, task: str) -> SimilarEpisode:
        """The same with its ``match``. Comparing texts is slow: only for what is returned."""
        if not task:
            return one
        text = search_text(one.episode.start, one.episode.end)
        return replace(one, match=match_of(self._embedder, task, text, one.similarity))


def _status(record: Record) -> EpisodeStatus:
    return EpisodeStatus(record.payload["status"])


def _similar(episode: Episode, hit: _Hit) -> SimilarEpisode:
    return SimilarEpisode(
        episode,
        hit.score,
        min(1.0, max(0.0, hit.cosine)),
        hit.group.agreement.parts(hit.group.weights, hit.cosine),
    )


def _take_best(hits: dict[str, _Hit], found: dict[str, _Hit]) -> None:
    """Add what reaches its bound; of an episode in two groups the better score counts."""
    for point, hit in found.items():
        if hit.score >= max(hit.group.bound, hits[point].score if point in hits else 0.0):
            hits[point] = hit


def _structural(
    profile: TaskProfile, weights: StructuralWeights, status: EpisodeStatus, bound: float
) -> Iterator[_Group]:
    """The groups by what agrees that can reach the bound, the best first."""
    values = {
        "category": profile.category,
        "task_type": profile.task_type,
        "complexity": profile.assessed.value,
    }
    agreements = [
        Agreement(category, task_type, complexity)
        for category, task_type, complexity in product((True, False), repeat=3)
        if (not category or values["category"]) and (not task_type or values["task_type"])
    ]
    agreements.sort(key=lambda one: -one.score(weights))
    for agreement in agreements:
        if bound - agreement.score(weights) - _SLACK <= weights.text:
            where = (Equals("status", status.value), *_agreeing(agreement, values))
            yield _Group(agreement, weights, where, bound)


def _agreeing(agreement: Agreement, values: dict[str, str]) -> Iterator[Condition]:
    for key, value in values.items():
        if value:
            same = Equals(key, value)
            yield same if getattr(agreement, key) else Not(same)


def _edge(hits: dict[str, _Hit], count: int) -> float:
    """The score of the ``count``-th best; 0 while there are fewer."""
    if len(hits) < count:
        return 0.0
    return sorted((hit.score for hit in hits.values()), reverse=True)[count - 1]
