"""Trends of a category: the seed's numbers, and laws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.trends import (
    EndedEpisode,
    NamedCount,
    Tally,
    TrendDirection,
    TrendOptions,
    change_of,
    most_frequent,
)

SECOND = 1_000_000
OUTCOMES = st.lists(st.booleans(), max_size=60)


def halves(earlier: int, later: int, trials: int = 10) -> list[bool]:
    """So many successes in each half, oldest first."""
    older = [n < earlier for n in range(trials)]
    return older + [n < later for n in range(trials)]


def tally(outcomes: list[bool], options: TrendOptions | None = None, **named: object) -> Tally:
    """Of episodes that ended a minute apart, oldest first."""
    made = Tally(options or TrendOptions())
    for number, succeeded in reversed(list(enumerate(outcomes))):
        made.add(EndedEpisode(number * 60 * SECOND, succeeded, **{"seconds": 0.0, **named}))  # type: ignore[arg-type]
    return made


@pytest.mark.parametrize(
    ("earlier", "later", "trials", "direction"),
    [
        (5, 7, 10, TrendDirection.IMPROVING),
        (7, 5, 10, TrendDirection.DECLINING),
        (5, 6, 10, TrendDirection.STABLE),  # a difference of just .1 is none
        (7, 8, 10, TrendDirection.STABLE),  # nor is .8 - .7, though it is .10000000000000009
        (6, 5, 10, TrendDirection.STABLE),
        (2, 3, 5, TrendDirection.IMPROVING),
        (50, 61, 100, TrendDirection.IMPROVING),
        (50, 60, 100, TrendDirection.STABLE),
    ],
)
def test_halves_that_differ_by_more_than_a_tenth_are_a_direction(earlier, later, trials, direction):
    change = change_of(halves(earlier, later, trials))
    assert change.direction is direction
    assert (change.earlier_rate, change.later_rate) == (earlier / trials, later / trials)


def test_under_ten_there_is_no_direction():
    assert change_of([False] * 4 + [True] * 5).direction is TrendDirection.INSUFFICIENT_DATA
    assert change_of([False] * 4 + [True] * 5).p_value is None
    assert change_of([False] * 5 + [True] * 5).direction is TrendDirection.IMPROVING


def test_the_odd_one_belongs_to_the_newer_half():
    change = change_of([True] * 5 + [False] * 6)
    assert (change.earlier_rate, change.later_rate) == (1.0, 0.0)


def test_a_direction_may_be_chance_and_that_is_told():
    small = change_of(halves(5, 8))
    assert small.direction is TrendDirection.IMPROVING
    assert small.p_value == pytest.approx(0.3498, abs=5e-5)
    assert not small.significant
    large = change_of(halves(50, 80, 100))
    assert large.significant
    stable_but_sure = change_of(halves(4500, 4850, 5000))
    assert stable_but_sure.direction is TrendDirection.STABLE
    assert stable_but_sure.significant


@given(OUTCOMES)
def test_a_change_turned_round_is_the_opposite(outcomes):
    if len(outcomes) % 2:
        outcomes = outcomes[1:]
    there, back = change_of(outcomes), change_of(outcomes[::-1])
    opposite = {
        TrendDirection.IMPROVING: TrendDirection.DECLINING,
        TrendDirection.DECLINING: TrendDirection.IMPROVING,
    }
    assert back.direction is opposite.get(there.direction, there.direction)
    assert back.p_value == there.p_value


@given(OUTCOMES, st.integers(1, 30))
def test_rates_lie_in_0_to_1_and_in_their_interval(outcomes, size):
    trend = tally(outcomes, TrendOptions(sample_size=size)).trend("c", len(outcomes))
    assert trend.sample_count == min(size, len(outcomes))
    assert trend.sample_successes == sum(outcomes[-size:])
    low, high = trend.interval
    assert 0.0 <= low <= high <= 1.0
    if outcomes:
        assert low - 1e-12 <= trend.success_rate <= high + 1e-12
    assert 0.0 <= trend.change.earlier_rate <= 1.0
    assert 0.0 <= trend.change.later_rate <= 1.0


def test_the_sample_is_the_latest_20_and_the_halves_are_of_all():
    trend = tally([False] * 30 + [True] * 20 + [False] * 10).trend("c", 60)
    assert (trend.sample_count, trend.sample_successes) == (20, 10)
    assert trend.compared_count == 60
    assert trend.change.earlier_rate == 0.0
    assert trend.change.later_rate == pytest.approx(20 / 30)


def test_halves_are_of_the_latest_1000_at_most():
    made = tally([True] * 500 + [False] * 1000)
    trend = made.trend("c", 1500)
    assert trend.compared_count == 1000
    assert trend.change.earlier_rate == 0.0


def test_time_is_averaged_over_what_took_some():
    made = Tally(TrendOptions(sample_size=3))
    for end, seconds in ((4, 0.0), (3, 10.0), (2, 30.0), (1, 1000.0)):
        made.add(EndedEpisode(end, succeeded=False, seconds=seconds))
    assert made.trend("c", 4).average_duration == 20.0
    assert tally([True]).trend("c", 1).average_duration is None


def test_the_best_approaches_are_those_of_the_samples_successes():
    made = Tally(TrendOptions(sample_size=6))
    for name in ("a", "b", "b", "c", "d", ""):
        made.add(EndedEpisode(9, succeeded=True, seconds=0, approach=name))
    made.add(EndedEpisode(8, succeeded=True, seconds=0, approach="outside"))
    assert made.trend("c", 7).best_approaches == (
        NamedCount("b", 2),
        NamedCount("a", 1),
        NamedCount("c", 1),
    )
    failed = tally([False], approach="x").trend("c", 1)
    assert failed.best_approaches == ()


def test_points_are_multiples_of_the_interval_and_the_latest_come_oldest_first():
    made = Tally(TrendOptions(interval=60, max_points=2))
    for end, succeeded in ((300, True), (299, False), (241, True), (120, True)):
        episode = EndedEpisode(end, succeeded, seconds=float(end))
        assert made.takes(episode)
        made.add(episode)
    points = made.trend("c", 4).points
    assert [(p.start_time, p.count, p.success_count) for p in points] == [(240, 2, 1), (300, 1, 1)]
    assert points[0].average_duration == 270.0


def test_it_takes_more_only_while_that_changes_something():
    made = tally([True] * 1000)
    assert not made.takes(EndedEpisode(0, succeeded=True, seconds=0))
    pointed = tally([True] * 1000, TrendOptions(interval=3600 * SECOND, max_points=1))
    newest = 999 * 60 * SECOND
    assert pointed.takes(EndedEpisode(newest - newest % (3600 * SECOND), True, 0))
    assert not pointed.takes(EndedEpisode(0, succeeded=True, seconds=0))


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 3), max_size=8), st.integers(1, 9))
def test_the_most_frequent_come_first_and_ties_as_given(counts, limit):
    named = most_frequent(counts, limit)
    assert len(named) == min(limit, len(counts))
    places = {name: place for place, name in enumerate(counts)}
    keys = [(-one.count, places[one.name]) for one in named]
    assert keys == sorted(keys)
    left = set(counts) - {one.name for one in named}
    assert all(counts[name] <= named[-1].count for name in left)
