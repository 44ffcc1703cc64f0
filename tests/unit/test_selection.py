"""Choosing an action: laws of the policies."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.action_values import (
    BOUND,
    ActionValue,
    LearningState,
    best_first,
    learned,
)
from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.selection import SelectionPolicy, choose, generator

names = st.sampled_from("abcdefgh")
worth = st.floats(-BOUND, BOUND)


def known_of(values: dict[str, tuple[float, int]]) -> dict[str, ActionValue]:
    return {
        name: ActionValue("t", None, name, value, visits, 0)
        for name, (value, visits) in values.items()
    }


knowledge = st.dictionaries(names, st.tuples(worth, st.integers(1, 10**6)), min_size=1).map(
    known_of
)
offers = st.lists(names, min_size=1, unique=True)


# --- values -----------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.floats(-1, 1), st.booleans()), max_size=300), worth)
def test_a_value_stays_within_its_bound_whatever_is_learned(steps, other):
    """The next state's best is this value itself, or any other within the bound."""
    value = 0.0
    for reward, same in steps:
        value = learned(value, reward, value if same else other)
        assert abs(value) <= BOUND + 1e-9


@given(worth, st.floats(-1, 1), worth)
def test_a_step_moves_a_value_a_tenth_of_the_way(value, reward, best):
    target = reward + 0.95 * best
    assert learned(value, reward, best) - value == pytest.approx((target - value) / 10, abs=1e-12)


def test_the_same_rewards_for_ever_end_at_the_bound():
    value = 0.0
    for _ in range(5000):
        value = learned(value, 1.0, value)
    assert value == pytest.approx(BOUND)
    assert pytest.approx(20) == BOUND


@given(knowledge)
def test_the_best_come_first_and_equal_ones_by_name(known):
    ordered = best_first(known.values())
    assert sorted(one.action for one in ordered) == sorted(known)
    for first, second in itertools.pairwise(ordered):
        assert (-first.value, first.action) < (-second.value, second.action)


def test_a_state_is_its_type_and_complexity():
    assert LearningState("code", Complexity.MEDIUM).key == "code:medium"
    assert LearningState("code").key == "code:"
    assert LearningState("a:low").key != LearningState("a", Complexity.LOW).key
    assert LearningState("code", features={"x": 1}).key == LearningState("code").key


# --- policies ---------------------------------------------------------------------------------


@given(offers, knowledge, st.sampled_from(SelectionPolicy), st.integers())
def test_what_is_chosen_was_offered_and_the_same_seed_chooses_the_same(offer, known, policy, seed):
    first = choose(offer, known, policy, generator(seed))
    assert first.action in offer
    assert choose(offer[::-1], known, policy, generator(seed)) == first


@given(offers, knowledge, st.integers())
def test_greedy_is_the_first_by_name_of_the_greatest_values(offer, known, seed):
    choice = choose(offer, known, SelectionPolicy.GREEDY, generator(seed))
    if not set(offer) & set(known):
        assert choice.explored
        return
    values = {name: known[name].value if name in known else 0.0 for name in offer}
    best = max(values.values())
    assert choice.action == min(name for name in offer if values[name] == best)
    assert not choice.explored


def test_an_action_that_was_never_tried_is_worth_nothing_and_not_less():
    for value, expected in ((-0.1, "b"), (0.1, "a")):
        known = known_of({"a": (value, 3)})
        assert choose(["a", "b"], known, SelectionPolicy.GREEDY, generator(1)).action == expected


def test_epsilon_greedy_explores_in_a_fifth_of_the_choices():
    known = known_of({"a": (1.0, 5)})
    choices = [
        choose("abcd", known, SelectionPolicy.EPSILON_GREEDY, generator(seed))
        for seed in range(4000)
    ]
    assert sum(one.explored for one in choices) / 4000 == pytest.approx(0.2, abs=0.02)
    others = sum(one.action != "a" for one in choices) / 4000
    assert others == pytest.approx(0.2 * 3 / 4, abs=0.02)


@pytest.mark.parametrize("policy", SelectionPolicy)
def test_where_nothing_is_known_each_action_has_the_same_chance(policy):
    counts = Counter(choose("abcd", {}, policy, generator(seed)).action for seed in range(4000))
    assert all(count / 4000 == pytest.approx(0.25, abs=0.03) for count in counts.values())
    assert len(counts) == 4


def test_ucb_takes_what_was_never_tried_first_and_then_the_highest_bound():
    known = known_of({"a": (5.0, 100), "b": (0.0, 1)})
    tried = {choose("abcd", known, SelectionPolicy.UCB, generator(n)).action for n in range(50)}
    assert tried == {"c", "d"}
    # a: 0.5 + 2 √(2 ln 101 / 100) = 1.11; b: 0 + 2 √(2 ln 101 / 1) = 6.08
    known = known_of({"a": (0.5, 100), "b": (0.0, 1)})
    choice = choose("ab", known, SelectionPolicy.UCB, generator(1))
    assert (choice.action, choice.explored) == ("b", True)
    # a: 5 + 0.64; b: 0 + 2 √(2 ln 102 / 2) = 4.30
    known = known_of({"a": (5.0, 100), "b": (0.0, 2)})
    choice = choose("ab", known, SelectionPolicy.UCB, generator(1))
    assert (choice.action, choice.explored) == ("a", False)


def test_thompson_takes_the_better_the_more_surely_it_is_known():
    shares = []
    for visits in (1, 10, 1000):
        known = known_of({"a": (0.5, visits), "b": (0.0, visits)})
        chosen = [
            choose("ab", known, SelectionPolicy.THOMPSON, generator(seed)).action
            for seed in range(1000)
        ]
        shares.append(chosen.count("a") / 1000)
    # Φ(0.5 / √(2 / (n + 1))): .69, .88, 1
    assert shares == pytest.approx([0.69, 0.88, 1.0], abs=0.04)


def test_without_a_seed_choices_differ():
    assert len({generator(None).random() for _ in range(5)}) == 5
    assert generator(3).random() != generator(-3).random()
    assert generator(3).random() == generator(3).random()
    assert isinstance(generator(3), random.Random)
