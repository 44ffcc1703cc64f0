"""Feedback ⇄ Record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lot_grpc.domain.ids import point_id
from lot_grpc.ports import Payload, Record
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.records.outcomes import SETTLED


@dataclass(frozen=True, slots=True)
class FeedbackFact:
    """One feedback as it was given. ``create_time`` in microseconds."""

    namespace: str
    feedback_id: str
    pattern_id: str
    create_time: int
    helpful: bool | None = None
    confidence_adjustment: float | None = None
    text: str = ""

    @property
    def point(self) -> str:
        """Where it lies."""
        return point_id(self.namespace, "feedback", self.feedback_id)


@dataclass(frozen=True, slots=True)
class FeedbackStep:
    """How a feedback counted: as which of the pattern's, and from where to where."""

    number: int
    confidence_before: float
    confidence_after: float

    def payload(self) -> Payload:
        """The keys that settle a fact."""
        return {
            "number": self.number,
            "confidence_before": self.confidence_before,
            "confidence_after": self.confidence_after,
        }


@dataclass(frozen=True, slots=True)
class FeedbackEntry:
    """A feedback, and how it counted; None before it did."""

    fact: FeedbackFact
    step: FeedbackStep | None


def feedback_record(fact: FeedbackFact, sort_key: int) -> Record:
    """A fact that no pattern has taken in yet."""
    payload: Payload = {
        "feedback_id": fact.feedback_id,
        "pattern_id": fact.pattern_id,
        "create_time": fact.create_time,
        SETTLED: False,
        SORT_KEY: sort_key,
    }
    if fact.helpful is not None:
        payload["helpful"] = fact.helpful
    if fact.confidence_adjustment is not None:
        payload["confidence_adjustment"] = fact.confidence_adjustment
    if fact.text:
        payload["text"] = fact.text
    return Record(fact.point, fact.namespace, payload)


def feedback_from_record(record: Record) -> FeedbackEntry:
    """The feedback of a record."""
    payload = record.payload
    fact = FeedbackFact(
        namespace=record.namespace,
        feedback_id=payload["feedback_id"],
        pattern_id=payload["pattern_id"],
        create_time=payload["create_time"],
        helpful=payload.get("helpful"),
        confidence_adjustment=payload.get("confidence_adjustment"),
        text=payload.get("text", ""),
    )
    return FeedbackEntry(fact, step_from_payload(payload) if payload[SETTLED] else None)


def step_from_payload(payload: Mapping[str, Any]) -> FeedbackStep:
    """How a feedback counted, as its row or the pattern's says."""
    return FeedbackStep(
        payload["number"], payload["confidence_before"], payload["confidence_after"]
    )
