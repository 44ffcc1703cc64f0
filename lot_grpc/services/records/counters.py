"""The counters of a resource of which outcomes are recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lot_grpc.domain.outcomes import NO_OUTCOMES, OutcomeStats
from lot_grpc.ports import Payload
from lot_grpc.services.records.fields import FieldCodec

STATS_REVISION: Final = "stats_revision"
"""Incremented by what changes a record without a new revision, such as an outcome."""
PENDING: Final = "pending_ids"
"""The outcomes that are counted and may not be marked as applied yet."""

_OUTCOMES = FieldCodec(OutcomeStats, sparse=False)


def uncounted() -> Payload:
    """The keys of a record of which no outcome was recorded."""
    return {STATS_REVISION: 0, PENDING: []}


def outcomes_payload(outcomes: OutcomeStats) -> Payload:
    """The keys that an outcome writes."""
    return {
        **_OUTCOMES.write(outcomes),
        "success_permille": round(outcomes.success_rate * 1000),
        "reliability": outcomes.reliability,
        "usage_count": outcomes.usage_count,
    }


def outcomes_if_any(outcomes: OutcomeStats) -> Payload:
    """The keys of a record of which an outcome was recorded; none of any other."""
    return outcomes_payload(outcomes) if outcomes != NO_OUTCOMES else {}


def outcomes_from_payload(payload: Mapping[str, Any]) -> OutcomeStats:
    """Decode the counters of a record; memories and episodes have none before the first outcome."""
    return _OUTCOMES.read(payload) if "success_count" in payload else NO_OUTCOMES
