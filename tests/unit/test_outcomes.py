from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.outcomes import ALPHA, Correction, Outcome, OutcomeStats, wilson_lower_bound

histories = st.lists(st.sampled_from(list(Outcome)), max_size=60)


def after(history: list[Outcome], first: float = 1.0) -> OutcomeStats:
    outcomes = OutcomeStats(success_rate=first)
    for number, outcome in enumerate(history):
        outcomes = outcomes.record(outcome, at=number)
    return outcomes


@pytest.mark.parametrize(
    ("outcome", "first", "expected"),
    [
        (Outcome.SUCCESS, 0.5, 0.65),
        (Outcome.FAILURE, 0.5, 0.35),
        (Outcome.PARTIAL, 0.5, 0.5),
        (Outcome.FAILURE, 1.0, 0.7),
        (Outcome.PARTIAL, 1.0, 0.85),
        (Outcome.SUCCESS, 0.0, 0.3),
    ],
)
def test_one_outcome_moves_the_rate_by_three_tenths_of_the_way(outcome, first, expected):
    assert ALPHA == 0.3
    assert OutcomeStats(success_rate=first).record(outcome, at=1).success_rate == pytest.approx(
        expected, abs=1e-12
    )


def test_the_rate_is_an_exponential_moving_average_of_the_whole_history():
    history = [Outcome.SUCCESS, Outcome.FAILURE, Outcome.PARTIAL, Outcome.SUCCESS]
    rate = 0.8
    for value in (1.0, 0.0, 0.5, 1.0):
        rate = 0.3 * value + 0.7 * rate
    assert after(history, 0.8).success_rate == pytest.approx(rate, abs=1e-15)


@given(histories, st.floats(0, 1))
def test_the_rate_stays_between_nothing_and_one(history, first):
    assert 0.0 <= after(history, first).success_rate <= 1.0 + 1e-12


@given(histories)
def test_counts_are_those_of_the_history(history):
    outcomes = after(history)
    assert outcomes.usage_count == len(history)
    assert outcomes.success_count == history.count(Outcome.SUCCESS)
    assert outcomes.failure_count == history.count(Outcome.FAILURE)
    assert outcomes.partial_count == history.count(Outcome.PARTIAL)
    assert outcomes.last_used_time == max(0, len(history) - 1)


# To four digits, as tables of the 95 % score interval give them.
@pytest.mark.parametrize(
    ("successes", "trials", "expected"),
    [
        (0, 0, 0.0),
        (0, 10, 0.0),
        (1, 1, 0.2065),
        (1, 2, 0.0945),
        (8, 10, 0.4902),
        (10, 10, 0.7225),
        (50, 100, 0.4038),
        (90, 100, 0.8256),
    ],
)
def test_the_lower_bound_has_its_known_values(successes, trials, expected):
    assert wilson_lower_bound(successes, trials) == pytest.approx(expected, abs=6e-5)


@given(st.integers(1, 500), st.floats(0.001, 1))
def test_the_lower_bound_solves_the_equation_that_defines_it(trials, share):
    """The lowest chance from which the share seen lies 1.96 standard deviations away."""
    bound = wilson_lower_bound(share * trials, trials)
    deviation = math.sqrt(bound * (1 - bound) / trials)
    assert share - bound == pytest.approx(1.959964 * deviation, abs=1e-6)


def test_a_half_success_lies_between_its_neighbours():
    three, three_and_a_half, four = (wilson_lower_bound(s, 5) for s in (3, 3.5, 4))
    assert three < three_and_a_half < four
    assert OutcomeStats(success_count=3, partial_count=1, failure_count=1).reliability == (
        three_and_a_half
    )


@given(st.integers(1, 2000), st.floats(0, 1))
def test_the_lower_bound_is_cautious_and_grows_with_evidence(trials, share):
    successes = share * trials
    bound = wilson_lower_bound(successes, trials)
    assert 0.0 <= bound <= share + 1e-12
    assert wilson_lower_bound(successes * 2, trials * 2) >= bound - 1e-12


