"""The requests of a stream, parsed and checked one by one, with a way to end the wait for the next.

A pending ``context.read()`` is never cancelled during a call: core continues it, and its message
would be lost at best. So a separate task reads one message ahead, and ends by itself with the call;
only the wait for it is interrupted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import grpc
from google.protobuf.message import Message

from lot_grpc.server.call import Context

CANCEL_SECONDS: Final = 0.005
"""How long the end of a stream is held back. Core reports a cancelled or broken call exactly like
one whose caller has sent everything; the cancellation follows within 0.4 ms (measured). Without the
wait, half of an import would be taken for the whole."""

_pumps: set[asyncio.Task[None]] = set()
"""Strong references to the reading tasks, since asyncio holds only weak ones."""


class Requests:
    """Iterates over a stream of requests. For one consumer at a time."""

    __slots__ = (
        "_check",
        "_context",
        "_delay_next",
        "_demand",
        "_each",
        "_first",
        "_interrupt",
        "_limit",
        "_next",
        "_space",
        "_started",
        "_timer",
        "_waiting_since",
    )

    def __init__(
        self,
        context: Context,
        check: Callable[[bytes], Message],
        delay_next: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """``delay_next``: says how long the next message has to wait, in seconds."""
        self._context = context
        self._check = check
        self._first: list[Callable[[Message], None]] = []
        self._delay_next = delay_next
        self._each: Callable[[Message], Awaitable[None]] | None = None
        self._next: Any = None
        """Bytes read ahead, EOF, an error of the read, or None if nothing has arrived."""
        self._interrupt: BaseException | None = None
        self._demand: asyncio.Future[None] | None = None
        self._space: asyncio.Future[None] | None = None
        self._started = False
        self._limit: tuple[float, Callable[[], Exception]] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waiting_since: float | None = None
        """The loop's time at which the consumer began to wait, None if it is not waiting."""

    def __aiter__(self) -> Requests:
        return self

    async def __anext__(self) -> Message:
        """The next request.

        Raises:
            RequestMalformedError, RequestInvalidError: it violates the contract.
            ShuttingDownError: the server is draining.
            CancelledError: the caller has disconnected.
        """
        if not self._started:
            self._started = True
            pump = asyncio.create_task(self._pump())
            _pumps.add(pump)
            pump.add_done_callback(_pumps.discard)
        loop = asyncio.get_running_loop()
        while self._next is None and self._interrupt is None:
            if self._waiting_since is None:
                self._waiting_since = loop.time()
            self._demand = loop.create_future()
            await self._demand
        self._waiting_since = None
        if self._interrupt is not None:
            raise self._interrupt
        got = self._next
        if got is grpc.aio.EOF:
            raise StopAsyncIteration
        if isinstance(got, BaseException):
            raise got
        if seconds := self._delay_next():
            await self._rest(seconds)
        self._next = None
        _wake(self._space)
        message = self._check(got)
        first, self._first = self._first, []
        for check in first:
            check(message)
        if self._each is not None:
            await self._each(message)
        return message

    async def _rest(self, seconds: float) -> None:
        """Wait before the next request is served. Raises what interrupts it."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while self._interrupt is None and (left := until - loop.time()) > 0:
            self._demand = loop.create_future()
            timer = loop.call_later(left, _wake, self._demand)
            await self._demand
            timer.cancel()
        if self._interrupt is not None:
            raise self._interrupt

    def on_first(self, check: Callable[[Message], None]) -> None:
        """Check the first request, after earlier checks; an error of one ends the stream."""
        self._first.append(check)

    def on_each(self, change: Callable[[Message], Awaitable[None]]) -> None:
        """Check or change each request after that; an error that it raises ends the stream."""
        self._each = change

    def limit_wait(self, seconds: float, error: Callable[[], Exception]) -> None:
        """Raise ``error()`` once the consumer has waited this long for a request; 0: no limit.

        Time it spends otherwise does not count. Replaces an earlier limit.
        """
        self._limit = (seconds, error) if seconds else None
        self._arm(seconds)

    def interrupt(self, error: BaseException) -> None:
        """Raise ``error`` at the next or the pending read. The first error stays."""
        if self._interrupt is None:
            self._interrupt = error
        _wake(self._demand)
        _wake(self._space)

    def close(self) -> None:
        """Stop reading. The reading task ends after its current read."""
        self._limit = None
        self._arm(0)
        self.interrupt(asyncio.CancelledError())

    def _arm(self, seconds: float) -> None:
        """Check the wait again after this many seconds; 0: never.

        A request does not move the timer: if it fires too early, it is set again.
        """
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(seconds, self._look) if seconds else None

    def _look(self) -> None:
        self._timer = None
        if self._limit is None:
            return
        seconds, error = self._limit
        waited = 0.0
        if self._waiting_since is not None:
            waited = asyncio.get_running_loop().time() - self._waiting_since
        if waited >= seconds:
            self.interrupt(error())
        else:
            self._arm(seconds - waited)

    async def _pump(self) -> None:
        """Read until the stream ends, one message ahead of the consumer."""
        try:
            while self._interrupt is None:
                got = await self._context.read()
                if got is grpc.aio.EOF:
                    await asyncio.sleep(CANCEL_SECONDS)
                self._next = got
                _wake(self._demand)
                if got is grpc.aio.EOF:
                    return
                self._space = asyncio.get_running_loop().create_future()
                await self._space
        except Exception as error:  # noqa: BLE001 - the consumer, if still there, gets it
            self._next = error
            _wake(self._demand)


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
