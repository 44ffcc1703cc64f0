"""Performance over all tasks: totals, advice and insights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from lot_grpc.domain.adoption import Adoption, HoldoutComparison
from lot_grpc.domain.spans import span
from lot_grpc.domain.trends import CategoryTrend, NamedCount, TrendDirection

LOW_SUCCESS = 0.7
SLOW_SECONDS = 300.0
FEWEST_FOR_INSIGHTS = 10
TOP_FACTORS = 3
TOP_TOOLS = 3


class AdviceKind(StrEnum):
    """The subject of an advice."""

    STABLE = "stable"
    LOW_SUCCESS = "low_success"
    DECLINING = "declining"
    SLOW = "slow"


@dataclass(frozen=True, slots=True)
class Advice:
    """Something to improve. ``category`` is empty for those without one, and with STABLE."""

    kind: AdviceKind
    category: str
    message: str


class InsightKind(StrEnum):
    """The subject of an insight."""

    APPROACH = "approach"
    SUCCESS_FACTOR = "success_factor"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Insight:
    """Something that worked in ``count`` successful episodes."""

    kind: InsightKind
    name: str
    count: int
    message: str


@dataclass(frozen=True, slots=True)
class PerformanceReport:
    """The performance of a namespace. Times in microseconds since 1970, durations in seconds."""

    namespace: str
    generate_time: int
    total: int
    successes: int
    average_duration: float | None
    trends: tuple[CategoryTrend, ...]
    advice: tuple[Advice, ...]
    insights: tuple[Insight, ...]
    adoption: Adoption | None = None
    holdout: HoldoutComparison | None = None

    @property
    def success_rate(self) -> float | None:
        """The success rate of all ended episodes; None if there are none."""
        return self.successes / self.total if self.total else None


def advice_on(trends: Iterable[CategoryTrend]) -> tuple[Advice, ...]:
    """What to improve, category by category; one of kind STABLE if there is nothing."""
    found = tuple(advice for trend in trends for advice in _advice(trend))
    if found:
        return found
    message = (
        f"Nothing stands out: no category is under {LOW_SUCCESS:.0%}, declining, or over "
        f"{span(SLOW_SECONDS)} on average."
    )
    return (Advice(AdviceKind.STABLE, "", message),)


def _advice(trend: CategoryTrend) -> Iterable[Advice]:
    tasks = f'"{trend.category}" tasks' if trend.category else "tasks without a category"
    if trend.success_rate < LOW_SUCCESS:
        low, high = trend.interval
        yield Advice(
            AdviceKind.LOW_SUCCESS,
            trend.category,
            f"Improve {tasks}: {trend.sample_successes} of the latest {trend.sample_count} "
            f"succeeded ({trend.success_rate:.1%}; 95 % interval {low:.1%} to {high:.1%}).",
        )
    change = trend.change
    if change.direction is TrendDirection.DECLINING:
        chance = "" if change.significant else f"; that may be chance (p = {change.p_value:.2f})"
        yield Advice(
            AdviceKind.DECLINING,
            trend.category,
            f"Look into {tasks}: of the latest {trend.compared_count}, the older half had a "
            f"success rate of {change.earlier_rate:.1%}, the newer half of "
            f"{change.later_rate:.1%}{chance}.",
        )
    if trend.average_duration is not None and trend.average_duration > SLOW_SECONDS:
        yield Advice(
            AdviceKind.SLOW,
            trend.category,
            f"Speed up {tasks}: the latest took {span(trend.average_duration)} on average.",
        )


_WORDING = {
    InsightKind.APPROACH: 'Most successful approach: "{name}" ({count}).',
    InsightKind.SUCCESS_FACTOR: 'Success factor: "{name}" ({count}).',
    InsightKind.TOOL: 'Tool of successful episodes: "{name}" ({count}).',
}


def insights_of(
    approaches: Sequence[NamedCount], factors: Sequence[NamedCount], tools: Sequence[NamedCount]
) -> tuple[Insight, ...]:
    """What worked, from what came most often in successful episodes, the most frequent first."""
    kinds = (
        (InsightKind.APPROACH, approaches[:1]),
        (InsightKind.SUCCESS_FACTOR, factors[:TOP_FACTORS]),
        (InsightKind.TOOL, tools[:TOP_TOOLS]),
    )
    return tuple(
        Insight(kind, one.name, one.count, _WORDING[kind].format(name=one.name, count=one.count))
        for kind, counts in kinds
        for one in counts
    )
