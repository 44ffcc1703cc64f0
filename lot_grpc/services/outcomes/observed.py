"""The metrics of outcomes: what was recorded, and which recalls helped."""

from __future__ import annotations

from typing import Final

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.recorded_outcome import RecordedOutcome
from lot_grpc.telemetry.metrics import OUTCOMES, RECALLS_HELPED

_REMEMBERED: Final = 10_000
"""Recalls that are known to have helped, so that a second success of one does not count."""


class ObservedOutcomes:
    """Counts outcomes that were just written for the first time."""

    def __init__(self) -> None:
        self._helped: dict[str, None] = {}  # oldest first

    def count(self, recorded: RecordedOutcome) -> None:
        """Count an outcome of a use; corrections and repeated saves are none."""
        if recorded.outcome is None or recorded.correction or recorded.from_repeated_save:
            return
        kind, recall = recorded.resource.kind, recorded.retrieval_id
        OUTCOMES.add(kind, recorded.outcome)
        used = recorded.outcome is Outcome.SUCCESS and kind is not ResourceKind.RETRIEVAL
        if used and recall and recall not in self._helped:
            self._helped[recall] = None
            if len(self._helped) > _REMEMBERED:
                del self._helped[next(iter(self._helped))]
            RECALLS_HELPED.add()
