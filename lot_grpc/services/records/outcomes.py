"""Outcomes of the log ⇄ Record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.ids import ResourceRef, point_id
from lot_grpc.domain.outcomes import Correction, Outcome
from lot_grpc.ports import Record
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.records.fields import FieldCodec
from lot_grpc.services.records.resource_refs import resource_of, resource_payload

APPLIED = "applied"


@dataclass(frozen=True, slots=True)
class RecordedOutcome:
    """One entry of the log: an outcome of one resource, or a correction of one.

    The resource is the retrieval itself if nothing of it was used; nothing is then counted.
    ``duration`` in seconds, ``create_time`` in microseconds.
    """

    namespace: str
    outcome_id: str
    resource: ResourceRef
    outcome: Outcome | None
    """None for a correction that replaces what it undoes with nothing."""
    create_time: int
    reward: float | None = None
    duration: float | None = None
    query: str = ""
    """What it was used on: a task, a question, or an error message."""
    retrieval_id: str = ""
    note: str = ""
    from_repeated_save: bool = False
    """From a repeated save, not from a use."""
    corrects_outcome_id: str = ""
    """The ``outcome_id`` of the entry that this one undoes."""
    root: str = ""
    """For a correction: the first entry in the chain of corrections."""
    correction: Correction | None = None

    @property
    def point(self) -> str:
        """Its point id. An entry is corrected once; what corrects it can be corrected."""
        if self.corrects_outcome_id:
            return correction_point(self.namespace, self.corrects_outcome_id, self.resource)
        return outcome_point(self.namespace, self.outcome_id, self.resource)

    @property
    def resource_point(self) -> str:
        """The point of the resource."""
        return self.resource.point(self.namespace)

    @property
    def in_context(self) -> bool:
        """Whether the stats of its resource on its query change too."""
        return bool(self.query) and learns_by_query(self.resource.kind)

    @property
    def value(self) -> float:
        """Its value in rates."""
        return self.outcome.value_in_rates if self.outcome else 0.0


_NOT_BY_QUERY: Final = (ResourceKind.ERROR_SOLUTION, ResourceKind.RETRIEVAL)
"""Error solutions are ranked by all of their outcomes, whatever the message."""


def learns_by_query(kind: str) -> bool:
    """Whether the ranking of a kind learns from outcomes on similar queries."""
    return kind not in _NOT_BY_QUERY


def correction_point(namespace: str, outcome_id: str, resource: ResourceRef) -> str:
    """The point id of the entry that corrects another one, if there is one."""
    return point_id(namespace, "correction", outcome_id, resource.kind, resource.id)


def outcome_point(namespace: str, outcome_id: str, resource: ResourceRef) -> str:
    """The point id of an entry that is not a correction."""
    return point_id(namespace, "outcome", outcome_id, resource.kind, resource.id)


_RECORDED = FieldCodec(
    RecordedOutcome, skip={"namespace", "resource", "correction"}, defaults={"outcome": None}
)
_CORRECTION = FieldCodec(
    Correction,
    rename={"time": "undone_time", "duration": "undone_duration"},
    defaults={"undone": None},
)


def outcome_record(recorded: RecordedOutcome, sort_key: int, point: str = "") -> Record:
    """Encode an outcome that is not applied to any counters yet. ``point``: its own, if known."""
    payload = {
        **_RECORDED.write(recorded),
        **resource_payload(recorded.namespace, recorded.resource),
        APPLIED: False,
        SORT_KEY: sort_key,
    }
    if recorded.correction is not None:
        payload |= _CORRECTION.write(recorded.correction)
    return Record(point or recorded.point, recorded.namespace, payload)


def outcome_from_record(record: Record) -> RecordedOutcome:
    """Decode the outcome of a record."""
    payload = record.payload
    correction = _CORRECTION.read(payload) if "corrects_outcome_id" in payload else None
    return _RECORDED.read(
        payload,
        namespace=record.namespace,
        resource=resource_of(payload),
        correction=correction,
    )
