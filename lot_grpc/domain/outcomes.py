"""How well something worked: counts, a moving rate, and a lower bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

ALPHA = 0.3
"""Weight of the newest outcome in the moving rate."""

WILSON_Z = 1.959963984540054
"""97.5 % quantile of the normal distribution: a two-sided interval of 95 %."""


class Outcome(StrEnum):
    """The outcome of a use."""

    SUCCESS = "success"
    FAILURE = "failure"
    PARTIAL = "partial"

    @property
    def value_in_rates(self) -> float:
        """Its value in rates: 1, ½ or 0."""
        return {"success": 1.0, "partial": 0.5, "failure": 0.0}[self.value]


def wilson_lower_bound(successes: float, trials: float, z: float = WILSON_Z) -> float:
    """Lower bound of the score interval of Wilson (1927), of 95 %; 0 without trials.

    Both may be fractional (PARTIAL counts ½, older outcomes less). ``z`` is the quantile of another
    interval.
    """
    if trials <= 0:
        return 0.0
    share = min(1.0, successes / trials)
    z2 = z * z
    centre = share + z2 / (2 * trials)
    spread = z * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials * trials))
    return max(0.0, (centre - spread) / (1 + z2 / trials))


REACH = 60
"""So many outcomes later an outcome weighs ``0.7 ** 60``, 5e-10, in the moving rate: nothing."""


@dataclass(frozen=True, slots=True)
class Correction:
    """What is undone: an outcome (None: it was undone before), when it was, how long it took.

    ``time`` in microseconds since 1970, ``duration`` in seconds.
    """

    undone: Outcome | None
    time: int
    duration: float | None = None


@dataclass(frozen=True, slots=True)
class OutcomeStats:
    """Counters of one record. Durations in seconds, times in microseconds since 1970."""

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
        """The number of outcomes."""
        return self.success_count + self.failure_count + self.partial_count

    @property
    def weighted_successes(self) -> float:
        """Successes, PARTIAL counting ½."""
        return self.success_count + 0.5 * self.partial_count

    @property
    def reliability(self) -> float:
        """Wilson lower bound of the share of successes."""
        return wilson_lower_bound(self.weighted_successes, self.usage_count)

    @property
    def average_duration(self) -> float | None:
        """The mean duration in seconds of outcomes that reported one."""
        return self.duration_total / self.duration_count if self.duration_count else None

    def record(self, outcome: Outcome, at: int, duration: float | None = None) -> OutcomeStats:
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

    def correct(
        self, correction: Correction, instead: Outcome | None, later: Sequence[float] | None
    ) -> OutcomeStats:
        """The counters as if an outcome had been ``instead``, or had never been (None).

        The moving rate is reset to before the undone outcome and then updated with ``later``, the
        values counted after it, oldest first; None: so many that it has no weight left. With
        ``instead`` the duration stays counted.
        """
        undone, rate = correction.undone, self.success_rate
        if later is not None:
            back = [*([undone.value_in_rates] if undone else []), *later]
            for value in reversed(back):
                rate = (rate - ALPHA * value) / (1 - ALPHA)
            rate = min(1.0, max(0.0, rate))
            for value in [*([instead.value_in_rates] if instead else []), *later]:
                rate = ALPHA * value + (1 - ALPHA) * rate
        taken = undone is not None and instead is None and correction.duration is not None
        return replace(
            self,
            success_rate=min(1.0, max(0.0, rate)),
            success_count=self.success_count + _one(instead, undone, Outcome.SUCCESS),
            failure_count=self.failure_count + _one(instead, undone, Outcome.FAILURE),
            partial_count=self.partial_count + _one(instead, undone, Outcome.PARTIAL),
            duration_count=self.duration_count - taken,
            duration_total=self.duration_total - ((correction.duration or 0.0) if taken else 0.0),
        )


NO_OUTCOMES: Final = OutcomeStats()
"""The counters of a record that was never used."""


def _one(instead: Outcome | None, undone: Outcome | None, kind: Outcome) -> int:
    """The change in the count of a kind."""
    return (instead is kind) - (undone is kind)
