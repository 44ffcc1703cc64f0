"""How much one principal may call: calls per second, and calls and streams at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from lot_grpc.domain.access import Principal
from lot_grpc.domain.counting import counted
from lot_grpc.domain.errors import RateLimitedError

_MOST_BUCKETS: Final = 10_000
_BURST_SECONDS: Final = 2
_ROUNDING: Final = 1e-9
_AT_ONCE_SECONDS: Final = 0.25
"""When to retry a call that was over a limit of calls at once, whose end is not known."""


@dataclass(frozen=True, slots=True)
class PrincipalLimits:
    """Limits of one principal; 0 means none.

    Attributes:
        calls_per_second: Calls per second on average, messages of request streams included.
        burst: How many of them at once after a pause; 0: those of two seconds, at least one.
        concurrent_calls: Unary calls that run at once.
        streams: Streams that are open at once.
    """

    calls_per_second: float = 0.0
    burst: int = 0
    concurrent_calls: int = 0
    streams: int = 0

    def rate_of(self, principal: Principal) -> float:
        """The calls per second of a principal, which may have a limit of its own."""
        return principal.calls_per_second or self.calls_per_second

    def burst_at(self, rate: float) -> float:
        """The burst at a rate."""
        return float(self.burst or max(1, math.ceil(rate * _BURST_SECONDS)))

    def at_once(self, principal: Principal, *, streaming: bool) -> int:
        """How many calls, or streams, of a principal may be under way."""
        return self.streams if streaming else principal.concurrent_calls or self.concurrent_calls


UNLIMITED: Final = PrincipalLimits()


@dataclass(slots=True)
class _Bucket:
    """The calls that a principal may make at once, as of a time. Negative: it must wait."""

    calls: float
    time: float


class RateLimiter:
    """Limits the calls per second of each principal, by a token bucket."""

    def __init__(self, limits: PrincipalLimits, monotonic: Callable[[], float]) -> None:
        """``monotonic`` is the time in seconds."""
        self.limits = limits
        self._now = monotonic
        self._buckets: dict[str, _Bucket] = {}

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, principal: Principal) -> None:
        """Count a call. Raises RateLimitedError, which counts nothing."""
        bucket, rate = self._filled(principal)
        if bucket is None:
            return
        if bucket.calls < 1 - _ROUNDING:
            limit = f"{rate:g} calls per second"
            wait = (1 - bucket.calls) / rate
            raise RateLimitedError(
                f"these credentials may make {limit}; retry in {wait:.3g} s, and call less often",
                limit=limit,
                retry_seconds=wait,
            )
        bucket.calls -= 1

    def delay(self, principal: Principal) -> float:
        """Count a message of a stream; return how long to wait before it is served, in seconds."""
        bucket, rate = self._filled(principal)
        if bucket is None:
            return 0.0
        bucket.calls -= 1
        return max(0.0, -bucket.calls / rate)

    def _filled(self, principal: Principal) -> tuple[_Bucket | None, float]:
        """The bucket as of now; None if there is no limit."""
        rate = self.limits.rate_of(principal)
        if not rate:
            return None, 0.0
        now, burst = self._now(), self.limits.burst_at(rate)
        bucket = self._buckets.pop(principal.id, None)
        if bucket is None:
            self._drop_oldest()
            bucket = _Bucket(burst, now)
        bucket.calls = min(burst, bucket.calls + max(0.0, now - bucket.time) * rate)
        bucket.time = now
        self._buckets[principal.id] = bucket  # the last that called comes last
        return bucket, rate

    def _drop_oldest(self) -> None:
        if len(self._buckets) >= _MOST_BUCKETS:
            del self._buckets[next(iter(self._buckets))]


def too_many_at_once(limit: int, *, streaming: bool) -> RateLimitedError:
    """The error of a call beyond the limit of those at once."""
    text = counted(limit, "open stream") if streaming else counted(limit, "concurrent call")
    return RateLimitedError(
        f"these credentials may have {text}; retry when one has ended",
        limit=text,
        retry_seconds=_AT_ONCE_SECONDS,
        kind="streams" if streaming else "concurrency",
    )
