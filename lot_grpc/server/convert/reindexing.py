"""How far a reindex is, on the wire."""

from __future__ import annotations

from typing import Any

from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1 import resource_kind_pb2
from lot_grpc.server.convert.values import duration_to_pb
from lot_grpc.services.records.collections import (
    CELLS,
    EPISODES,
    ERROR_SOLUTIONS,
    MEMORIES,
    PATTERNS,
)
from lot_grpc.services.reindex.reindexer import ReindexPhase, ReindexStep

_PHASES: dict[ReindexPhase, Any] = {
    phase: getattr(pb, f"REINDEX_PHASE_{phase.value}") for phase in ReindexPhase
}
_RESOURCE_KINDS: dict[str, Any] = {
    PATTERNS: resource_kind_pb2.RESOURCE_KIND_PATTERN,
    EPISODES: resource_kind_pb2.RESOURCE_KIND_EPISODE,
    MEMORIES: resource_kind_pb2.RESOURCE_KIND_MEMORY,
    ERROR_SOLUTIONS: resource_kind_pb2.RESOURCE_KIND_ERROR_SOLUTION,
    CELLS: resource_kind_pb2.RESOURCE_KIND_OUTCOME,
}


def reindex_step_to_pb(step: ReindexStep) -> pb.ReindexResponse:
    """A message of progress; what was learned from outcomes counts as theirs."""
    return pb.ReindexResponse(
        phase=_PHASES[step.phase],
        resource_kind=_RESOURCE_KINDS.get(
            step.collection, resource_kind_pb2.RESOURCE_KIND_UNSPECIFIED
        ),
        done_count=step.done,
        total_count=step.total,
        elapsed=duration_to_pb(step.elapsed),
        remaining=None if step.remaining is None else duration_to_pb(step.remaining),
        detail=step.detail,
    )
