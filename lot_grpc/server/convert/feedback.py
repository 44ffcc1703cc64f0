"""Feedback of patterns."""

from __future__ import annotations

from collections.abc import Iterable

from lot_grpc.domain.feedback import FeedbackCounts
from lot_grpc.pb.lot.v1 import feedback_pb2 as pb
from lot_grpc.pb.lot.v1 import outcome_pb2
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as service_pb
from lot_grpc.server.convert.values import time_to_pb
from lot_grpc.services.patterns.feedback import FeedbackDraft
from lot_grpc.services.records.feedback import FeedbackEntry


def counts_to_pb(counts: FeedbackCounts) -> pb.PatternFeedback | None:
    """How much feedback a pattern got; absent without any."""
    if not counts.feedback_count:
        return None
    return pb.PatternFeedback(
        feedback_count=counts.feedback_count,
        helpful_count=counts.helpful_count,
        unhelpful_count=counts.unhelpful_count,
        last_feedback_time=time_to_pb(counts.last_feedback_time),
    )


def draft_from_pb(message: service_pb.GiveFeedbackRequest) -> FeedbackDraft:
    """A feedback to give."""
    adjusted = message.HasField("confidence_adjustment")
    return FeedbackDraft(
        message.pattern_id,
        helpful=message.helpful if message.HasField("helpful") else None,
        confidence_adjustment=message.confidence_adjustment if adjusted else None,
        text=message.text,
        request_id=message.request_id,
    )


def entry_to_pb(entry: FeedbackEntry) -> pb.FeedbackEntry:
    """A feedback, and how it counted."""
    fact, step = entry.fact, entry.step
    return pb.FeedbackEntry(
        feedback_id=fact.feedback_id,
        number=step.number if step else 0,
        helpful=fact.helpful,
        confidence_adjustment=fact.confidence_adjustment,
        text=fact.text,
        confidence_before=step.confidence_before if step else 0,
        confidence_after=step.confidence_after if step else 0,
        create_time=time_to_pb(fact.create_time),
    )


def confidence_notices(unchanged_fields: Iterable[str]) -> list[outcome_pb2.Notice]:
    """Tells that an edit left a confidence as feedback had moved it."""
    return [
        outcome_pb2.Notice(
            code=outcome_pb2.NOTICE_CODE_FIELDS_UNCHANGED,
            field=f"pattern.{name}",
            message="feedback has adjusted it, so this update did not change it; name it in "
            "update_mask to set it",
        )
        for name in unchanged_fields
    ]
