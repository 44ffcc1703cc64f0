"""Groups of vectors: average linkage, and rare tellings that go to the nearest larger group."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.services.episodes.failure_grouping import LEVEL, ODD_LEVEL, ODD_MARGIN, grouped
from lot_grpc.services.episodes.failure_landscape import Floats


def rows(*given: tuple[float, ...]) -> Floats:
    return np.array(given, dtype=np.float32)


def likely(share: float) -> tuple[float, float, float]:
    """A unit vector with so much of the first direction, and of the third for the rest."""
    return share, 0.0, (1 - share**2) ** 0.5


async def test_what_reaches_the_level_is_one_group_and_what_does_not_is_two():
    assert await grouped(rows((1, 0, 0), likely(LEVEL + 0.01)), [1, 1]) == [[0, 1]]
    assert await grouped(rows((1, 0, 0), likely(LEVEL - 0.01)), [1, 1]) == [[0], [1]]


async def test_a_rare_telling_goes_to_a_group_that_is_at_least_twice_as_large():
    odd = likely((LEVEL + ODD_LEVEL) / 2)
    assert await grouped(rows((1, 0, 0), odd), [2, 1]) == [[0, 1]]
    assert await grouped(rows((1, 0, 0), odd), [3, 2]) == [[0], [1]]
    assert await grouped(rows((1, 0, 0), likely(ODD_LEVEL - 0.01)), [9, 1]) == [[0], [1]]


async def test_a_rare_telling_between_two_groups_stays_alone():
    near, same = LEVEL - 0.01, LEVEL - 0.01 - ODD_MARGIN / 2
    odd = (near, same, (1 - near**2 - same**2) ** 0.5)
    assert await grouped(rows((1, 0, 0), (0, 1, 0), odd), [9, 9, 1]) == [[0], [1], [2]]


async def test_a_level_that_is_given_counts_alone():
    assert await grouped(rows((1, 0, 0), likely(0.5)), [1, 1], 0.49) == [[0, 1]]
    assert await grouped(rows((1, 0, 0), likely(0.5)), [9, 1], 0.51) == [[0], [1]]


async def test_no_errors_are_no_groups():
    assert await grouped(np.zeros((0, 0), dtype=np.float32), []) == []


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 9)), max_size=12))
async def test_each_error_is_in_one_group(errors):
    vectors = np.array([(x, y) for x, y, _ in errors], dtype=np.float32).reshape(-1, 2)
    vectors = (vectors / 9).astype(np.float32)
    found = await grouped(vectors, [count for *_, count in errors])
    assert sorted(one for group in found for one in group) == list(range(len(errors)))
