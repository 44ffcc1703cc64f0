"""Outcome facts ⇄ Record."""

from __future__ import annotations

from dataclasses import dataclass

from lot_grpc.domain.ids import point_id
from lot_grpc.domain.outcomes import Correction, Outcome
from lot_grpc.ports import Record
from lot_grpc.services.records.collections import ERROR_SOLUTIONS, PATTERNS, SORT_KEY
from lot_grpc.services.records.error_solutions import error_solution_point
from lot_grpc.services.records.fields import FieldCodec
from lot_grpc.services.records.patterns import pattern_point

APPLIED = "applied"


@dataclass(frozen=True, slots=True)
class Counted:
    """A resource with counters: its kind, its id and its location."""

    resource_kind: str
    id: str
    collection: str
    point: str


@dataclass(frozen=True, slots=True)
class RecordedOutcome:
    """One entry of the log: of a pattern, or of an error solution, whose ``pattern_id`` is "".

    ``duration`` in seconds, ``create_time`` in microseconds.
    """

    namespace: str
    outcome_id: str
    pattern_id: str
    outcome: Outcome | None
    """None for a correction that replaces what it undoes with nothing."""
    create_time: int
    reward: float | None = None
    duration: float | None = None
    query: str = ""
    """What it was used on: a task, or the error message."""
    retrieval_id: str = ""
    note: str = ""
    from_repeated_save: bool = False
    """From a repeated save, not from a use."""
    corrects_outcome_id: str = ""
    """The ``outcome_id`` of the entry that this one undoes."""
    root: str = ""
    """For a correction: the first entry in the chain of corrections."""
    correction: Correction | None = None
    error_solution_id: str = ""

    @property
    def point(self) -> str:
        """Its point id. An entry is corrected once; what corrects it can be corrected."""
        if self.error_solution_id:
            solution_id = self.error_solution_id
            return point_id(self.namespace, "error solution outcome", self.outcome_id, solution_id)
        if self.corrects_outcome_id:
            return correction_point(self.namespace, self.corrects_outcome_id, self.pattern_id)
        return outcome_point(self.namespace, self.outcome_id, self.pattern_id)

    @property
    def counted_by(self) -> Counted:
        """The resource whose counters it changes."""
        if self.error_solution_id:
            point = error_solution_point(self.namespace, self.error_solution_id)
            return Counted("error solution", self.error_solution_id, ERROR_SOLUTIONS, point)
        return Counted(
            "pattern", self.pattern_id, PATTERNS, pattern_point(self.namespace, self.pattern_id)
        )

    @property
    def in_context(self) -> bool:
        """Whether the stats of its pattern on its query change too."""
        return bool(self.query and self.pattern_id)

    @property
    def value(self) -> float:
        """Its value in rates."""
        return self.outcome.value_in_rates if self.outcome else 0.0


def correction_point(namespace: str, outcome_id: str, pattern_id: str) -> str:
    """The point id of the entry that corrects another one, if there is one."""
    return point_id(namespace, "correction", outcome_id, pattern_id)


def outcome_point(namespace: str, outcome_id: str, pattern_id: str) -> str:
    """The point id of an entry that is not a correction."""
    return point_id(namespace, "outcome", outcome_id, pattern_id)


_RECORDED = FieldCodec(
    RecordedOutcome,
    skip={"namespace", "correction"},
    defaults={"pattern_id": "", "outcome": None},
)
_CORRECTION = FieldCodec(
    Correction,
    rename={"time": "undone_time", "duration": "undone_duration"},
    defaults={"undone": None},
)


def outcome_record(recorded: RecordedOutcome, sort_key: int, point: str = "") -> Record:
    """Encode an outcome that is not applied to any counters yet. ``point``: its own, if known."""
    payload = {**_RECORDED.write(recorded), APPLIED: False, SORT_KEY: sort_key}
    if recorded.correction is not None:
        payload |= _CORRECTION.write(recorded.correction)
    return Record(point or recorded.point, recorded.namespace, payload)


def outcome_from_record(record: Record) -> RecordedOutcome:
    """Decode the outcome of a record."""
    payload = record.payload
    correction = _CORRECTION.read(payload) if "corrects_outcome_id" in payload else None
    return _RECORDED.read(payload, namespace=record.namespace, correction=correction)
