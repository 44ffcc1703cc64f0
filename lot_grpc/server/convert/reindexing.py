"""How far a reindex is, on the wire."""

from __future__ import annotations

from typing import Any

from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1 import noun_pb2
from lot_grpc.server.convert.values import duration_to_pb
from lot_grpc.services.records.collections import (
    CELLS,
    EPISODES,
    ERROR_SOLUTIONS,
    MEMORIES,
    PATTERNS,
)
from lot_grpc.services.reindexing.reindexing import ReindexPhase, ReindexStep

_PHASES: dict[ReindexPhase, Any] = {
    phase: getattr(pb, f"REINDEX_PHASE_{phase.value}") for phase in ReindexPhase
}
_NOUNS: dict[str, Any] = {
    PATTERNS: noun_pb2.NOUN_PATTERN,
    EPISODES: noun_pb2.NOUN_EPISODE,
    MEMORIES: noun_pb2.NOUN_MEMORY,
    ERROR_SOLUTIONS: noun_pb2.NOUN_ERROR_SOLUTION,
    CELLS: noun_pb2.NOUN_OUTCOME,
}


def reindex_step_to_pb(step: ReindexStep) -> pb.ReindexResponse:
    """A message of progress; what was learned from outcomes counts as theirs."""
    return pb.ReindexResponse(
        phase=_PHASES[step.phase],
        noun=_NOUNS.get(step.collection, noun_pb2.NOUN_UNSPECIFIED),
        done_count=step.done,
        total_count=step.total,
        elapsed=duration_to_pb(step.elapsed),
        remaining=None if step.remaining is None else duration_to_pb(step.remaining),
        detail=step.detail,
    )
