"""PatternService on the wire: pruning."""

from __future__ import annotations

from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pb
from lot_grpc.pb.lot.v1 import pattern_service_pb2_grpc as pb_grpc
from lot_grpc.server.call import Context
from lot_grpc.server.convert.patterns import filter_from_pb
from lot_grpc.server.convert.values import duration_to_pb, time_to_pb
from lot_grpc.services.patterns.pruner import PatternPruner, PruneDraft


class PruningServicer(pb_grpc.PatternServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(self, pruning: PatternPruner) -> None:
        self._pruning = pruning

    async def PrunePatterns(
        self, request: pb.PrunePatternsRequest, context: Context
    ) -> pb.PrunePatternsResponse:
        by_rate = request.HasField("max_success_rate")
        draft = PruneDraft(
            filter_from_pb(request.filter),
            max_success_rate=request.max_success_rate if by_rate else None,
            min_usage_count=request.min_usage_count,
            max_remaining=request.max_remaining,
            dry_run=request.dry_run,
        )
        pruned = await self._pruning.prune(namespace_or_default(request.namespace), draft)
        oldest = pruned.oldest_remaining_time
        return pb.PrunePatternsResponse(
            deleted_count=pruned.deleted,
            pattern_ids=pruned.pattern_ids,
            oldest_remaining_time=None if oldest is None else time_to_pb(oldest),
            elapsed=duration_to_pb(pruned.elapsed),
            skipped_count=pruned.skipped,
            remaining_count=pruned.remaining,
        )
