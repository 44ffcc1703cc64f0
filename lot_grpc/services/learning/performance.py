"""How tasks go, by category and overall, computed from ended episodes; nothing else is stored.

SUCCEEDED and FAILED episodes count. RUNNING and ABANDONED ones do not, since their outcome is
unknown.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from lot_grpc.domain.adoption import DEFAULT_PERIOD, Period
from lot_grpc.domain.episode import EpisodeStatus
from lot_grpc.domain.performance import (
    FEWEST_FOR_INSIGHTS,
    Insight,
    PerformanceReport,
    advice_on,
    insights_of,
)
from lot_grpc.domain.query import EpisodeFilter
from lot_grpc.domain.trends import (
    CategoryTrend,
    Durations,
    EndedEpisode,
    NamedCount,
    Tally,
    TrendOptions,
    most_frequent,
)
from lot_grpc.ports import AnyOf, Condition, Equals, Missing, Record, VectorStore
from lot_grpc.services.learning.adoption import AdoptionReader
from lot_grpc.services.records.collections import END_TIME, EPISODES
from lot_grpc.services.records.episodes import episode_conditions
from lot_grpc.services.scanning import scan
from lot_grpc.services.time_slice import TimeSlice
from lot_grpc.services.time_source import TimeSource

_ENDED = AnyOf("status", tuple(one.value for one in EpisodeStatus if one.ended))
_SUCCEEDED = Equals("status", EpisodeStatus.SUCCEEDED.value)
_CATEGORIES = 100
_READ = ("status", "start_time", END_TIME, "approach")
_BATCH = 300
"""Rows per batch, with a few keys each: finding where a batch begins costs more than reading it."""
_MICROS = 1_000_000


class Performance:
    """Trends and reports of all namespaces."""

    def __init__(
        self, store: VectorStore, time_source: TimeSource, adoption: AdoptionReader
    ) -> None:
        self._store = store
        self._time = time_source
        self._adoption = adoption

    async def trends(
        self, namespace: str, criteria: EpisodeFilter, options: TrendOptions
    ) -> list[CategoryTrend]:
        """One trend per category, most episodes first, then by name.

        Of each category it reads the latest 1,000, and with an interval as many as the points need.
        """
        where = _ended(criteria)
        trends = []
        for category, count in (await self._categories(namespace, where)).items():
            tally = Tally(options)
            rows = self._rows(namespace, [*where, _of(category)], _READ)
            async with aclosing(rows):
                async for row in rows:
                    episode = _episode(row.payload)
                    if not tally.takes(episode):
                        break
                    tally.add(episode)
            # Some may have ended, or gone, since they were counted.
            if tally.count:
                trends.append(tally.trend(category, max(count, tally.count)))
        return _in_order(trends)

    async def report(
        self,
        namespace: str,
        criteria: EpisodeFilter,
        sample_size: int,
        start: int | None = None,
        end: int | None = None,
    ) -> PerformanceReport:
        """The whole report, with advice and insights. Reads all episodes that match the filter.

        Adoption is that from ``start`` (None: 7 days before the end) to ``end`` (None: now).

        The store cannot sum durations, and an average over a sample would not be the stated one.
        """
        where = _ended(criteria)
        listed = await self._categories(namespace, where)
        tallies: defaultdict[str, Tally] = defaultdict(lambda: Tally(TrendOptions(sample_size)))
        total, successes, durations = 0, 0, Durations()
        async for row in self._rows(namespace, where, (*_READ, "category")):
            episode = _episode(row.payload)
            total += 1
            successes += episode.succeeded
            durations.add(episode.seconds)
            category = row.payload.get("category", "")
            if category in listed:
                tallies[category].add(episode)
        trends, time_slice = [], TimeSlice()
        for name, tally in tallies.items():
            trends.append(tally.trend(name, tally.count))
            await time_slice.give_way()
        trends = _in_order(trends)
        enough = total >= FEWEST_FOR_INSIGHTS
        until = self._time.sort_key() if end is None else end  # after all that there is
        period = Period(until - DEFAULT_PERIOD if start is None else start, until)
        adoption, holdout = await self._adoption.read(namespace, period)
        return PerformanceReport(
            namespace=namespace,
            generate_time=self._time.now(),
            total=total,
            successes=successes,
            average_duration=durations.average,
            trends=tuple(trends),
            advice=advice_on(trends),
            insights=await self._insights(namespace, where) if enough else (),
            adoption=adoption,
            holdout=holdout,
        )

    def _rows(
        self, namespace: str, where: Sequence[Condition], payload: tuple[str, ...]
    ) -> AsyncGenerator[Record, None]:
        """Ended episodes, the most recently ended first."""
        return scan(
            self._store,
            EPISODES,
            namespace,
            where,
            payload=payload,
            descending=True,
            key=END_TIME,
            batch=_BATCH,
        )

    async def _categories(self, namespace: str, where: Sequence[Condition]) -> dict[str, int]:
        """Ended episodes by category; those without one are under an empty name."""
        facets = await self._store.facet(EPISODES, namespace, "category", where, _CATEGORIES)
        counts = {str(value): count for value, count in facets.items()}
        await asyncio.sleep(0)
        counts[""] = await self._store.count(EPISODES, namespace, [*where, _of("")])
        ranked = sorted(counts.items(), key=_place)[:_CATEGORIES]
        return {name: count for name, count in ranked if count}

    async def _insights(self, namespace: str, where: Sequence[Condition]) -> tuple[Insight, ...]:
        return insights_of(
            await self._frequent(namespace, "approach", where),
            await self._frequent(namespace, "success_factors", where),
            await self._frequent(namespace, "tools_used", where),
        )

    async def _frequent(
        self, namespace: str, key: str, where: Sequence[Condition]
    ) -> tuple[NamedCount, ...]:
        """The values of a key in successful episodes, the most frequent first, ties by name."""
        await asyncio.sleep(0)
        facets = await self._store.facet(EPISODES, namespace, key, [*where, _SUCCEEDED])
        counts = {str(value): facets[value] for value in sorted(facets, key=str)}
        return most_frequent(counts, len(counts))


def _ended(criteria: EpisodeFilter) -> list[Condition]:
    return [_ENDED, *episode_conditions(criteria)]


def _of(category: str) -> Condition:
    return Equals("category", category) if category else Missing("category")


def _episode(payload: Mapping[str, Any]) -> EndedEpisode:
    return EndedEpisode(
        payload[END_TIME],
        payload["status"] == EpisodeStatus.SUCCEEDED.value,
        (payload[END_TIME] - payload["start_time"]) / _MICROS,
        payload.get("approach", ""),
    )


def _in_order(trends: list[CategoryTrend]) -> list[CategoryTrend]:
    return sorted(trends, key=lambda trend: (-trend.total, trend.category))


def _place(counted: tuple[str, int]) -> tuple[int, str]:
    name, count = counted
    return -count, name
