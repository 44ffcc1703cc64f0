"""Totals over the patterns that match a filter, by counts and facets, without reading them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from lot_grpc.domain.query import PatternFilter
from lot_grpc.ports import Condition, Equals, Order, Range, VectorStore
from lot_grpc.services.records.collections import PATTERNS, SORT_KEY
from lot_grpc.services.records.patterns import pattern_conditions

_FACET_LIMIT = 100
_EVERY_PERMILLE = 1001
_EVERY_COUNT = 1_000_000

_PAUSE_SECONDS = 0.001
"""Between two facets, each of which holds the loop by itself (some 50 ms over 100,000 patterns). A
bare turn of the loop would serve a waiting call one step a facet; this serves it whole."""


@dataclass(frozen=True, slots=True)
class PatternStats:
    """Totals over patterns. Rates are rounded to .001; None if there is nothing to average."""

    total: int = 0
    average_success_rate: float | None = None
    min_success_rate: float | None = None
    max_success_rate: float | None = None
    used: int = 0
    average_used_success_rate: float | None = None
    total_usage: int = 0
    total_success: int = 0
    total_failure: int = 0
    most_used_pattern_id: str = ""
    pinned: int = 0
    by_language: dict[str, int] = field(default_factory=dict)
    by_category: dict[str, int] = field(default_factory=dict)
    by_kind: dict[str, int] = field(default_factory=dict)
    by_pattern_type: dict[str, int] = field(default_factory=dict)
    by_code_kind: dict[str, int] = field(default_factory=dict)
    by_task_type: dict[str, int] = field(default_factory=dict)

    @property
    def total_partial(self) -> int:
        """Outcomes that are neither successes nor failures."""
        return max(0, self.total_usage - self.total_success - self.total_failure)

    @property
    def success_share(self) -> float | None:
        """Share of successes among all outcomes, PARTIAL counting ½; None without outcomes."""
        if not self.total_usage:
            return None
        return (self.total_success + 0.5 * self.total_partial) / self.total_usage


async def sum_up(store: VectorStore, namespace: str, criteria: PatternFilter) -> PatternStats:
    """Totals over the patterns of a namespace that match a filter.

    Each facet is a pass of its own, so a write that comes in between may be in some of them.
    """
    return await _Sums(store, namespace, pattern_conditions(criteria)).all()


class _Sums:
    """One call's sums. Others go first before each facet."""

    def __init__(self, store: VectorStore, namespace: str, where: list[Condition]) -> None:
        self._store = store
        self._namespace = namespace
        self._where = where

    async def all(self) -> PatternStats:
        total = await self._count()
        if not total:
            return PatternStats()
        rates = await self._numbers("success_permille", _EVERY_PERMILLE)
        usage = await self._numbers("usage_count", _EVERY_COUNT)
        total_usage = _sum(usage)
        used_rates = {}
        if total_usage:
            used = Range("usage_count", gte=1)
            used_rates = await self._numbers("success_permille", _EVERY_PERMILLE, used)
        return PatternStats(
            total=total,
            average_success_rate=_average(rates),
            min_success_rate=min(rates) / 1000 if rates else None,
            max_success_rate=max(rates) / 1000 if rates else None,
            used=sum(n for count, n in usage.items() if count),
            average_used_success_rate=_average(used_rates),
            total_usage=total_usage,
            total_success=_sum(await self._numbers("success_count", _EVERY_COUNT)),
            total_failure=_sum(await self._numbers("failure_count", _EVERY_COUNT)),
            most_used_pattern_id=await self._most_used(max(usage, default=0)),
            pinned=await self._count(Equals("pinned", True)),
            by_language=await self._names("language"),
            by_category=await self._names("category"),
            by_kind=await self._names("kind"),
            by_pattern_type=await self._names("pattern_type"),
            by_code_kind=await self._names("code_kind"),
            by_task_type=await self._names("task_type"),
        )

    async def _count(self, *more: Condition) -> int:
        return await self._store.count(PATTERNS, self._namespace, [*self._where, *more])

    async def _numbers(self, key: str, limit: int, *more: Condition) -> dict[int, int]:
        await asyncio.sleep(_PAUSE_SECONDS)
        where = [*self._where, *more]
        facets = await self._store.facet(PATTERNS, self._namespace, key, where, limit)
        return {int(value): count for value, count in facets.items()}

    async def _names(self, key: str) -> dict[str, int]:
        await asyncio.sleep(_PAUSE_SECONDS)
        facets = await self._store.facet(PATTERNS, self._namespace, key, self._where, _FACET_LIMIT)
        return {str(value): count for value, count in facets.items()}

    async def _most_used(self, usage: int) -> str:
        if not usage:
            return ""
        found = await self._store.scroll(
            PATTERNS,
            self._namespace,
            [*self._where, Equals("usage_count", usage)],
            limit=1,
            order=Order(SORT_KEY, descending=True),
            payload=("pattern_id",),
        )
        return str(found[0].payload["pattern_id"]) if found else ""


def _sum(facets: Mapping[int, int]) -> int:
    return sum(value * count for value, count in facets.items())


def _average(permille: Mapping[int, int]) -> float | None:
    counted = sum(permille.values())
    return round(_sum(permille) / counted / 1000, 3) if counted else None
