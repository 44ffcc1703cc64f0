"""The running calls: how many are allowed, and how they end when the server stops."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import Final

from lot_grpc.domain.errors import OverloadedError, ShuttingDownError
from lot_grpc.domain.rate_limits import UNLIMITED, PrincipalLimits, too_many_at_once
from lot_grpc.server.call import Call
from lot_grpc.server.incoming import Incoming
from lot_grpc.server.limits import Limits
from lot_grpc.server.stream_bytes import StreamBytes
from lot_grpc.telemetry.metrics import CALLS_IN_FLIGHT, STREAMS_OPEN

_RESERVED: Final = 8
"""1/n of the slots is reserved for principals with few calls, so that none takes them all. Without
authentication, a connection counts as one."""
_SHARE: Final = 16
"""A principal with 1/n of the slots or more counts as having many."""


def shutting_down() -> ShuttingDownError:
    """The error for calls that arrive, or are still open, while the server drains."""
    return ShuttingDownError("the server is stopping; repeat the call in a moment")


class InFlight:
    """Tracks the calls. A write counts until it is done, even if its caller has disconnected."""

    def __init__(
        self,
        limits: Limits,
        draining: asyncio.Event,
        principal_limits: PrincipalLimits = UNLIMITED,
    ) -> None:
        self._limits = limits
        self._principal_limits = principal_limits
        self._held: Counter[tuple[bool, str]] = Counter()
        """Streams, and calls, by owner."""
        self._of_principals: Counter[tuple[bool, str]] = Counter()
        """The same by principal, which is one for all callers without authentication."""
        self._draining = draining
        self._calls: set[Call] = set()
        self._streams: set[Call] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self.incoming = Incoming(limits)
        self.bytes = StreamBytes(self._streams, limits.max_request_bytes)
        CALLS_IN_FLIGHT.follow(self, InFlight.running_calls)
        STREAMS_OPEN.follow(self, InFlight.open_streams)

    def __len__(self) -> int:
        return len(self._calls) + len(self._streams)

    def streams(self) -> Iterable[Call]:
        """The open streams."""
        return self._streams

    def running_calls(self) -> int:
        """How many unary calls run."""
        return len(self._calls)

    def open_streams(self) -> int:
        """How many streams are open."""
        return len(self._streams)

    def enter(self, call: Call) -> None:
        """Admit a call.

        Raises:
            ShuttingDownError: the server is draining.
            OverloadedError: the server is at its limit. Nothing was done.
            RateLimitedError: the principal is at its limit. Nothing was done.
        """
        if self._draining.is_set():
            raise shutting_down()
        if call.method.streaming:
            kind, calls, limit = "streams are open", self._streams, self._limits.max_streams
        else:
            kind, calls = "calls are running", self._calls
            limit = self._limits.max_concurrent_calls
        streaming, principal = call.method.streaming, call.principal
        most = self._principal_limits.at_once(principal, streaming=streaming)
        if most and self._of_principals[streaming, principal.id] >= most:
            raise too_many_at_once(most, streaming=streaming)
        if len(calls) >= limit - limit // _RESERVED and (
            len(calls) >= limit or self._held[streaming, call.owner] >= max(1, limit // _SHARE)
        ):
            self.incoming.hurry()
            raise OverloadedError(
                f"{len(calls)} {kind}; this server allows {limit}, the last {limit // _RESERVED} "
                "reserved for callers that have few; retry in a moment",
                limit=limit,
            )
        call.task = asyncio.current_task()
        calls.add(call)
        self._held[streaming, call.owner] += 1
        self._of_principals[streaming, principal.id] += 1
        self._idle.clear()

    def leave(self, call: Call) -> None:
        """Remove a call, once any shielded work of it is done."""
        call.when_over(lambda: self._remove(call))

    def _remove(self, call: Call) -> None:
        self._calls.discard(call)
        self._streams.discard(call)
        streaming = call.method.streaming
        for counts, name in ((self._held, call.owner), (self._of_principals, call.principal.id)):
            counts[streaming, name] -= 1
            if not counts[streaming, name]:
                del counts[streaming, name]
        if not self._calls and not self._streams:
            self._idle.set()

    def interrupt(self) -> None:
        """End streams, and calls that have not begun, with SHUTTING_DOWN.

        A request stream ends at its next message; a response-only stream at once: it writes nothing
        and may never end by itself.
        """
        for call in self._calls:
            if call.request is None:
                _stop(call)
        for call in self._streams:
            if call.reader is not None:
                call.reader.interrupt(shutting_down())
            elif not call.method.writes or call.request is None:
                _stop(call)

    def cancel(self) -> None:
        """Cancel what is left; callers that still wait get SHUTTING_DOWN."""
        for call in (*self._calls, *self._streams):
            _stop(call)

    async def wait(self, seconds: float) -> bool:
        """Wait until nothing is in flight; False if that took longer than ``seconds``."""
        try:
            await asyncio.wait_for(self._idle.wait(), seconds)
        except TimeoutError:
            return False
        return True


def _stop(call: Call) -> None:
    call.stopped = shutting_down()
    for task in (call.work, call.task):
        if task is not None:
            task.cancel()
