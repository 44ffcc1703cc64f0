"""Intervals and the exact test, against worked values and against their definitions."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.outcomes import WILSON_Z
from lot_grpc.domain.significance import fisher_exact, wilson_interval

COUNTS = st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (16, 20, 0.5840, 0.9193),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (0, 0, 0.0, 1.0),
    ],
)
def test_the_interval_is_wilsons(successes, trials, low, high):
    assert wilson_interval(successes, trials) == pytest.approx((low, high), abs=5e-5)


@given(COUNTS)
def test_the_interval_contains_the_rate_and_lies_in_0_to_1(counts):
    successes, trials = counts
    low, high = wilson_interval(successes, trials)
    assert 0.0 <= low <= successes / trials <= high <= 1.0
    # Its bounds are the chances from which the rate lies z standard errors away.
    for bound in (low, high):
        if 0.0 < bound < 1.0:
            error = (bound * (1 - bound) / trials) ** 0.5
            assert abs(successes / trials - bound) == pytest.approx(WILSON_Z * error)


@given(COUNTS)
def test_more_trials_of_the_same_rate_make_it_narrower(counts):
    successes, trials = counts
    low, high = wilson_interval(successes, trials)
    more_low, more_high = wilson_interval(2 * successes, 2 * trials)
    assert more_high - more_low < high - low


@pytest.mark.parametrize(
    ("table", "p"),
    [
        ((3, 4, 1, 4), 34 / 70),  # Fisher's own: the lady tasting tea
        ((10, 10, 0, 10), 2 / 184_756),
        ((1, 10, 9, 10), 2 * (10 * 10 + 1) / 184_756),
        ((0, 5, 0, 5), 1.0),
        ((5, 5, 5, 5), 1.0),
    ],
)
def test_the_exact_test_gives_the_worked_values(table, p):
    assert fisher_exact(*table) == pytest.approx(p, rel=1e-12)


@given(COUNTS, COUNTS)
def test_the_exact_test_is_its_definition(a, b):
    successes = a[0] + b[0]
    ways = {
        k: comb(a[1], k) * comb(b[1], successes - k)
        for k in range(successes + 1)
        if k <= a[1] and successes - k <= b[1]
    }
    p = sum(way for way in ways.values() if way <= ways[a[0]]) / comb(a[1] + b[1], successes)
    assert fisher_exact(*a, *b) == pytest.approx(p, rel=1e-12)
    assert 0.0 < p <= 1.0


@given(COUNTS, COUNTS)
def test_the_exact_test_knows_no_first_and_no_success(a, b):
    p = fisher_exact(*a, *b)
    assert fisher_exact(*b, *a) == p
    assert fisher_exact(a[1] - a[0], a[1], b[1] - b[0], b[1]) == p
