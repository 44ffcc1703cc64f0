"""What worked on like tasks: the successful episodes with the best structural score.

An episode agrees with a task in category, type and complexity, or does not: at most eight groups,
each with one score but for the text. So the best of each group by cosine hold the best of all, and
a search in each, from the group that agrees most on, finds them exactly, however many episodes
there are. It ends where the next group can reach neither the bound nor the best so far; mostly one
or two searches are enough, which is why they are not sent in one batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol

from lot_grpc.domain.episode import Episode, EpisodeStatus
from lot_grpc.domain.ranking import ScorePart
from lot_grpc.domain.recommendation import (
    DEFAULT_BOOST,
    DEFAULT_THRESHOLD,
    NEIGHBOURS,
    Agreement,
    Recommendations,
    StructuralWeights,
    TaskProfile,
    recommend,
)
from lot_grpc.lexical.bm25 import lexical_query
from lot_grpc.ports import (
    Condition,
    Embedder,
    Embedding,
    Equals,
    Not,
    Order,
    Range,
    Record,
    SearchQuery,
    VectorStore,
)
from lot_grpc.services.records.collections import EPISODES, SORT_KEY, TEXT_VECTOR
from lot_grpc.services.records.episodes import episode_from_record

_SUCCEEDED = Equals("status", EpisodeStatus.SUCCEEDED.value)
_NEWEST_FIRST = Order(SORT_KEY, descending=True)
_EQUALS_WITHIN = 500
"""Of episodes with equal scores the newest are taken, as far as they lie within so many of their
group; a task that recurs has thousands."""
_SLACK = 1e-6
"""By how much the store is asked for less than the bound, which is then held to here."""


class Thresholds(Protocol):
    """What a namespace has set for itself."""

    async def __call__(self, namespace: str) -> tuple[float, float]:
        """The least structural score that counts as similar, and the boost of the confidence."""


async def default_thresholds(namespace: str) -> tuple[float, float]:
    """Those of a namespace that has set nothing."""
    return DEFAULT_THRESHOLD, DEFAULT_BOOST


@dataclass(frozen=True, slots=True)
class SimilarEpisode:
    """An episode with its structural score; ``parts`` add up to it."""

    episode: Episode
    score: float
    similarity: float
    parts: tuple[ScorePart, ...]


@dataclass(frozen=True, slots=True)
class Recommended:
    """What to do, and from which episodes, best first.

    ``truncated``: not all of the task was read. ``wordless``: it has no text to compare.
    """

    recommendations: Recommendations
    similar: list[SimilarEpisode]
    truncated: bool = False
    wordless: bool = False


@dataclass(frozen=True, slots=True)
class _Group:
    """The successful episodes that agree with a task in just so much."""

    agreement: Agreement
    where: tuple[Condition, ...]
    least_cosine: float | None
    """None: any will do."""


@dataclass(frozen=True, slots=True)
class _Hit:
    """An episode that was found."""

    score: float
    cosine: float
    group: _Group


class Recommending:
    """Recommendations in all namespaces."""

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
    ) -> Recommended:
        """What worked on like tasks, with the best ``limit`` of them.

        ``min_score`` None: the namespace's own threshold. ``given``: the embedding of the task,
        where somebody else makes it.
        """
        threshold, boost = await self._thresholds(namespace)
        bound = threshold if min_score is None else min_score
        groups = list(_groups(profile, self._weights, bound))
        wanted = max(limit, NEIGHBOURS)
        wordless = bool(profile.task) and not lexical_query(profile.task).terms
        embedding = None
        if profile.task and not wordless:
            embedding = await (given or self._embedder.embed_query(profile.task))
        vector = embedding.vector if embedding else None
        hits = await self._best(namespace, groups, vector, wanted, bound)
        similar = await self._read(namespace, hits, wanted)
        episodes = [one.episode for one in similar]
        return Recommended(
            recommend(episodes, profile.assessed, boost),
            similar[:limit],
            embedding is not None and embedding.truncated,
            wordless,
        )

    async def _best(
        self,
        namespace: str,
        groups: Sequence[_Group],
        vector: Sequence[float] | None,
        wanted: int,
        bound: float,
    ) -> dict[str, _Hit]:
        """The best ``wanted`` that reach the bound; of those equal to the last, the newest too.

        One more is asked of each group: only if that is equal to the last may others be hidden.
        """
        hits: dict[str, _Hit] = {}
        full = []
        for group in groups:
            most = group.agreement.score(self._weights, 0.0 if vector is None else 1.0)
            if _edge(hits, wanted) > most:
                break
            found = await self._nearest(namespace, group, vector, wanted + 1)
            hits |= found
            if len(found) > wanted:
                full.append((group, min(hit.score for hit in found.values())))
            await asyncio.sleep(0)  # seven searches must not hold all other calls
        edge = max(bound, _edge(hits, wanted))
        hits = {point: hit for point, hit in hits.items() if hit.score >= edge}
        if vector is None:  # then a group has given its newest already
            return hits
        for group, last in full:
            if last == edge:
                hits |= await self._equals(namespace, group, vector, edge, wanted)
        return hits

    async def _nearest(
        self, namespace: str, group: _Group, vector: Sequence[float] | None, wanted: int
    ) -> dict[str, _Hit]:
        """The best of a group. Without a text to compare they are all equal: the newest."""
        if vector is None:
            newest = await self._newest(namespace, group, wanted)
            return {record.id: self._hit(group, 0.0) for record in newest}
        query = SearchQuery(TEXT_VECTOR, vector, wanted, group.where, group.least_cosine)
        [found] = await self._store.search(EPISODES, namespace, [query])
        return {point: self._hit(group, cosine) for point, cosine in found.items()}

    async def _equals(
        self,
        namespace: str,
        group: _Group,
        vector: Sequence[float],
        score: float,
        wanted: int,
    ) -> dict[str, _Hit]:
        """The newest of a group that have just this score; its pool may hide them."""
        newest = await self._newest(namespace, group, _EQUALS_WITHIN)
        if not newest:
            return {}
        since = Range(SORT_KEY, gte=newest[-1].payload[SORT_KEY])
        where = (*group.where, since)
        query = SearchQuery(TEXT_VECTOR, vector, len(newest), where, group.least_cosine)
        [found] = await self._store.search(EPISODES, namespace, [query])
        hits = {
            record.id: self._hit(group, found[record.id]) for record in newest if record.id in found
        }
        equal = [(point, hit) for point, hit in hits.items() if hit.score == score]
        return dict(equal[:wanted])

    async def _newest(self, namespace: str, group: _Group, limit: int) -> list[Record]:
        return await self._store.scroll(
            EPISODES,
            namespace,
            group.where,
            limit=limit,
            order=_NEWEST_FIRST,
            payload=(SORT_KEY,),
        )

    def _hit(self, group: _Group, cosine: float) -> _Hit:
        return _Hit(group.agreement.score(self._weights, cosine), cosine, group)

    async def _read(
        self, namespace: str, hits: dict[str, _Hit], wanted: int
    ) -> list[SimilarEpisode]:
        """The best, of equal ones the newest first. One deleted since is left out."""
        records = await self._store.get(EPISODES, namespace, list(hits))
        ranked = sorted(
            records.values(),
            key=lambda record: (-hits[record.id].score, -record.payload[SORT_KEY], record.id),
        )
        return [self._similar(record, hits[record.id]) for record in ranked[:wanted]]

    def _similar(self, record: Record, hit: _Hit) -> SimilarEpisode:
        return SimilarEpisode(
            episode_from_record(record),
            hit.score,
            min(1.0, max(0.0, hit.cosine)),
            hit.group.agreement.parts(self._weights, hit.cosine),
        )


def _groups(profile: TaskProfile, weights: StructuralWeights, bound: float) -> Iterator[_Group]:
    """Those that can reach the bound, the best first."""
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
        lacking = bound - agreement.score(weights) - _SLACK
        if lacking > weights.text:
            continue
        least = lacking / weights.text if lacking > 0 else None
        where = tuple(_agreeing(agreement, values))
        yield _Group(agreement, (_SUCCEEDED, *where), least)


def _agreeing(agreement: Agreement, values: dict[str, str]) -> Iterator[Condition]:
    for key, value in values.items():
        if value:
            same = Equals(key, value)
            yield same if getattr(agreement, key) else Not(same)


def _edge(hits: dict[str, _Hit], wanted: int) -> float:
    """The score of the last of the best ``wanted``; 0 while there are fewer."""
    if len(hits) < wanted:
        return 0.0
    return sorted((hit.score for hit in hits.values()), reverse=True)[wanted - 1]
