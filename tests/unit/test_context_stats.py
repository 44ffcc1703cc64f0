"""What context stats contain, and what they say of another query."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.context_stats import (
    NEGLIGIBLE,
    ContextStats,
    Fading,
    evidence,
    kernel,
    least_cosine,
    neighbour,
)

DAY = 24 * 3600 * 1_000_000
FADING = Fading(half_life=10 * 24 * 3600.0, decay=0.9)
NEVER = Fading(half_life=0.0, decay=1.0)

values = st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=30)


def stats(of: list[float], fading: Fading = FADING, at: int = DAY) -> ContextStats:
    made = ContextStats()
    for value in of:
        made = made.record(value, at, fading)
    return made


def test_without_fading_stats_count():
    made = stats([1.0, 0.0, 0.5], NEVER)
    assert (made.successes, made.trials, made.count, made.last_time) == (1.5, 3.0, 3, DAY)


def test_each_outcome_takes_from_the_earlier_ones():
    made = stats([1.0, 1.0, 0.0])
    assert made.trials == pytest.approx(0.81 + 0.9 + 1.0)
    assert made.successes == pytest.approx(0.81 + 0.9)


def test_half_a_life_later_an_outcome_weighs_half():
    made = stats([1.0]).record(0.0, 11 * DAY, FADING)
    assert made.successes == pytest.approx(0.9 * 0.5)
    assert made.trials == pytest.approx(1 + 0.9 * 0.5)


def test_a_late_outcome_fades_nothing_by_time_and_leaves_the_time():
    made = stats([1.0], at=9 * DAY).record(1.0, 2 * DAY, FADING)
    assert made.last_time == 9 * DAY
    assert made.successes == pytest.approx(1.9)


@given(values)
def test_stats_never_have_more_than_was_recorded(of):
    made = stats(of)
    assert 0 <= made.successes <= made.trials + 1e-12
    assert made.trials <= min(made.count, 1 / (1 - FADING.decay)) + 1e-9
    assert made.count == len(of)


@given(values, st.sampled_from([0.0, 0.5, 1.0]), values, st.none() | st.sampled_from([0.0, 1.0]))
def test_a_correction_leaves_what_would_have_been(earlier, undone, later, instead):
    made = stats([*earlier, undone, *later])
    weight = made.weight_of(DAY, len(later), FADING)
    corrected = made.without(undone, weight)
    if instead is not None:
        corrected = corrected.along(instead, weight)
        wanted = stats([*earlier, instead, *later])
        assert corrected.successes == pytest.approx(wanted.successes, abs=1e-9)
        assert corrected.trials == pytest.approx(wanted.trials, abs=1e-9)
        assert corrected.count == wanted.count
    assert 0 <= corrected.successes <= corrected.trials + 1e-12


@given(values, values)
def test_two_merged_stats_are_their_sums_as_of_the_later(one, other):
    early, late = stats(one, at=DAY), stats(other, at=11 * DAY)
    merged = early.merge(late, FADING)
    assert merged == late.merge(early, FADING)
    left = 0.5 if other and one else 1.0
    if one and other:
        assert merged.trials == pytest.approx(early.trials * left + late.trials)
    assert merged.count == early.count + late.count
    assert merged.last_time == max(early.last_time, late.last_time)


@given(st.floats(-1, 1), st.floats(0.01, 5))
def test_the_kernel_is_one_for_the_same_query_and_falls(cosine, width):
    assert kernel(1.0, width) == 1.0
    assert 0 < kernel(cosine, width) <= 1
    assert kernel(least_cosine(width), width) == pytest.approx(NEGLIGIBLE)


def test_evidence_is_the_weighted_sum_and_names_the_nearest_first():
    far = neighbour(stats([0.0], NEVER), "far", 0.9, DAY, 0.1, NEVER)
    near = neighbour(stats([1.0, 1.0], NEVER), "near", 1.0000001, DAY, 0.1, NEVER)
    known = evidence([far, near])
    assert [one.query for one in known.neighbours] == ["near", "far"]
    assert known.successes == 2.0
    assert known.trials == pytest.approx(2.0 + math.exp(-1))


def test_what_is_old_says_less():
    old = neighbour(stats([1.0]), "q", 1.0, 21 * DAY, 0.1, FADING)
    assert old.trials == pytest.approx(0.25)


@given(values.filter(bool), st.floats(-1, 0.999))
def test_another_query_counts_as_one_trial_at_most_however_often_it_was_asked(of, cosine):
    known = evidence([neighbour(stats(of), "other", cosine, DAY, 0.1, FADING)])
    assert known.trials <= kernel(cosine, 0.1) + 1e-12
    assert known.successes <= known.trials + 1e-12
    same = evidence([neighbour(stats(of), "same", 0.99999, DAY, 0.1, FADING)])
    assert same.trials == pytest.approx(stats(of).trials, rel=1e-3)


def test_two_like_queries_say_more_than_one():
    all_stats = [neighbour(stats([1.0] * 9), query, 0.95, DAY, 0.1, FADING) for query in "ab"]
    assert evidence(all_stats).trials == pytest.approx(2 * evidence(all_stats[:1]).trials)
