"""The tests by which signs are told from chance."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.extraction import statistics
from lot_grpc.domain.extraction.digest import Digest, Step, without_repeats
from lot_grpc.domain.extraction.indicators import MOST, indicators
from lot_grpc.domain.extraction.statistics import (
    fisher,
    smallest_possible,
    strata_of,
    threshold,
)


@st.composite
def tables(draw):
    """(shown and won, shown, won, total) of a table of two by two."""
    total = draw(st.integers(2, 120))
    won = draw(st.integers(0, total))
    shown = draw(st.integers(0, total))
    least, most = max(0, shown - (total - won)), min(shown, won)
    return draw(st.integers(least, most)), shown, won, total


def chance(count: int, shown: int, won: int, total: int) -> float:
    return math.comb(won, count) * math.comb(total - won, shown - count) / math.comb(total, shown)


@given(tables())
def test_fisher_is_twice_the_smaller_tail(table):
    at, shown, won, total = table
    least, most = max(0, shown - (total - won)), min(shown, won)
    above = sum(chance(k, shown, won, total) for k in range(at, most + 1))
    below = sum(chance(k, shown, won, total) for k in range(least, at + 1))
    assert fisher(*table) == pytest.approx(min(1.0, 2 * min(above, below)), rel=1e-6)


@given(tables())
def test_fisher_does_not_mind_which_side_is_called_won(table):
    at, shown, won, total = table
    assert fisher(*table) == pytest.approx(fisher(shown - at, shown, total - won, total), rel=1e-6)
    assert fisher(*table) >= smallest_possible(shown, won, total) * (1 - 1e-9)


def test_known_values():
    # The lady who tastes tea: all four cups right is one of seventy ways.
    assert fisher(4, 4, 4, 8) == pytest.approx(2 / 70)
    # A stratum of 10 with 5 shown, 5 won, all alike: expected 2.5, variance 25 * 25 / 900.
    everyone, half = (1 << 10) - 1, (1 << 5) - 1
    z = (2.5 - 0.5) / math.sqrt(625 / 900)
    assert statistics.given(half, half, [everyone]) == pytest.approx(math.erfc(z / math.sqrt(2)))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.floats(0.01, 0.5))
def test_the_threshold_is_that_of_benjamini_and_hochberg(values, level):
    limit = threshold(values, len(values), 0, level)
    found = [value for value in values if value <= limit] if limit else []
    assert all(value <= level * len(found) / len(values) for value in found)
    ordered = sorted(values)
    for rank in range(len(found) + 1, len(ordered) + 1):
        assert ordered[rank - 1] > level * rank / len(values) or ordered[rank - 1] == 0


@given(st.integers(1, 64), st.lists(st.integers(0, 2**64 - 1), max_size=4))
def test_strata_part_everyone(total, signs):
    everyone = (1 << total) - 1
    strata = strata_of(everyone, signs)
    assert sum(part.bit_count() for part in strata) == total
    joined = 0
    for part in strata:
        joined |= part
        for sign in signs:
            assert part & sign in (0, part)
    assert joined == everyone


def test_a_sign_that_another_explains_says_nothing_within_its_strata():
    rng = random.Random(5)
    cause = sum(1 << n for n in range(200) if rng.random() < 0.5)
    won = sum(1 << n for n in range(200) if rng.random() < (0.9 if cause >> n & 1 else 0.2))
    echo = cause & sum(1 << n for n in range(200) if rng.random() < 0.6)
    everyone = (1 << 200) - 1
    assert statistics.given(echo, won, [everyone]) < 1e-6
    assert statistics.given(echo, won, strata_of(everyone, [cause])) > 0.05
    assert statistics.given(cause, won, strata_of(everyone, [echo])) < 1e-3


# --- indicators -------------------------------------------------------------------------------


def digest(number: int, *, succeeded: bool = True, tools=(), terms=(), steps=()) -> Digest:
    return Digest(
        "ns",
        f"e{number}",
        succeeded,
        "task",
        tools=tuple(tools),
        terms={term: term for term in terms},
        steps=without_repeats([Step(*one.split(":")) for one in steps]),
    )


def split(digests) -> tuple[list[str], list[str]]:
    found = indicators(digests, [one.succeeded for one in digests])
    return [one.label for one in found.winning], [one.label for one in found.losing]


def test_a_few_episodes_can_prove_a_sign_that_parts_them_cleanly():
    won = [digest(n, tools=["lint"]) for n in range(6)]
    lost = [digest(n, succeeded=False, tools=["force"]) for n in range(6, 12)]
    assert split(won + lost) == (["tool: lint"], ["tool: force"])
    assert split(won[:5] + lost[:5]) == (["tool: lint"], ["tool: force"])
    assert split(won[:3] + lost[:3]) == ([], [])  # one of twenty ways


def test_a_sequence_is_told_as_such_where_its_order_matters_and_as_its_part_where_not():
    rng = random.Random(1)
    ordered = [
        digest(
            n,
            succeeded=n % 2 == 0,
            steps=["plan", "review", "x"] if n % 2 == 0 else ["review", "x", "plan"],
        )
        for n in range(40)
    ]
    assert "steps: plan → review" in split(ordered)[0]
    single = [
        digest(
            n,
            succeeded=n % 2 == 0,
            steps=[rng.choice("ab"), *(["lint"] if n % 2 == 0 else []), rng.choice("cd")],
        )
        for n in range(40)
    ]
    assert split(single)[0] == ["step: lint"]


def test_a_tool_and_the_step_that_calls_it_are_one_sign():
    digests = [
        digest(n, succeeded=n < 10, steps=["call:lint"] if n < 10 else ["call:x"])
        for n in range(20)
    ]
    assert split(digests) == (["tool: lint"], ["tool: x"])


def test_signs_that_always_come_together_are_all_told():
    digests = [
        digest(
            n, succeeded=n < 10, tools=["a", "b"] if n < 10 else [], terms=["c"] if n < 10 else []
        )
        for n in range(20)
    ]
    assert split(digests) == (["tool: a", "tool: b", "term: c"], [])


def test_one_side_alone_has_no_signs():
    assert split([digest(n, tools=["a"] if n % 2 else []) for n in range(50)]) == ([], [])
    assert split([]) == ([], [])


@given(st.integers(0, 10_000))
def test_the_order_of_episodes_does_not_matter_and_sides_are_apart(seed):
    rng = random.Random(seed)
    digests = [
        digest(
            n,
            succeeded=rng.random() < 0.5,
            tools=[t for t in "abcdef" if rng.random() < 0.5],
            steps=[rng.choice("uvwxyz") for _ in range(6)],
        )
        for n in range(30)
    ]
    winning, losing = split(digests)
    assert not set(winning) & set(losing)
    assert len(winning) <= MOST
    mixed = rng.sample(digests, len(digests))
    assert split(mixed) == (winning, losing)
