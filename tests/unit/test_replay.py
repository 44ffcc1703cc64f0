"""When the events of a replay are due."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.replay import Schedule

MICROS = st.integers(0, 253_402_300_799_999_999)
SPEEDS = st.floats(0, 1e6)


def due(speed: float, times: list[int]) -> list[float]:
    schedule = Schedule(speed)
    return [schedule.due(each) for each in times]


@given(SPEEDS, st.lists(MICROS, min_size=1))
def test_nothing_is_due_before_the_first_and_that_is_due_at_once(speed, times):
    found = due(speed, times)
    assert found[0] == 0
    assert min(found) >= 0


@given(st.lists(MICROS, min_size=1))
def test_speed_0_waits_for_nothing(times):
    assert set(due(0, times)) == {0.0}


@given(st.lists(MICROS, min_size=1), st.floats(0.001, 1e6))
def test_time_passes_as_between_the_events_divided_by_speed(times, speed):
    for time, found in zip(times, due(speed, times), strict=True):
        assert math.isclose(found, max(0, time - times[0]) / 1e6 / speed, rel_tol=1e-9)


def test_times_that_go_back_are_due_at_once_and_move_nothing():
    assert due(1, [5_000_000, 4_000_000, 4_000_000, 7_500_000]) == [0, 0, 0, 2.5]


def test_a_speed_near_0_waits_for_ever():
    assert due(1e-320, [0, 10**17])[1] == math.inf
