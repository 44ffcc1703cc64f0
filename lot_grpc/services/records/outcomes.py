"""Outcomes of the log ⇄ Record."""

from __future__ import annotations

from lot_grpc.domain.outcomes import Correction
from lot_grpc.domain.recorded_outcome import RecordedOutcome
from lot_grpc.ports import Record
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.records.fields import FieldCodec
from lot_grpc.services.records.resource_refs import resource_of, resource_payload

APPLIED = "applied"

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