def test_the_average_duration_is_over_those_that_said_how_long():
    outcomes = (
        OutcomeStats()
        .record(Outcome.SUCCESS, at=5, duration=2.0)
        .record(Outcome.SUCCESS, at=6)
        .record(Outcome.FAILURE, at=7, duration=4.0)
    )
    assert outcomes.average_duration == 3.0
    assert outcomes.usage_count == 3
    assert OutcomeStats().record(Outcome.SUCCESS, at=1).average_duration is None
    assert OutcomeStats().record(Outcome.SUCCESS, at=1, duration=0.0).average_duration == 0.0


def test_an_outcome_that_comes_late_does_not_move_the_last_use_back():
    outcomes = OutcomeStats().record(Outcome.SUCCESS, at=9).record(Outcome.SUCCESS, at=4)
    assert outcomes.last_used_time == 9


def test_a_thing_never_tried_has_no_reliability_and_shows_it():
    fresh = OutcomeStats(success_rate=1.0)
    assert (fresh.usage_count, fresh.reliability, fresh.last_used_time) == (0, 0.0, 0)
    assert not math.isnan(fresh.reliability)


# --- corrections --------------------------------------------------------------------------------

OUTCOMES = st.sampled_from(list(Outcome))


def replay(start: float, outcomes: list[Outcome]) -> OutcomeStats:
    counted = OutcomeStats(success_rate=start)
    for outcome in outcomes:
        counted = counted.record(outcome, at=1, duration=2.0)
    return counted


@given(
    st.floats(0, 1),
    st.lists(OUTCOMES, max_size=20),
    OUTCOMES,
    st.lists(OUTCOMES, max_size=20),
    st.none() | OUTCOMES,
)
def test_a_correction_comes_to_what_would_have_been(start, earlier, undone, later, instead):
    counted = replay(start, [*earlier, undone, *later])
    corrected = counted.correct(
        Correction(undone, time=1, duration=2.0),
        instead,
        [outcome.value_in_rates for outcome in later],
    )
    wanted = replay(start, [*earlier, *([instead] if instead else []), *later])
    assert corrected.success_rate == pytest.approx(wanted.success_rate, abs=1e-6)
    for field in ("success_count", "failure_count", "partial_count", "duration_count"):
        assert getattr(corrected, field) == getattr(wanted, field)
    assert corrected.duration_total == pytest.approx(wanted.duration_total)


@given(st.floats(0, 1), OUTCOMES, st.none() | OUTCOMES)
def test_what_lies_too_far_back_leaves_the_rate_as_it_is(start, undone, instead):
    counted = replay(start, [undone] * 3)
    corrected = counted.correct(Correction(undone, time=1), instead, None)
    assert corrected.success_rate == counted.success_rate
    assert corrected.usage_count == counted.usage_count - (instead is None)


@given(st.lists(OUTCOMES, max_size=30), st.floats(0, 1))
def test_rates_stay_rates(outcomes, start):
    counted = replay(start, outcomes)
    assert 0 <= counted.success_rate <= 1
    assert 0 <= counted.reliability <= 1


@given(st.lists(OUTCOMES, max_size=30))
def test_one_more_success_never_lowers_what_is_known(outcomes):
    before = replay(0.5, outcomes)
    after = before.record(Outcome.SUCCESS, at=2)
    assert after.reliability >= before.reliability
    assert after.success_rate >= before.success_rate


@given(st.floats(0, 40), st.floats(0.01, 40))
def test_the_bound_takes_fractions_and_grows_with_successes(successes, failures):
    bound = wilson_lower_bound(successes, successes + failures)
    assert 0 <= bound <= successes / (successes + failures) + 1e-12
    assert wilson_lower_bound(successes + 1, successes + failures + 1) >= bound
