"""How well a thing worked: counts, a moving rate, a cautious bound."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

ALPHA = 0.3
"""Weight of the newest outcome in the moving rate (seed 000)."""

WILSON_Z = 1.959963984540054
"""97.5 % quantile of the normal distribution: a two-sided interval of 95 %."""


class Outcome(StrEnum):
    """How a use went."""

    SUCCESS = "success"
    FAILURE = "failure"
    PARTIAL = "partial"

    @property
    def value_in_rates(self) -> float:
        """What it counts in rates: 1, ½ or 0."""
        return {"success": 1.0, "partial": 0.5, "failure": 0.0}[self.value]


def wilson_lower_bound(successes: float, trials: int) -> float:
    """Lower bound of the 95 % score interval of Wilson (1927); 0 without trials.

    ``successes`` may be fractional (PARTIAL counts ½).
    """
    if trials <= 0:
        return 0.0
    share = successes / trials
    z2 = WILSON_Z * WILSON_Z
    centre = share + z2 / (2 * trials)
    spread = WILSON_Z * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials * trials))
    return max(0.0, (centre - spread) / (1 + z2 / trials))


def beta_mean(successes: float, trials: int) -> float:
    """Mean of the chance of success after ``trials``, from a prior of one success, one failure."""
    return (successes + 1.0) / (trials + 2.0)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Counters of one thing. Durations in seconds, times in microseconds since 1970."""

    success_rate: float = 1.0
    success_count: int = 0
    failure_count: int = 0
    partial_count: int = 0
    duration_count: int = 0
    duration_total: float = 0.0
    last_used_time: int = 0
    """0 means never."""

    @property
    def usage_count(self) -> int:
        """Outcomes in all."""
        return self.success_count + self.failure_count + self.partial_count

    @property
    def weighted_successes(self) -> float:
        """Successes with PARTIAL as ½."""
        return self.success_count + 0.5 * self.partial_count

    @property
    def reliability(self) -> float:
        """Wilson lower bound of the share of successes."""
        return wilson_lower_bound(self.weighted_successes, self.usage_count)

    @property
    def average_duration(self) -> float | None:
        """Mean seconds of the outcomes that said how long they took."""
        return self.duration_total / self.duration_count if self.duration_count else None

    def record(self, outcome: Outcome, at: int, duration: float | None = None) -> Outcomes:
        """The counters after one more outcome."""
        return replace(
            self,
            success_rate=ALPHA * outcome.value_in_rates + (1 - ALPHA) * self.success_rate,
            success_count=self.success_count + (outcome is Outcome.SUCCESS),
            failure_count=self.failure_count + (outcome is Outcome.FAILURE),
            partial_count=self.partial_count + (outcome is Outcome.PARTIAL),
            duration_count=self.duration_count + (duration is not None),
            duration_total=self.duration_total + (duration or 0.0),
            last_used_time=max(self.last_used_time, at),
        )
