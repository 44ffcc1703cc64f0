"""Trends and reports of LearningService on the wire."""

from __future__ import annotations

from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.domain.trends import DEFAULT_SAMPLE
from lot_grpc.pb.lot.v1 import learning_service_pb2_grpc as pb_grpc
from lot_grpc.pb.lot.v1 import performance_pb2 as pb
from lot_grpc.server.call import Context
from lot_grpc.server.convert import performance as convert
from lot_grpc.server.convert.episodes import filter_from_pb
from lot_grpc.services.learning.performance import Performance


class PerformanceServicer(pb_grpc.LearningServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(self, performance: Performance) -> None:
        self._performance = performance

    async def GetTrends(
        self, request: pb.GetTrendsRequest, context: Context
    ) -> pb.GetTrendsResponse:
        trends = await self._performance.trends(
            namespace_or_default(request.namespace),
            filter_from_pb(request.filter),
            convert.trend_options_from_pb(request),
        )
        return pb.GetTrendsResponse(trends=[convert.trend_to_pb(trend) for trend in trends])

    async def GetPerformanceReport(
        self, request: pb.GetPerformanceReportRequest, context: Context
    ) -> pb.GetPerformanceReportResponse:
        report = await self._performance.report(
            namespace_or_default(request.namespace),
            filter_from_pb(request.filter),
            request.sample_size or DEFAULT_SAMPLE,
        )
        return pb.GetPerformanceReportResponse(report=convert.report_to_pb(report))
