"""Trends of a category: success rate, duration, and direction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from lot_grpc.domain.significance import fisher_exact, wilson_interval

DEFAULT_SAMPLE = 20
DEFAULT_POINTS = 30
COMPARED_AT_MOST = 1000
"""The latest so many episodes of a category tell its direction: as many as the seed kept."""
FEWEST_FOR_DIRECTION = 10
BEST_APPROACHES = 3
SIGNIFICANCE = 0.05


class TrendDirection(StrEnum):
    """The direction of a success rate."""

    INSUFFICIENT_DATA = "insufficient_data"
    IMPROVING = "improving"
    DECLINING = "declining"
    STABLE = "stable"


@dataclass(frozen=True, slots=True)
class EndedEpisode:
    """The part of an episode that trends read. ``end_time`` in microseconds since 1970."""

    end_time: int
    succeeded: bool
    seconds: float
    """How long it took; 0 is not known."""
    approach: str = ""


@dataclass(frozen=True, slots=True)
class NamedCount:
    """A name and how often it occurred."""

    name: str
    count: int


@dataclass(slots=True)
class Durations:
    """The mean of positive durations."""

    total: float = 0.0
    count: int = 0

    def add(self, seconds: float) -> None:
        """Take one in; 0 took none."""
        if seconds > 0:
            self.total += seconds
            self.count += 1

    @property
    def average(self) -> float | None:
        """Seconds; None if none took time."""
        return self.total / self.count if self.count else None


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """One interval. ``start_time`` in microseconds, durations in seconds."""

    start_time: int
    count: int
    success_count: int
    average_duration: float | None


@dataclass(frozen=True, slots=True)
class Change:
    """How the newer half differs from the older one, which has one less if they are odd in all."""

    direction: TrendDirection = TrendDirection.INSUFFICIENT_DATA
    earlier_rate: float = 0.0
    later_rate: float = 0.0
    p_value: float | None = None
    """By Fisher's exact test; None without data."""

    @property
    def significant(self) -> bool:
        """Whether the change is statistically significant."""
        return self.p_value is not None and self.p_value < SIGNIFICANCE


@dataclass(frozen=True, slots=True)
class CategoryTrend:
    """The trend of a category. Field by field as in ``lot.v1.CategoryTrend``."""

    category: str
    total: int
    sample_count: int
    sample_successes: int
    average_duration: float | None
    best_approaches: tuple[NamedCount, ...]
    compared_count: int
    change: Change
    points: tuple[TrendPoint, ...] = ()

    @property
    def success_rate(self) -> float:
        """The success rate of the sample; 0 if it is empty."""
        return self.sample_successes / self.sample_count if self.sample_count else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the rate."""
        return wilson_interval(self.sample_successes, self.sample_count)


@dataclass(frozen=True, slots=True)
class TrendOptions:
    """Options of a trend. ``interval`` in microseconds; 0: no points.

    ``sample_size`` is at most ``COMPARED_AT_MOST``.
    """

    sample_size: int = DEFAULT_SAMPLE
    interval: int = 0
    max_points: int = DEFAULT_POINTS


@dataclass(slots=True)
class _Point:
    durations: Durations = field(default_factory=Durations)
    count: int = 0
    successes: int = 0


class Tally:
    """Accumulates a category's ended episodes, newest first, without storing them."""

    def __init__(self, options: TrendOptions) -> None:
        self._options = options
        self._outcomes: list[bool] = []
        self._durations = Durations()
        self._approaches: list[str] = []
        self._points: dict[int, _Point] = {}
        self.count = 0
        """Episodes taken in."""

    def takes(self, episode: EndedEpisode) -> bool:
        """Whether this one, or any that ended before it, would change the trend."""
        return self.count < COMPARED_AT_MOST or self._has_point_for(episode)

    def add(self, episode: EndedEpisode) -> None:
        """Add the next older episode."""
        if self.count < self._options.sample_size:
            self._durations.add(episode.seconds)
            if episode.succeeded and episode.approach:
                self._approaches.append(episode.approach)
        if self.count < COMPARED_AT_MOST:
            self._outcomes.append(episode.succeeded)
        if self._has_point_for(episode):
            point = self._points.setdefault(self._start(episode), _Point())
            point.durations.add(episode.seconds)
            point.count += 1
            point.successes += episode.succeeded
        self.count += 1

    def _start(self, episode: EndedEpisode) -> int:
        return episode.end_time - episode.end_time % self._options.interval

    def _has_point_for(self, episode: EndedEpisode) -> bool:
        if not self._options.interval:
            return False
        return len(self._points) < self._options.max_points or self._start(episode) in self._points

    def trend(self, category: str, total: int) -> CategoryTrend:
        """The resulting trend. ``total`` episodes of the category ended."""
        sample = self._outcomes[: self._options.sample_size]
        points = (
            TrendPoint(start, one.count, one.successes, one.durations.average)
            for start, one in sorted(self._points.items())
        )
        return CategoryTrend(
            category=category,
            total=total,
            sample_count=len(sample),
            sample_successes=sum(sample),
            average_duration=self._durations.average,
            best_approaches=most_frequent(Counter(self._approaches), BEST_APPROACHES),
            compared_count=len(self._outcomes),
            change=change_of(self._outcomes[::-1]),
            points=tuple(points),
        )


def change_of(outcomes: Sequence[bool]) -> Change:
    """How the newer half of successes and failures, oldest first, differs from the older one.

    By more than .1 is a direction, whether or not it is significant.
    """
    if len(outcomes) < FEWEST_FOR_DIRECTION:
        return Change()
    half = len(outcomes) // 2
    earlier, later = sum(outcomes[:half]), sum(outcomes[half:])
    trials = len(outcomes) - half
    # In whole numbers, since .8 - .7 is a little more than .1 in floating point.
    difference, tenth = 10 * (later * half - earlier * trials), half * trials
    direction = TrendDirection.STABLE
    if difference > tenth:
        direction = TrendDirection.IMPROVING
    elif difference < -tenth:
        direction = TrendDirection.DECLINING
    return Change(
        direction, earlier / half, later / trials, fisher_exact(earlier, half, later, trials)
    )


def most_frequent(counts: Mapping[str, int], limit: int) -> tuple[NamedCount, ...]:
    """The most frequent names; ties keep the order of the mapping."""
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    return tuple(NamedCount(name, count) for name, count in ranked[:limit])
