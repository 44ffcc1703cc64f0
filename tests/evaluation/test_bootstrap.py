from __future__ import annotations

import random

import pytest

from lot_grpc.evaluation.bootstrap import Estimate, Verdict, estimates


def test_the_same_values_give_the_same_interval_and_another_seed_another():
    values = [random.Random(1).random() for _ in range(50)]
    values = [value * n % 1 for n, value in enumerate(values)]
    assert estimates([values]) == estimates([values])
    assert estimates([values], seed=1) != estimates([values], seed=2)


def test_the_interval_holds_the_mean_and_is_about_as_wide_as_theory_says():
    values = [float(n % 2) for n in range(400)]
    one = estimates([values])[0]
    assert one.mean == 0.5
    assert one.low < 0.5 < one.high
    # Half a width of 1.96 standard errors of a share of 0.5 among 400.
    assert (one.high - one.low) / 2 == pytest.approx(1.96 * 0.025, rel=0.15)


def test_more_queries_make_it_narrower():
    few, many = [0.0, 1.0] * 10, [0.0, 1.0] * 1000
    assert estimates([many])[0].high < estimates([few])[0].high


def test_columns_are_drawn_together_so_that_equal_ones_stay_equal():
    values = [0.1, 0.9, 0.4, 0.7]
    first, second = estimates([values, values])
    assert first == second


def test_one_query_has_an_interval_without_width():
    assert estimates([[0.25]]) == [Estimate(0.25, 0.25, 0.25)]


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.01, 0.2, Verdict.BETTER),
        (-0.2, -0.01, Verdict.WORSE),
        (-0.1, 0.1, Verdict.UNSHOWN),
        (0.0, 0.1, Verdict.UNSHOWN),
        (0.0, 0.0, Verdict.UNSHOWN),
    ],
)
def test_a_difference_is_shown_only_when_the_whole_interval_is_on_one_side(low, high, verdict):
    assert Estimate((low + high) / 2, low, high).verdict is verdict


def test_a_small_difference_that_every_query_shows_is_shown_though_the_intervals_overlap():
    low = [n / 100 for n in range(100)]
    high = [value + 0.01 for value in low]
    first, second, difference = estimates([low, high, [0.01] * 100])
    assert first.high > second.low
    assert difference.verdict is Verdict.BETTER
