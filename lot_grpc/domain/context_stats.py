"""Outcomes remembered by query, and what they say about a new query.

Context stats are one pattern's outcomes on one query: how many, with older ones fading. The chance
that a pattern works on a query is estimated from its stats, each weighted by how near its query is:
``exp((cosine - 1) / width)``, which is 1 for the same query. Another query counts as one trial at
most, however often it came: many outcomes show what works there, but it remains one query. So what
works for one kind of query does not win for another kind.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

MAX_CONTEXT_STATS = 64
"""Of one pattern; beyond that the two whose queries are nearest become one."""

NEGLIGIBLE = 0.01
"""A kernel below this is not looked at."""

SAME_QUERY = 0.9999
"""The cosine from which on two queries are the same; vectors are stored in single precision."""

_MICROS = 1_000_000


@dataclass(frozen=True, slots=True)
class Fading:
    """How outcomes lose weight over time. ``half_life`` in seconds; 0: never.

    ``decay`` is the factor by which a new outcome reduces the weight of earlier ones in its stats,
    in (0, 1]: a change is learned within about ``1 / (1 - decay)`` outcomes.
    """

    half_life: float = 180 * 24 * 3600.0
    decay: float = 0.93

    def since(self, then: int, now: int) -> float:
        """The weight left of an outcome after the time between two instants, in microseconds."""
        if not self.half_life:
            return 1.0
        return math.pow(0.5, max(0, now - then) / (self.half_life * _MICROS))


@dataclass(frozen=True, slots=True)
class ContextStats:
    """Faded sums as they stood at ``last_time`` (microseconds); ``count`` is not faded.

    ``successes`` counts PARTIAL as ½; ``trials`` is never below it.
    """

    successes: float = 0.0
    trials: float = 0.0
    count: int = 0
    last_time: int = 0

    def record(self, value: float, at: int, fading: Fading) -> ContextStats:
        """The stats after one more outcome, of ``value`` 1, ½ or 0. A late one fades nothing."""
        left = fading.decay * fading.since(self.last_time, at) if self.count else 1.0
        return ContextStats(
            self.successes * left + value,
            self.trials * left + 1.0,
            self.count + 1,
            max(self.last_time, at),
        )

    def weight_of(self, at: int, later: int, fading: Fading) -> float:
        """What an outcome of ``at`` weighs here, after which ``later`` others came in."""
        return math.pow(fading.decay, later) * fading.since(at, self.last_time)

    def without(self, value: float, weight: float) -> ContextStats:
        """The stats without an outcome that was counted."""
        count = max(0, self.count - 1)
        trials = max(0.0, self.trials - weight) if count else 0.0
        successes = min(trials, max(0.0, self.successes - weight * value))
        return replace(self, successes=successes, trials=trials, count=count)

    def along(self, value: float, weight: float) -> ContextStats:
        """The stats with an outcome in place of one that was removed."""
        return replace(
            self,
            successes=self.successes + weight * value,
            trials=self.trials + weight,
            count=self.count + 1,
        )

    def merge(self, other: ContextStats, fading: Fading) -> ContextStats:
        """Both combined, as of the later time."""
        at = max(self.last_time, other.last_time)
        mine, theirs = fading.since(self.last_time, at), fading.since(other.last_time, at)
        return ContextStats(
            self.successes * mine + other.successes * theirs,
            self.trials * mine + other.trials * theirs,
            self.count + other.count,
            at,
        )


def kernel(cosine: float, width: float) -> float:
    """How much an outcome on a query counts for another one, in (0, 1]."""
    return math.exp((min(1.0, cosine) - 1.0) / width)


def share(cosine: float, trials: float) -> float:
    """The share of the outcomes that counts besides the kernel: for another query one trial."""
    return 1.0 if cosine >= SAME_QUERY else 1.0 / max(1.0, trials)


def least_cosine(width: float) -> float:
    """The least cosine at which the kernel is not negligible."""
    return 1.0 + width * math.log(NEGLIGIBLE)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Stats on a similar query: that query, its similarity, and its weight."""

    query: str
    cosine: float
    weight: float
    successes: float
    trials: float
    last_time: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """What outcomes say about a hit's chance on a query: weighted sums, and their origin."""

    successes: float = 0.0
    trials: float = 0.0
    neighbours: tuple[Neighbour, ...] = ()

    @property
    def same_query(self) -> tuple[float, float]:
        """Successes and trials on the query itself, which the sums include."""
        same = [one for one in self.neighbours if one.cosine >= SAME_QUERY]
        return (
            math.fsum(one.weight * one.successes for one in same),
            math.fsum(one.weight * one.trials for one in same),
        )


def neighbour(
    stats: ContextStats, query: str, cosine: float, now: int, width: float, fading: Fading
) -> Neighbour:
    """The stats as seen from a query at ``now``: faded, not yet weighted."""
    left = fading.since(stats.last_time, now)
    trials = stats.trials * left
    return Neighbour(
        query,
        cosine,
        kernel(cosine, width) * share(cosine, trials),
        stats.successes * left,
        trials,
        stats.last_time,
    )


def evidence(neighbours: Iterable[Neighbour]) -> Evidence:
    """The weighted sums over stats, the nearest first."""
    nearest = tuple(sorted(neighbours, key=lambda one: (-one.weight, one.query)))
    return Evidence(
        math.fsum(one.weight * one.successes for one in nearest),
        math.fsum(one.weight * one.trials for one in nearest),
        nearest,
    )
