"""Feedback: what people or agents say of a pattern, and how it moves its confidence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from lot_grpc.domain.errors import invalid

HELPFUL_STEP = 0.1
"""What a bare helpful adds, and a bare unhelpful takes off."""

_DIGITS = 9
"""Confidences are rounded to so many, so that tenths add up."""


def adjustment_of(helpful: bool | None, confidence_adjustment: float | None) -> float:
    """How far one feedback moves a confidence. Raises for one that says neither.

    An adjustment that is given counts as it stands; then ``helpful`` is only counted.
    """
    if confidence_adjustment is not None:
        if not -1 <= confidence_adjustment <= 1:  # NaN too
            raise invalid(
                "confidence_adjustment", "double.range", "confidence_adjustment must be in [-1, 1]"
            )
        return confidence_adjustment
    if helpful is None:
        raise invalid(
            "helpful",
            "record_pattern_feedback.says_something",
            "helpful or confidence_adjustment must be set",
        )
    return HELPFUL_STEP if helpful else -HELPFUL_STEP


def moved(confidence: float, adjustment: float) -> float:
    """A confidence after one feedback, in [0, 1]."""
    return round(min(1.0, max(0.0, confidence + adjustment)), _DIGITS)


@dataclass(frozen=True, slots=True)
class FeedbackCounts:
    """How much feedback a pattern got. ``last_feedback_time`` in microseconds, 0 is never."""

    feedback_count: int = 0
    helpful_count: int = 0
    unhelpful_count: int = 0
    last_feedback_time: int = 0

    def record(self, helpful: bool | None, at: int) -> FeedbackCounts:
        """The counts after one more."""
        return replace(
            self,
            feedback_count=self.feedback_count + 1,
            helpful_count=self.helpful_count + (helpful is True),
            unhelpful_count=self.unhelpful_count + (helpful is False),
            last_feedback_time=max(self.last_feedback_time, at),
        )


NO_FEEDBACK = FeedbackCounts()


def teaching_score(usage_count: int, confidence: float) -> float:
    """How much a feedback would teach: √usage · (1 - |2 · confidence - 1|).

    The second factor is 1 where the confidence is one half and 0 where it is sure, so the score is
    at most √usage. The root, since a thing used a hundred times as often is not a hundred times as
    worth asking for.
    """
    return math.sqrt(usage_count) * round(1 - abs(2 * confidence - 1), _DIGITS)
