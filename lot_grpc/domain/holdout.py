"""Whether learning helps, measured on recalls that are ranked without what was learned."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

from lot_grpc.domain.outcomes import WILSON_Z


def in_holdout(retrieval_id: str, share: float) -> bool:
    """Whether a recall is ranked without what was learned; ``share`` of all recalls are.

    It follows from the id alone: the same one always gives the same answer, and a recall that is
    held out at one share is held out at every larger one.
    """
    digest = hashlib.blake2b(retrieval_id.encode(), digest_size=8, person=b"holdout").digest()
    return int.from_bytes(digest) < share * 2.0**64


@dataclass(frozen=True, slots=True)
class Arm:
    """The outcomes of one kind of recall: their count, the sum of their values and of the squares.

    A value is in [0, 1]; PARTIAL is ½.
    """

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    def record(self, value: float) -> Arm:
        """The arm after one more outcome."""
        return Arm(self.count + 1, self.total + value, self.squares + value * value)

    @property
    def mean(self) -> float | None:
        """The mean value; None without outcomes."""
        return self.total / self.count if self.count else None


@dataclass(frozen=True, slots=True)
class Gain:
    """How much better outcomes are with learning: a difference of means, in [-1, 1].

    ``lower`` and ``upper`` bound its 95 % confidence interval.
    """

    estimate: float
    lower: float
    upper: float


def gain_text(gain: Gain | None) -> str:
    """What learning gains, as a sentence."""
    if gain is None:
        return "The gain is unknown until both have outcomes."
    return f"Gain: {gain.estimate:+.3f} (95 % interval {gain.lower:+.3f} to {gain.upper:+.3f})."


def gain(learned: Arm, holdout: Arm) -> Gain | None:
    """What learning gains; None if one of the arms has no outcomes.

    The interval is that of Agresti and Caffo (The American Statistician 54, 2000) for the
    difference of two proportions: one success and one failure are added to each arm. With values
    between 0 and 1 the variance is that of the values, of which the added ones are two. So it
    holds for few outcomes and for rates near 0 or 1, where Welch's has no width.
    """
    if learned.mean is None or holdout.mean is None:
        return None
    (mean, variance), (other, other_variance) = _smoothed(learned), _smoothed(holdout)
    reach = WILSON_Z * math.sqrt(variance + other_variance)
    return Gain(
        learned.mean - holdout.mean,
        max(-1.0, mean - other - reach),
        min(1.0, mean - other + reach),
    )


def _smoothed(arm: Arm) -> tuple[float, float]:
    """The mean of an arm with one success and one failure more, and the variance of that mean."""
    count = arm.count + 2
    mean = (arm.total + 1.0) / count
    return mean, ((arm.squares + 1.0) / count - mean * mean) / count
