"""Whether a group's share of all failures grows.

The trend is the slope of the least-squares line through all failures, each at the time it ended
with 1 if it is of the group and 0 if not: the linear probability model. In days it is the change of
the share per day, each failure counts the same, and the trends of all groups add up to 0. It is the
limit of a regression of the shares of time buckets, weighted by their failures, for small buckets.

Whether it is more than chance says the test of Cochran (1954) and Armitage (1955) for a trend in
proportions: with r the correlation, r sqrt(n) is about standard normal without a trend.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import erfc, sqrt
from typing import Final

FEWEST: Final = 10
"""Failures in all, below which there is no trend."""

SHORTEST_DAYS: Final = 1.0
"""From the first to the last of them, below which there is none."""

SIGNIFICANCE: Final = 0.05

_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class ShareTrend:
    """``slope``: change of the share per day; 0: none, or too few failures."""

    slope: float = 0.0
    significant: bool = False


class Timeline:
    """The times of all failures, in microseconds since 1970."""

    def __init__(self, times: Sequence[int]) -> None:
        self._count = len(times)
        first, last = min(times, default=0), max(times, default=0)
        self._enough = self._count >= FEWEST and last - first >= SHORTEST_DAYS * _DAY
        middle = sum(times) / self._count if times else 0.0
        self._middle = middle
        self._spread = sum(((time - middle) / _DAY) ** 2 for time in times)

    def trend(self, times: Collection[int]) -> ShareTrend:
        """How the share of those at ``times``, which are among all, changes."""
        share = len(times) / self._count if self._count else 0.0
        if not self._enough or share in (0.0, 1.0):
            return ShareTrend()
        slope = sum((time - self._middle) / _DAY for time in times) / self._spread
        ones = self._count * share * (1 - share)
        correlation = slope * sqrt(self._spread / ones)
        chance = erfc(abs(correlation) * sqrt(self._count) / sqrt(2))
        return ShareTrend(slope, chance < SIGNIFICANCE)
