"""Contents as the things that the server converts."""

from __future__ import annotations

from lot_grpc.domain.feedback import FeedbackCounts
from lot_grpc.domain.origin import Review, ReviewState
from lot_grpc.domain.outcomes import OutcomeStats
from lot_grpc.domain.pattern import Pattern, PatternContent

PATTERN_OUTPUT_ONLY = {
    "pattern_id", "outcomes", "namespace", "etag", "create_time", "update_time", "feedback",
    "superseded_by", "review",
}  # fmt: skip


OUTCOMES = OutcomeStats(
    0.7, 5, 2, 1, duration_count=2, duration_total=3.0, last_used_time=9_000_001
)


FEEDBACK = FeedbackCounts(3, 1, 2, last_feedback_time=8_000_001)

REVIEW = Review(ReviewState.REJECTED, "no source", 7_000_001)


def as_pattern(content: PatternContent) -> Pattern:
    return Pattern(
        "ns", "p-1", content, OUTCOMES, 26, 1_000_001, 2_000_002,
        feedback=FEEDBACK, superseded_by="p-2", review=REVIEW,
    )  # fmt: skip
