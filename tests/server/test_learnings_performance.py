"""GetTrends and GetPerformanceReport on the wire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lot_grpc.pb.lot.v1 import episode_pb2
from lot_grpc.pb.lot.v1 import performance_pb2 as pb
from tests.server.wire import failure

SUCCEEDED = episode_pb2.EPISODE_STATUS_SUCCEEDED
FAILED = episode_pb2.EPISODE_STATUS_FAILED
START = datetime(2024, 5, 1, 12, tzinfo=UTC)


async def record(lot, outcomes, category="ops", seconds=60, **fields):
    """Episodes that ended a minute apart, oldest first: ``+`` well, ``-`` badly."""
    for number, outcome in enumerate(outcomes):
        end_time = START + timedelta(minutes=number)
        episode = {
            "task": "t",
            "category": category,
            "status": SUCCEEDED if outcome == "+" else FAILED,
            "start_time": end_time - timedelta(seconds=seconds),
            "end_time": end_time,
        } | fields
        await lot.episodes.RecordEpisode(episode=episode)


async def test_a_trend_tells_rate_time_direction_and_how_sure(lot):
    await record(lot, "--------------------" + "+" * 20, approach="plan")
    await record(lot, "+-+", category="ui", seconds=0)
    ops, ui = (await lot.learning.GetTrends()).trends
    assert (ops.category, ops.total_count, ops.sample_count) == ("ops", 40, 20)
    assert ops.direction == pb.TREND_DIRECTION_IMPROVING
    assert (ops.success_rate, ops.earlier_success_rate, ops.later_success_rate) == (1.0, 0.0, 1.0)
    assert ops.success_rate_lower == pytest.approx(0.8389, abs=5e-5)
    assert ops.success_rate_upper == 1.0
    assert ops.compared_count == 40
    assert ops.change_significant
    assert 0 < ops.change_p_value < 1e-9
    assert ops.average_duration.seconds == 60
    assert [(one.name, one.count) for one in ops.best_approaches] == [("plan", 20)]
    assert not ops.points
    assert ui.direction == pb.TREND_DIRECTION_INSUFFICIENT_DATA
    assert ui.success_rate == pytest.approx(2 / 3)
    assert not ui.HasField("average_duration")
    assert not ui.HasField("change_p_value")
    assert not ui.change_significant


async def test_points_by_interval_and_a_sample_of_ones_own(lot):
    await record(lot, "-" * 8 + "++++")
    answer = await lot.learning.GetTrends(
        sample_size=5, interval=timedelta(minutes=5), max_points=2
    )
    [trend] = answer.trends
    assert (trend.sample_count, trend.success_rate) == (5, 0.8)
    assert [
        (point.start_time.ToDatetime(UTC) - START, point.count, point.success_count)
        for point in trend.points
    ] == [(timedelta(minutes=5), 5, 2), (timedelta(minutes=10), 2, 2)]
    assert trend.points[0].average_duration.seconds == 60


async def test_running_episodes_are_not_in_trends_and_filters_narrow_them(lot):
    await lot.episodes.StartEpisode(episode={"task": "t", "category": "ops"})
    assert not (await lot.learning.GetTrends()).trends
    await record(lot, "+-", tags=["x"])
    await record(lot, "+", category="")
    names = [trend.category for trend in (await lot.learning.GetTrends()).trends]
    assert names == ["ops", ""]
    [only] = (await lot.learning.GetTrends(filter={"statuses": [FAILED]})).trends
    assert (only.total_count, only.success_rate) == (1, 0.0)
    [tagged] = (await lot.learning.GetTrends(filter={"tags_any": ["x"]})).trends
    assert tagged.total_count == 2


async def test_the_report_has_figures_advice_insights_and_a_page(lot):
    await record(lot, "+" * 6 + "-" * 6, seconds=400, approach="plan", tools_used=["git"])
    await record(lot, "+", category="", seconds=0, success_factors=["luck"])
    report = (await lot.learning.GetPerformanceReport()).report
    assert (report.total_count, report.success_count) == (13, 7)
    assert report.success_rate == pytest.approx(7 / 13)
    assert report.average_duration.seconds == 400
    assert dict(report.by_category) == {"ops": 12, "": 1}
    assert [trend.category for trend in report.trends] == ["ops", ""]
    assert [(one.kind, one.category) for one in report.advice] == [
        (pb.ADVICE_KIND_LOW_SUCCESS, "ops"),
        (pb.ADVICE_KIND_DECLINING, "ops"),
        (pb.ADVICE_KIND_SLOW, "ops"),
    ]
    assert "6 min 40 s" in report.advice[2].message
    assert [(one.kind, one.name, one.count) for one in report.insights] == [
        (pb.INSIGHT_KIND_APPROACH, "plan", 6),
        (pb.INSIGHT_KIND_SUCCESS_FACTOR, "luck", 1),
        (pb.INSIGHT_KIND_TOOL, "git", 6),
    ]
    assert report.markdown.startswith(f"# Performance of {lot.namespace}\n")
    assert "| ops | ↓ | 50.0% of 12 |" in report.markdown
    for one in (*report.advice, *report.insights):
        assert one.message in report.markdown
    assert report.HasField("generate_time")


async def test_the_report_of_nothing_is_stable_and_says_so(lot):
    report = (await lot.learning.GetPerformanceReport()).report
    assert (report.total_count, report.HasField("success_rate")) == (0, False)
    assert [one.kind for one in report.advice] == [pb.ADVICE_KIND_STABLE]
    assert not report.trends
    assert "No episode has ended." in report.markdown


async def test_the_report_follows_filter_and_sample(lot):
    await record(lot, "-" * 5 + "+" * 5)
    report = (await lot.learning.GetPerformanceReport(sample_size=4)).report
    assert report.trends[0].success_rate == 1.0
    assert report.success_rate == 0.5
    good = (await lot.learning.GetPerformanceReport(filter={"statuses": [SUCCEEDED]})).report
    assert (good.total_count, good.success_rate) == (5, 1.0)


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"sample_size": 1001}, "sample_size"),
        ({"sample_size": -1}, "sample_size"),
        ({"interval": timedelta(seconds=59)}, "interval"),
        ({"interval": timedelta(days=-1)}, "interval"),
        ({"max_points": 1001}, "max_points"),
        ({"filter": {"statuses": [0]}}, "filter.statuses[0]"),
    ],
)
async def test_bad_requests_are_refused(lot, fields, path):
    failed = await failure(lot.learning.GetTrends(**fields))
    assert (failed.reason, list(failed.fields)) == ("REQUEST_INVALID", [path])
