"""What last worked on tasks similar to those that failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from lot_grpc.domain.episode import EpisodeStatus
from lot_grpc.domain.failures.group import GoodRun
from lot_grpc.ports import Equals, Scores, SearchQuery, VectorStore
from lot_grpc.services.records.collections import END_TIME, EPISODES, TEXT_VECTOR
from lot_grpc.services.records.episodes import episode_from_record, episode_point

LIKE_TASK: Final = 0.8
"""Two tasks are similar from this cosine of task and context on. With the default model,
paraphrases of one task mostly reach .8 to .98."""

_LOOKED_AT = 20
"""Nearest successes fetched for each failure."""

_SUCCEEDED: Final = Equals("status", EpisodeStatus.SUCCEEDED.value)


class GoodRuns:
    """Finds the latest success at a similar task."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store

    async def last(self, namespace: str, groups: Sequence[Sequence[str]]) -> list[GoodRun | None]:
        """For each group of failed episodes' ids, the latest success at a similar task.

        One that states its approach is preferred. All searches run in one batch.
        """
        points = [episode_point(namespace, one) for group in groups for one in group]
        failed = await self._store.get(EPISODES, namespace, points, vectors=True)
        criteria = [point for point in points if point in failed]
        queries = [
            SearchQuery(
                TEXT_VECTOR,
                failed[point].vectors[TEXT_VECTOR],
                _LOOKED_AT,
                (_SUCCEEDED,),
                min_score=LIKE_TASK,
            )
            for point in criteria
        ]
        if not queries:
            return [None for _ in groups]
        found = await self._store.search(EPISODES, namespace, queries)
        near = dict(zip(criteria, found.hits, strict=True))
        good = await self._read(namespace, near)
        return [
            _latest([near.get(episode_point(namespace, one), {}) for one in group], good)
            for group in groups
        ]

    async def _read(
        self, namespace: str, near: Mapping[str, Scores]
    ) -> dict[str, tuple[str, str, int]]:
        """Id, approach and end time of each success, by point."""
        ids = sorted({point for scores in near.values() for point in scores})
        records = await self._store.get(EPISODES, namespace, ids) if ids else {}
        good = {}
        for point, record in records.items():
            if record.payload["status"] == EpisodeStatus.SUCCEEDED.value:
                episode = episode_from_record(record)
                good[point] = episode.episode_id, episode.approach, record.payload[END_TIME]
        return good


def _latest(found: Sequence[Scores], good: Mapping[str, tuple[str, str, int]]) -> GoodRun | None:
    nearest: Scores = {}
    for scores in found:
        for point, score in scores.items():
            if point in good:
                nearest[point] = max(score, nearest.get(point, 0.0))
    if not nearest:
        return None
    best = max(nearest, key=lambda point: (bool(good[point][1]), good[point][2], point))
    episode_id, approach, _ = good[best]
    return GoodRun(episode_id, approach, min(1.0, nearest[best]))
