"""The trend of a group's share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.failures.share_trend import FEWEST, ShareTrend, Timeline

DAY = 86_400_000_000


def test_too_few_or_too_close_have_no_trend():
    assert Timeline([]).trend([]) == ShareTrend()
    few = [day * DAY for day in range(FEWEST - 1)]
    assert Timeline(few).trend(few[4:]) == ShareTrend()
    close = [hour * DAY // 24 for hour in range(24)]
    assert Timeline(close).trend(close[12:]) == ShareTrend()
    enough = [*close, DAY]
    assert Timeline(enough).trend(enough[12:]).slope > 0


def test_the_only_group_keeps_its_share():
    days = [day * DAY for day in range(FEWEST)]
    assert Timeline(days).trend(days) == ShareTrend()


def test_a_share_that_grows_evenly_has_its_growth_per_day_as_slope():
    """On day d, d of 10 failures are of the group: the share grows by a tenth a day."""
    times = [day * DAY for day in range(11) for _ in range(10)]
    ours = [day * DAY for day in range(11) for _ in range(day)]
    trend = Timeline(times).trend(ours)
    assert trend.slope == pytest.approx(0.1)
    assert trend.significant


def test_a_share_that_stays_is_not_significant():
    times = [day * DAY for day in range(20) for _ in range(2)]
    trend = Timeline(times).trend([day * DAY for day in range(20)])
    assert trend.slope == pytest.approx(0)
    assert not trend.significant


@given(st.lists(st.tuples(st.integers(0, 60 * DAY), st.integers(0, 3)), min_size=10, max_size=60))
def test_the_trends_of_all_groups_add_up_to_nothing(failures):
    timeline = Timeline([time for time, _ in failures])
    parts = [[time for time, group in failures if group == one] for one in range(4)]
    slopes = [timeline.trend(part).slope for part in parts if part]
    assert sum(slopes) == pytest.approx(0, abs=1e-9)
