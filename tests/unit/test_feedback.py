from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.errors import RequestInvalidError
from lot_grpc.domain.feedback import (
    FeedbackCounts,
    adjustment_of,
    moved,
    teaching_score,
)

shares = st.floats(0, 1)
adjustments = st.floats(-1, 1)


def test_a_bare_helpful_is_a_tenth_and_an_adjustment_counts_as_it_stands():
    assert adjustment_of(True, None) == 0.1
    assert adjustment_of(False, None) == -0.1
    assert adjustment_of(None, -0.35) == adjustment_of(True, -0.35) == -0.35
    assert adjustment_of(True, 0.0) == 0.0


@pytest.mark.parametrize("adjustment", [1.1, -1.1, math.nan, math.inf])
def test_an_adjustment_out_of_range_is_refused(adjustment):
    with pytest.raises(RequestInvalidError, match=r"must be in \[-1, 1\]"):
        adjustment_of(True, adjustment)


def test_feedback_that_says_nothing_is_refused():
    with pytest.raises(RequestInvalidError, match="helpful or confidence_adjustment must be set"):
        adjustment_of(None, None)


def test_tenths_add_up():
    confidence = 0.5
    for _ in range(3):
        confidence = moved(confidence, 0.1)
    assert confidence == 0.8


@given(shares, adjustments)
def test_a_confidence_stays_in_its_bounds_and_goes_where_it_is_moved(confidence, adjustment):
    after = moved(confidence, adjustment)
    assert 0 <= after <= 1
    assert math.isclose(after, min(1, max(0, confidence + adjustment)), abs_tol=1e-9)


@given(shares, shares, adjustments)
def test_what_was_surer_stays_at_least_as_sure(one, other, adjustment):
    low, high = sorted((one, other))
    assert moved(low, adjustment) <= moved(high, adjustment)


def test_counts_tell_helpful_from_unhelpful_from_neither():
    counts = FeedbackCounts().record(True, 5).record(False, 9).record(None, 7)
    assert counts == FeedbackCounts(3, 1, 1, last_feedback_time=9)


@given(st.integers(0, 10**6), st.integers(0, 10**6), shares)
def test_the_more_used_the_more_it_teaches(one, other, confidence):
    low, high = sorted((one, other))
    assert teaching_score(low, confidence) <= teaching_score(high, confidence) <= math.sqrt(high)


@given(st.integers(1, 10**6), st.floats(0, 0.5), st.floats(0, 0.5))
def test_the_less_sure_the_more_it_teaches(usage, one, other):
    near, far = sorted((one, other))
    for side in (1, -1):
        assert teaching_score(usage, 0.5 + side * near) >= teaching_score(usage, 0.5 + side * far)


def test_the_sure_and_the_unused_teach_nothing():
    assert teaching_score(100, 0.5) == 10
    assert teaching_score(100, 0) == teaching_score(100, 1) == teaching_score(0, 0.5) == 0
