"""The limits of a principal, with a clock that stands still."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from lot_grpc.domain import rate_limits as module
from lot_grpc.domain.access import ANONYMOUS, Principal
from lot_grpc.domain.errors import RateLimitedError
from lot_grpc.domain.rate_limits import UNLIMITED, PrincipalLimits, RateLimiter


@dataclass
class Clock:
    seconds: float = 100.0

    def __call__(self) -> float:
        return self.seconds


def principal(name: str, **own: float) -> Principal:
    return Principal(name, name, (), **own)  # type: ignore[arg-type]


A, B = principal("a"), principal("b")


def refused(rates: RateLimiter, who: Principal) -> RateLimitedError:
    with pytest.raises(RateLimitedError) as caught:
        rates.take(who)
    return caught.value


def test_without_a_limit_nothing_is_refused_or_remembered():
    rates = RateLimiter(UNLIMITED, Clock())
    for _ in range(1000):
        rates.take(A)
        assert rates.delay(A) == 0
    assert len(rates) == 0


def test_a_principal_is_refused_beyond_its_burst_and_told_the_true_wait():
    clock = Clock()
    rates = RateLimiter(PrincipalLimits(calls_per_second=4, burst=3), clock)
    for _ in range(3):
        rates.take(A)
    error = refused(rates, A)
    assert error.retry_seconds == 0.25
    assert error.metadata == {"limit": "4 calls per second", "retry_seconds": "0.25"}
    rates.take(B)  # another has its own
    clock.seconds += 0.249
    assert refused(rates, A).retry_seconds == pytest.approx(0.001)
    clock.seconds += 0.001
    rates.take(A)
    refused(rates, A)
    clock.seconds += 3600
    for _ in range(3):  # no more than the burst, however long the pause
        rates.take(A)
    refused(rates, A)


@pytest.mark.parametrize(("rate", "burst"), [(4.0, 8), (0.1, 1), (0.6, 2)])
def test_the_burst_is_of_two_seconds_and_at_least_one(rate: float, burst: int):
    rates = RateLimiter(PrincipalLimits(calls_per_second=rate), Clock())
    for _ in range(burst):
        rates.take(A)
    refused(rates, A)


def test_a_principal_may_have_a_rate_of_its_own():
    rates = RateLimiter(PrincipalLimits(calls_per_second=100, burst=1), Clock())
    slow = principal("slow", calls_per_second=0.5)
    rates.take(slow)
    assert refused(rates, slow).retry_seconds == 2
    without = RateLimiter(UNLIMITED, Clock())
    without.take(slow)
    refused(without, slow)
    assert PrincipalLimits(concurrent_calls=9).at_once(A, streaming=False) == 9
    own = principal("own", concurrent_calls=2)
    assert UNLIMITED.at_once(own, streaming=False) == 2
    assert PrincipalLimits(streams=3).at_once(own, streaming=True) == 3


def test_messages_of_a_stream_wait_and_count_as_calls():
    clock = Clock()
    rates = RateLimiter(PrincipalLimits(calls_per_second=10, burst=2), clock)
    assert [rates.delay(A) for _ in range(4)] == pytest.approx([0, 0, 0.1, 0.2])
    assert refused(rates, A).retry_seconds == pytest.approx(0.3)
    clock.seconds += 0.3
    rates.take(A)


def test_a_clock_that_goes_back_gives_nothing_and_takes_nothing():
    clock = Clock()
    rates = RateLimiter(PrincipalLimits(calls_per_second=1, burst=2), clock)
    rates.take(A)
    clock.seconds -= 50
    rates.take(A)
    refused(rates, A)


def test_over_any_time_no_more_than_the_rate_and_the_burst_pass():
    rng, clock = random.Random(3), Clock()
    rates = RateLimiter(PrincipalLimits(calls_per_second=5, burst=7), clock)
    passed: list[float] = []
    waits: list[float] = []
    for _ in range(5000):
        clock.seconds += rng.expovariate(20)
        try:
            rates.take(A)
        except RateLimitedError as error:
            waits.append(error.retry_seconds)
        else:
            passed.append(clock.seconds)
    for first in range(0, len(passed), 50):
        for last in range(first, len(passed), 77):
            assert last - first + 1 <= 7 + 5 * (passed[last] - passed[first]) + 1e-6
    assert all(wait > 0 for wait in waits)
    assert len(passed) >= 5 * (passed[-1] - passed[0])


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_MOST_BUCKETS", 3)
    rates = RateLimiter(PrincipalLimits(calls_per_second=1, burst=1), Clock())
    for name in "abcdef":
        rates.take(principal(name))
    assert len(rates) == 3
    refused(rates, principal("f"))


def test_without_authentication_all_callers_are_one_principal():
    rates = RateLimiter(PrincipalLimits(calls_per_second=1, burst=1), Clock())
    rates.take(ANONYMOUS)
    refused(rates, ANONYMOUS)
