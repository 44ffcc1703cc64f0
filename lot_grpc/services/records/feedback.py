"""Feedback ⇄ Record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lot_grpc.domain.ids import point_id
from lot_grpc.ports import Payload, Record
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.records.fields import FieldCodec
from lot_grpc.services.records.outcomes import APPLIED


@dataclass(frozen=True, slots=True)
class GivenFeedback:
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
        """Its point id."""
        return point_id(self.namespace, "feedback", self.feedback_id)


@dataclass(frozen=True, slots=True)
class FeedbackStep:
    """How a feedback counted: its number among the pattern's, and the change it made."""

    sequence: int
    confidence_before: float
    confidence_after: float

    def payload(self) -> Payload:
        """The keys that settle a fact."""
        return _STEP.write(self)


@dataclass(frozen=True, slots=True)
class FeedbackEntry:
    """A feedback, and how it counted; None before it did."""

    given: GivenFeedback
    step: FeedbackStep | None


_GIVEN = FieldCodec(GivenFeedback, skip={"namespace"})
_STEP = FieldCodec(FeedbackStep, sparse=False)


def feedback_record(given: GivenFeedback, sort_key: int) -> Record:
    """Encode a feedback that has not been applied to its pattern yet."""
    payload = {**_GIVEN.write(given), APPLIED: False, SORT_KEY: sort_key}
    return Record(given.point, given.namespace, payload)


def feedback_from_record(record: Record) -> FeedbackEntry:
    """Decode the feedback of a record."""
    payload = record.payload
    given = _GIVEN.read(payload, namespace=record.namespace)
    return FeedbackEntry(given, step_from_payload(payload) if payload[APPLIED] else None)


def step_from_payload(payload: Mapping[str, Any]) -> FeedbackStep:
    """Decode how a feedback counted, from its own row or the pattern's."""
    return _STEP.read(payload)
