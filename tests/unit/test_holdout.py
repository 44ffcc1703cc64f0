"""Which recalls are held out, and the interval of the gain, by counting every possible result."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise, product
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.holdout import Arm, Gain, gain, in_holdout

OUTCOMES = st.lists(st.sampled_from((0.0, 0.5, 1.0)), min_size=1, max_size=60)
IDS = [f"retrieval-{number}" for number in range(20_000)]


def arm(values: list[float]) -> Arm:
    return reduce(Arm.record, values, Arm())


def proportion(successes: int, trials: int) -> Arm:
    return Arm(trials, float(successes), float(successes))


def found(learned: Arm, holdout: Arm) -> Gain:
    one = gain(learned, holdout)
    assert one is not None
    return one


@pytest.mark.parametrize("share", [0.01, 0.1, 0.25, 0.5])
def test_the_stated_share_of_recalls_is_held_out(share):
    held = sum(in_holdout(one, share) for one in IDS) / len(IDS)
    error = (share * (1 - share) / len(IDS)) ** 0.5
    assert abs(held - share) < 3 * error


def test_an_id_decides_once_and_for_all_and_a_larger_share_adds_only():
    for one in IDS[:500]:
        held = [in_holdout(one, share) for share in (0.0, 0.1, 0.3, 0.5, 1.0)]
        assert held == sorted(held)
        assert held == [in_holdout(one, share) for share in (0.0, 0.1, 0.3, 0.5, 1.0)]
        assert (held[0], held[-1]) == (False, True)
    # Stored receipts and recalls after an update must agree.
    assert [in_holdout(one, 0.5) for one in ("a", "b", "c", "d")] == [True, True, False, True]


def test_neighbouring_ids_are_independent():
    held = [in_holdout(one, 0.5) for one in IDS]
    pairs = sum(one == other for one, other in pairwise(held))
    assert abs(pairs / len(IDS) - 0.5) < 0.015


def test_without_outcomes_on_one_side_there_is_no_gain():
    assert gain(Arm(), arm([1.0])) is None
    assert gain(arm([1.0]), Arm()) is None
    assert Arm().mean is None


def test_the_interval_is_agresti_and_caffos():
    # 7 of 10 against 2 of 8: 8/12 - 3/10, and 1.96 standard errors of both.
    one = found(proportion(7, 10), proportion(2, 8))
    assert one.estimate == pytest.approx(0.45)
    reach = 1.959964 * (8 * 4 / 12**3 + 3 * 7 / 10**3) ** 0.5
    assert (one.lower, one.upper) == pytest.approx((11 / 30 - reach, 11 / 30 + reach))


def test_partial_successes_vary_less_than_successes_and_failures():
    halves, coins = arm([0.5] * 40), arm([0.0, 1.0] * 20)
    one, other = found(halves, halves), found(coins, coins)
    assert one.estimate == other.estimate == 0.0
    assert one.upper - one.lower < 0.4 * (other.upper - other.lower)


@given(OUTCOMES, OUTCOMES)
def test_the_interval_holds_the_estimate_and_turns_with_the_arms(values, others):
    one, other = found(arm(values), arm(others)), found(arm(others), arm(values))
    assert -1.0 <= one.lower <= one.estimate + 1e-12
    assert one.estimate - 1e-12 <= one.upper <= 1.0
    assert (one.lower, one.upper) == pytest.approx((-other.upper, -other.lower))


@given(OUTCOMES, OUTCOMES)
def test_more_outcomes_of_the_same_kind_make_it_narrower(values, others):
    one, more = found(arm(values), arm(others)), found(arm(values * 4), arm(others * 4))
    assert more.upper - more.lower < one.upper - one.lower


@pytest.mark.parametrize(("many", "few"), [(5, 5), (20, 5), (40, 10), (60, 60)])
@pytest.mark.parametrize("half", [0.0, 0.4, 1.0])
def test_it_covers_the_true_gain_near_95_percent_at_small_counts_and_extreme_rates(many, few, half):
    """Exactly: every result of both arms, weighted by its probability."""
    rates = (0.02, 0.1, 0.5, 0.9, 0.98)
    arms = {(count, rate): _results(count, rate, half) for count in (many, few) for rate in rates}
    covered = []
    for rate, other in product(rates, repeat=2):
        inside = 0.0
        for (one, weight), (two, weight2) in product(arms[many, rate], arms[few, other]):
            bounds = found(one, two)
            if bounds.lower <= rate - other <= bounds.upper:
                inside += weight * weight2
        covered.append(inside)
    assert min(covered) > 0.90
    assert sum(covered) / len(covered) > 0.945


def _results(count: int, rate: float, half: float) -> list[tuple[Arm, float]]:
    """What so many outcomes with this mean can come to, but for the least likely results.

    ``half``: 0, and all are 0 or 1; 1, and as many are ½ as this mean allows.
    """
    halves = half * 2 * min(rate, 1 - rate)
    ones = rate - halves / 2
    results: list[tuple[Arm, float]] = []
    for one in range(count + 1):
        for partial in range(count + 1 - one):
            none = count - one - partial
            weight: float = comb(count, one) * comb(count - one, partial)
            weight *= ones**one * halves**partial * (1 - ones - halves) ** none
            if weight > 1e-5:
                results.append((Arm(count, one + partial / 2, one + partial / 4), weight))
    return results
