"""The calls that are being carried out: how many may be, and how they end when the server stops."""

from __future__ import annotations

import asyncio

from lot_grpc.domain.errors import OverloadedError, ShuttingDownError
from lot_grpc.server.call import Call
from lot_grpc.server.limits import Limits


def shutting_down() -> ShuttingDownError:
    """The error of calls that come, or are still open, while the server drains."""
    return ShuttingDownError("the server is stopping; repeat the call in a moment")


class InFlight:
    """Counts and holds the calls. A write counts until it is done, even if its caller has gone."""

    def __init__(self, limits: Limits, draining: asyncio.Event) -> None:
        self._limits = limits
        self._draining = draining
        self._calls: set[Call] = set()
        self._streams: set[Call] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        return len(self._calls) + len(self._streams)

    def enter(self, call: Call) -> None:
        """Let a call in.

        Raises:
            ShuttingDownError: the server drains.
            OverloadedError: the server is at its limit. Nothing was done.
        """
        if self._draining.is_set():
            raise shutting_down()
        if call.method.streaming:
            kind, calls, limit = "streams are open", self._streams, self._limits.max_streams
        else:
            kind, calls = "calls are running", self._calls
            limit = self._limits.max_concurrent_calls
        if len(calls) >= limit:
            raise OverloadedError(f"{limit} {kind}, the most this server takes", limit=limit)
        call.task = asyncio.current_task()
        calls.add(call)
        self._idle.clear()

    def leave(self, call: Call) -> None:
        """The call is over, or will be when its shielded work is done."""
        if call.work is not None and not call.work.done():
            call.work.add_done_callback(lambda _: self._remove(call))
        else:
            self._remove(call)

    def _remove(self, call: Call) -> None:
        self._calls.discard(call)
        self._streams.discard(call)
        if not self._calls and not self._streams:
            self._idle.set()

    def interrupt(self) -> None:
        """Make streams end with SHUTTING_DOWN.

        One that takes messages does so at its next; one that only answers, at once: it writes
        nothing, and may have no end of its own.
        """
        for call in self._streams:
            if call.reader is not None:
                call.reader.interrupt(shutting_down())
            elif not call.method.writes:
                _stop(call)

    def cancel(self) -> None:
        """Cancel what is left; callers that still wait are told SHUTTING_DOWN."""
        for call in (*self._calls, *self._streams):
            _stop(call)

    async def wait(self, seconds: float) -> bool:
        """Wait until nothing is in flight. False: ``seconds`` were not enough."""
        try:
            await asyncio.wait_for(self._idle.wait(), seconds)
        except TimeoutError:
            return False
        return True


def _stop(call: Call) -> None:
    call.stopped = True
    for task in (call.work, call.task):
        if task is not None:
            task.cancel()
