"""Trends and performance reports."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration

from lot_grpc.domain.performance import AdviceKind, InsightKind, PerformanceReport
from lot_grpc.domain.performance_page import page_of
from lot_grpc.domain.trends import (
    DEFAULT_POINTS,
    DEFAULT_SAMPLE,
    CategoryTrend,
    TrendDirection,
    TrendOptions,
)
from lot_grpc.pb.lot.v1 import performance_pb2 as pb
from lot_grpc.server.convert.recommendations import counts_to_pb
from lot_grpc.server.convert.values import EnumCodec, duration_to_pb, micros_from_pb, time_to_pb

DIRECTION = EnumCodec(pb.TrendDirection.DESCRIPTOR, TrendDirection, "TREND_DIRECTION_")
ADVICE_KIND = EnumCodec(pb.AdviceKind.DESCRIPTOR, AdviceKind, "ADVICE_KIND_")
INSIGHT_KIND = EnumCodec(pb.InsightKind.DESCRIPTOR, InsightKind, "INSIGHT_KIND_")


def trend_options_from_pb(message: pb.GetTrendsRequest) -> TrendOptions:
    """What trends shall show."""
    return TrendOptions(
        sample_size=message.sample_size or DEFAULT_SAMPLE,
        interval=micros_from_pb(message, "interval", "") or 0,
        max_points=message.max_points or DEFAULT_POINTS,
    )


def trend_to_pb(trend: CategoryTrend) -> pb.CategoryTrend:
    """How tasks of a category go."""
    change = trend.change
    lower, upper = trend.interval
    return pb.CategoryTrend(
        category=trend.category,
        direction=DIRECTION.to_pb(change.direction),
        success_rate=trend.success_rate,
        average_duration=_duration(trend.average_duration),
        total_count=trend.total,
        sample_count=trend.sample_count,
        best_approaches=counts_to_pb(trend.best_approaches),
        earlier_success_rate=change.earlier_rate,
        later_success_rate=change.later_rate,
        points=[
            pb.TrendPoint(
                start_time=time_to_pb(point.start_time),
                count=point.count,
                success_count=point.success_count,
                average_duration=_duration(point.average_duration),
            )
            for point in trend.points
        ],
        success_rate_lower=lower,
        success_rate_upper=upper,
        compared_count=trend.compared_count,
        change_p_value=change.p_value,
        change_significant=change.significant,
    )


def report_to_pb(report: PerformanceReport) -> pb.PerformanceReport:
    """The whole report, with its page."""
    return pb.PerformanceReport(
        generate_time=time_to_pb(report.generate_time),
        total_count=report.total,
        success_count=report.successes,
        success_rate=report.success_rate,
        average_duration=_duration(report.average_duration),
        by_category={trend.category: trend.total for trend in report.trends},
        trends=[trend_to_pb(trend) for trend in report.trends],
        advice=[
            pb.Advice(kind=ADVICE_KIND.to_pb(one.kind), category=one.category, message=one.message)
            for one in report.advice
        ],
        insights=[
            pb.Insight(
                kind=INSIGHT_KIND.to_pb(one.kind),
                name=one.name,
                count=one.count,
                message=one.message,
            )
            for one in report.insights
        ],
        markdown=page_of(report),
    )


def _duration(seconds: float | None) -> Duration | None:
    return None if seconds is None else duration_to_pb(seconds)
