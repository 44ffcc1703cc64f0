"""Selecting an action by learned values."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from lot_grpc.domain.action_values import ActionValue

EXPLORATION_RATE = 0.2
"""Chance of EPSILON_GREEDY to take any action."""

REWARD_WIDTH = 2.0
"""Between the least reward and the greatest: what UCB1's bound, made for [0, 1], is widened by."""


class SelectionPolicy(StrEnum):
    """How an action is selected."""

    EPSILON_GREEDY = "epsilon_greedy"
    GREEDY = "greedy"
    UCB = "ucb"
    THOMPSON = "thompson"


@dataclass(frozen=True, slots=True)
class Choice:
    """``explored``: another action, or one of equal value before it, was worth more or as much."""

    action: str
    explored: bool


def generator(seed: int | None) -> random.Random:
    """Random numbers, the same for the same seed; None: never the same."""
    # As text, since Python takes a number and its negative for the same seed.
    return random.Random() if seed is None else random.Random(f"selection {seed}")  # noqa: S311


def choose(
    actions: Sequence[str],
    known: Mapping[str, ActionValue],
    policy: SelectionPolicy,
    numbers: random.Random,
    exploration_rate: float = EXPLORATION_RATE,
) -> Choice:
    """One of ``actions``; their order plays no part.

    An action of which nothing is known is worth 0. Nothing known of any: each has the same chance,
    whatever the policy. EPSILON_GREEDY takes any action with a chance of ``exploration_rate``, else
    it is GREEDY: the action worth most, of equal ones the first by name. UCB is UCB1 (Auer and
    others 2002): first those never tried, at random, then the greatest ``value + 2 √(2 ln N / n)``
    with n visits of N. THOMPSON takes the greatest of one sample each from the normal distribution
    with mean ``value`` and variance ``1 / (n + 1)``: what is known of a mean after n rewards of
    variance 1, the most that rewards in [-1, 1] can have, from a prior of mean 0 and variance 1.
    """
    names = sorted(actions)
    if not any(name in known for name in names):
        return Choice(_any(names, numbers), explored=True)
    greedy = max(names, key=lambda name: _value(known, name))  # the first by name of equal ones
    match policy:
        case SelectionPolicy.GREEDY:
            return Choice(greedy, explored=False)
        case SelectionPolicy.EPSILON_GREEDY:
            if numbers.random() < exploration_rate:
                return Choice(_any(names, numbers), explored=True)
            return Choice(greedy, explored=False)
        case SelectionPolicy.UCB:
            chosen = _by_upper_bound(names, known, numbers)
        case SelectionPolicy.THOMPSON:
            chosen = _greatest(names, lambda name: _sample(known.get(name), numbers))
    return Choice(chosen, explored=chosen != greedy)


def _value(known: Mapping[str, ActionValue], name: str) -> float:
    return known[name].value if name in known else 0.0


def _any(names: Sequence[str], numbers: random.Random) -> str:
    return names[int(numbers.random() * len(names))]


def _greatest(names: Sequence[str], worth: Callable[[str], float]) -> str:
    return max(names, key=worth)


def _by_upper_bound(
    names: Sequence[str], known: Mapping[str, ActionValue], numbers: random.Random
) -> str:
    untried = [name for name in names if name not in known]
    if untried:
        return _any(untried, numbers)
    visits = sum(known[name].visit_count for name in names)

    def bound(name: str) -> float:
        one = known[name]
        return one.value + REWARD_WIDTH * math.sqrt(2 * math.log(visits) / one.visit_count)

    return _greatest(names, bound)


def _sample(known: ActionValue | None, numbers: random.Random) -> float:
    value, visits = (known.value, known.visit_count) if known else (0.0, 0)
    return numbers.gauss(value, 1 / math.sqrt(visits + 1))
