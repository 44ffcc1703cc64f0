"""Recommendations, trends and reports: proto and domain say the same, found by descriptor."""

from __future__ import annotations

from typing import Any

import pytest

from lot_grpc.domain.adoption import (
    DAY,
    Adoption,
    DayAdoption,
    HoldoutArm,
    HoldoutComparison,
    KindAdoption,
    Period,
)
from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.episode import Episode, EpisodeStart, EpisodeStatus
from lot_grpc.domain.holdout import Arm
from lot_grpc.domain.performance import Advice, AdviceKind, Insight, InsightKind, PerformanceReport
from lot_grpc.domain.ranking import ScorePart
from lot_grpc.domain.recommendation import Recommendations, TaskProfile
from lot_grpc.domain.trends import (
    CategoryTrend,
    Change,
    NamedCount,
    TrendDirection,
    TrendOptions,
    TrendPoint,
)
from lot_grpc.pb.lot.v1 import episode_pb2, recommendation_pb2
from lot_grpc.pb.lot.v1 import performance_pb2 as pb
from lot_grpc.server.codec import episodes, learning
from lot_grpc.server.codec.values import EnumCodec
from lot_grpc.services.learning.recommendations import Recommended, SimilarEpisode
from tests.unit.filled import filled, names, set_field

COUNTS = (NamedCount("a", 2), NamedCount("b", 1))
TREND = CategoryTrend(
    "ops",
    total=40,
    sample_count=20,
    sample_successes=15,
    average_duration=1.5,
    best_approaches=COUNTS,
    compared_count=38,
    change=Change(TrendDirection.IMPROVING, 0.25, 0.75, 0.01),
    points=(TrendPoint(60_000_000, 3, 2, 0.5),),
)
KINDS = (KindAdoption(ResourceKind.MEMORY, 3, 2, 1),)
ADOPTION = Adoption(Period(1_000_000, 9_000_000), 4, 2, True, KINDS, (DayAdoption(DAY, 4, KINDS),))


def all_said(message: Any) -> None:
    """Every field of a message has a value that is not its default, below it as well."""
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            assert value, field.full_name
        elif field.is_repeated:
            assert value, field.full_name
            if field.message_type.full_name.startswith("lot.v1.") and field.name != "notices":
                all_said(value[0])
        else:
            assert message.HasField(field.name), field.full_name


@pytest.mark.parametrize(
    "name",
    sorted(
        set(names(recommendation_pb2.GetRecommendationsRequest))
        - {"namespace", "limit", "min_score"}
    ),
)
def test_each_field_of_a_task_is_read(name):
    message = recommendation_pb2.GetRecommendationsRequest()
    assert learning.profile_from_pb(message) == TaskProfile()
    set_field(message, name, 1)
    assert learning.profile_from_pb(message) != TaskProfile()


@pytest.mark.parametrize("name", ["sample_size", "interval", "max_points"])
def test_each_field_of_a_wish_is_read_and_has_the_documented_default(name):
    assert learning.trend_wish_from_pb(pb.GetTrendsRequest()) == TrendOptions(20, 0, 30)
    message = pb.GetTrendsRequest()
    set_field(message, name, 1)
    assert learning.trend_wish_from_pb(message) != TrendOptions()


def test_every_field_of_a_trend_is_given():
    shown = learning.trend_to_pb(TREND)
    all_said(shown)
    assert (shown.success_rate, shown.earlier_success_rate, shown.later_success_rate) == (
        0.75, 0.25, 0.75,
    )  # fmt: skip
    assert (shown.total_count, shown.sample_count, shown.compared_count) == (40, 20, 38)
    assert (shown.success_rate_lower, shown.success_rate_upper) == TREND.interval
    assert shown.points[0].start_time.seconds == 60


def test_every_field_of_a_report_is_given():
    report = PerformanceReport(
        "team",
        generate_time=7_000_000,
        total=41,
        successes=30,
        average_duration=2.5,
        trends=(TREND,),
        advice=(Advice(AdviceKind.SLOW, "ops", "m"),),
        insights=(Insight(InsightKind.TOOL, "git", 3, "m"),),
        adoption=ADOPTION,
        holdout=HoldoutComparison(
            HoldoutArm(3, Arm(2, 1.5, 1.25)), HoldoutArm(2, Arm(1, 0.5, 0.25))
        ),
    )
    shown = learning.report_to_pb(report)
    for one in (shown, shown.adoption, shown.holdout, shown.holdout.learned):
        all_said(one)
    assert (shown.holdout.gain, shown.holdout.holdout.mean_value) == (0.25, 0.5)
    assert (shown.total_count, shown.success_count) == (41, 30)
    assert dict(shown.by_category) == {"ops": 40}


def test_every_field_of_a_recommendation_is_given():
    whole = Recommendations("a", 0.5, 5, COUNTS, COUNTS, COUNTS, Complexity.HIGH, 7, 6)
    all_said(learning.recommendations_to_pb(whole))
    start = episodes.start_from_pb(filled(episode_pb2.Episode))
    assert start.task
    similar = SimilarEpisode(
        _episode(start), 0.75, 0.5, (ScorePart("category", 1.0, 0.4), ScorePart("text", 0.5, 0.1))
    )
    answer = learning.recommended_to_pb(
        Recommended(whole, [similar], truncated=True, wordless=True)
    )
    [hit] = answer.similar_episodes
    assert (hit.score, hit.similarity, len(hit.score_parts)) == (0.75, 0.5, 2)
    assert hit.episode.task == start.task
    assert [notice.field for notice in answer.notices] == ["task", "task"]
    assert all(notice.code and notice.message for notice in answer.notices)


def _episode(start: EpisodeStart) -> Episode:
    return Episode(
        "ns",
        "e",
        start,
        EpisodeStatus.SUCCEEDED,
        None,
        start_time=1,
        end_time=2,
        event_count=0,
        reused_count=0,
        writer_epoch=0,
        revision=1,
        create_time=1,
        update_time=1,
    )


@pytest.mark.parametrize(
    ("descriptor", "members"),
    [
        (pb.TrendDirection.DESCRIPTOR, TrendDirection),
        (pb.AdviceKind.DESCRIPTOR, AdviceKind),
        (pb.InsightKind.DESCRIPTOR, InsightKind),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_every_value_of_the_contract_means_something(descriptor, members):
    codec = EnumCodec(descriptor, members)
    for value in descriptor.values:
        member = codec.from_pb(value.number)
        assert (member is None) == (value.number == 0), value.name
        assert codec.to_pb(member) == value.number
