"""EpisodeService on the wire: what keeps going wrong."""

from __future__ import annotations

from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.pb.lot.v1 import episode_service_pb2 as pb
from lot_grpc.pb.lot.v1 import episode_service_pb2_grpc as pb_grpc
from lot_grpc.server.call import Context
from lot_grpc.server.convert.episodes import filter_from_pb
from lot_grpc.server.convert.failures import analysis_to_pb
from lot_grpc.services.episodes.failure_analyzer import DEFAULT_GROUPS, FailureAnalyzer


class FailuresServicer(pb_grpc.EpisodeServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(self, failures: FailureAnalyzer) -> None:
        self._failures = failures

    async def AnalyzeFailures(
        self, request: pb.AnalyzeFailuresRequest, context: Context
    ) -> pb.AnalyzeFailuresResponse:
        analysis = await self._failures.analyze(
            namespace_or_default(request.namespace),
            filter_from_pb(request.filter),
            request.limit or DEFAULT_GROUPS,
            request.similarity if request.HasField("similarity") else None,
        )
        return analysis_to_pb(analysis)
