"""Which failed calls are retried, how often and when."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

from grpc import StatusCode

from lot_client.errors import LotError

_CODES_OF_THE_WAY = {
    StatusCode.UNAVAILABLE,
    StatusCode.CANCELLED,
    StatusCode.UNKNOWN,
    StatusCode.INTERNAL,
    StatusCode.ABORTED,
    StatusCode.DEADLINE_EXCEEDED,
}

_DROPPED = {
    StatusCode.CANCELLED: "",
    StatusCode.INTERNAL: "RST_STREAM",
    StatusCode.UNKNOWN: "Stream removed",
}
"""How gRPC reports a call whose server stopped, without a reason: code and part of the message."""

_UNTRUSTED = ("CERTIFICATE_VERIFY_FAILED", "Hostname Verification")
"""In gRPC's message if the server's certificate is refused here, which no retry changes."""

_CLOSED_HERE = "Channel closed!"
"""gRPC's message for calls whose own client was closed: they are not retried."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How calls are retried until their deadline.

    A call is retried if it failed with UNAVAILABLE, was dropped by a stopping server, or the server
    said how long to wait (OVERLOADED, SHUTTING_DOWN, CONTENTION, …), and only if that is safe:
    reads, and writes with a request id (the clients give each write one). After OVERLOADED any call
    is retried, since nothing was done.

    Attributes:
        attempts: tries in total; None: as many as the deadline allows, 1: no retries.
        first_delay: seconds before the second try. Each further delay doubles, minus a random part
            of up to half.
        max_delay: the longest wait in seconds, unless the server asks for more.
    """

    attempts: int | None = None
    first_delay: float = 0.1
    max_delay: float = 2.0

    def delay(self, failures: int, error: LotError) -> float:
        """Seconds to wait after that many failures in a row, of which ``error`` is the last."""
        delay: float = min(self.max_delay, self.first_delay * 2 ** min(failures - 1, 30))
        spread = random.uniform(0.5, 1.0)  # noqa: S311 - spreads clients, keeps no secret
        return max(delay * spread, (error.retry_after or 0.0) * (0.5 + spread))


def is_transient(error: LotError) -> bool:
    """Whether the same call may succeed a little later."""
    return (
        (error.code is StatusCode.UNAVAILABLE and not _is_untrusted(error))
        or error.retry_after is not None
        or error.reason in {"OVERLOADED", "CONTENTION"}
        or _was_dropped(error)
    )


def _is_untrusted(error: LotError) -> bool:
    return not error.reason and any(text in error.message for text in _UNTRUSTED)


def _was_dropped(error: LotError) -> bool:
    text = _DROPPED.get(error.code)
    return (
        text is not None
        and not error.reason
        and text in error.message
        and error.message != _CLOSED_HERE
    )


def cut(what: str) -> LotError:
    """An error for a broken stream, which another one continues."""
    return LotError(StatusCode.UNAVAILABLE, what)


def no_answer(seconds: float) -> LotError:
    """An error for a server that owes an answer."""
    return cut(f"no acknowledgement within {seconds:g} s")


def of_the_way(error: LotError) -> bool:
    """Whether gRPC or a proxy ended a stream: the server gives each error a reason."""
    return not error.reason and error.code in _CODES_OF_THE_WAY


class Attempts:
    """The tries of one call, or of one reconnection: when to try again, and when to give up."""

    def __init__(self, policy: RetryPolicy, deadline: float) -> None:
        """``deadline`` is in seconds from now."""
        self._policy = policy
        self._failures = 0
        self._end = time.monotonic() + deadline

    @property
    def seconds_left(self) -> float:
        """Until the deadline; never less than 0."""
        return max(0.0, self._end - time.monotonic())

    def delay_after(self, error: LotError, *, safe: bool, also: str = "") -> float:
        """Seconds to wait before the next try.

        Args:
            error: of the last try.
            safe: the call may be carried out twice without harm.
            also: one more reason that passes by itself.

        Raises:
            LotError: ``error`` itself, if another try is of no use, not safe or too late.
        """
        self._failures += 1
        error.tries = self._failures
        # OVERLOADED is sent before anything is done, so even an unsafe call may be repeated.
        passes = is_transient(error) or (also and error.reason == also)
        if not passes or not (safe or error.reason == "OVERLOADED"):
            raise error
        left = self.seconds_left
        least = self._policy.first_delay if error.retry_after is None else error.retry_after
        if least >= left or self._failures == self._policy.attempts:
            raise error
        # Near the end waits get shorter, so that the last try is not made long before it.
        return min(self._policy.delay(self._failures, error), max(least, left / 2))


class Resumption:
    """When a stream is reopened: while the server is unreachable for less than a deadline."""

    def __init__(self, policy: RetryPolicy, deadline: float) -> None:
        self._policy = policy
        self._deadline = deadline
        self._attempts: Attempts | None = None

    def succeeded(self) -> None:
        """The server answered."""
        self._attempts = None

    def delay(self, error: LotError) -> float:
        """Seconds to wait after an error. Raises LotError if another stream is of no use."""
        failure = cut(error.message) if of_the_way(error) else error
        failure.__cause__ = error.__cause__
        self._attempts = self._attempts or Attempts(self._policy, self._deadline)
        return self._attempts.delay_after(failure, safe=True)

    def delay_after_end(self) -> float:
        """Likewise for a stream that ended without an error, which it should not."""
        return self.delay(cut("the server closed the stream"))
