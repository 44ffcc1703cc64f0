"""Feedback on a pattern, and how it changes the pattern's confidence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from lot_grpc.domain.errors import invalid

HELPFUL_STEP = 0.1
"""What a bare helpful adds, and a bare unhelpful takes off."""

_DIGITS = 9
"""Confidences are rounded to this many digits, so that tenths add up."""


def adjustment_of(helpful: bool | None, confidence_adjustment: float | None) -> float:
    """The change of confidence by one feedback. Raises RequestInvalidError if it is empty.

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
    """The confidence after one feedback, in [0, 1]."""
    return round(min(1.0, max(0.0, confidence + adjustment)), _DIGITS)


@dataclass(frozen=True, slots=True)
class FeedbackCounts:
    """Feedback counts of a pattern. ``last_feedback_time`` in microseconds; 0: never."""

    feedback_count: int = 0
    helpful_count: int = 0
    unhelpful_count: int = 0
    last_feedback_time: int = 0

    def record(self, helpful: bool | None, at: int) -> FeedbackCounts:
        """The counts after one more feedback."""
        return replace(
            self,
            feedback_count=self.feedback_count + 1,
            helpful_count=self.helpful_count + (helpful is True),
            unhelpful_count=self.unhelpful_count + (helpful is False),
            last_feedback_time=max(self.last_feedback_time, at),
        )


NO_FEEDBACK = FeedbackCounts()


def teaching_score(usage_count: int, confidence: float) -> float:
    """The value of asking for feedback: √usage · (1 - |2 · confidence - 1|).

    The second factor is 1 for a confidence of one half and 0 for certainty, so the score is at most
    √usage. The square root is used because feedback on a pattern used a hundred times as often is
    not worth a hundred times as much.
    """
    return math.sqrt(usage_count) * round(1 - abs(2 * confidence - 1), _DIGITS)
