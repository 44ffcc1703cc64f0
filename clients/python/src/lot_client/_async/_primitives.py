"""What differs between tasks and threads. `_sync/_primitives.py` has the same names for threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import grpc
import grpc.aio

from lot_client.errors import LotError
from lot_client.recorder_base import RecorderBase
from lot_client.retry import cut, no_answer

_SETTLE_SECONDS = 0.1
"""For a lost connection to show."""


async def read(call: Any) -> Any:
    """The next message of a stream; None at its end.

    Raises:
        LotError: how the stream ended; CANCELLED if it was cancelled here.
    """
    try:
        message = await call.read()
    except grpc.RpcError as error:
        raise LotError.from_rpc_error(error) from error
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise LotError(grpc.StatusCode.CANCELLED, "the call was cancelled") from None
    return None if message is grpc.aio.EOF else message


class Exchange:
    """A stream on which each message is answered before the next is sent.

    Attributes:
        status_lost: gRPC lost the status with which the stream ended.
    """

    def __init__(self, method: Any, seconds: float) -> None:
        """``seconds``: for an answer."""
        self._call = method()
        self._seconds = seconds
        self.status_lost = False

    async def send(self, message: Any) -> Any:
        """Send a message, or None for the end, and read the answer.

        Raises:
            LotError: the stream ended, or there was no answer in time.
        """
        try:
            async with asyncio.timeout(self._seconds):
                if not self._call.done():  # if it is, reading raises its status
                    await self._write(message)
                answer = await read(self._call)
        except TimeoutError:
            raise no_answer(self._seconds) from None
        if answer is None:
            raise cut("the server closed the stream")
        return answer

    async def _write(self, message: Any) -> None:
        try:
            if message is None:
                await self._call.done_writing()
            else:
                await self._call.write(message)
        except grpc.RpcError as error:
            failure = LotError.from_rpc_error(error)
            if failure.code is grpc.StatusCode.INTERNAL and not failure.reason:
                # grpc.aio forgets the status of a call that ends while a message is written.
                self.status_lost = True
                failure = cut("the stream ended")
            raise failure from error

    def cancel(self) -> None:
        """End it at once."""
        self._call.cancel()


async def was_ended_by_server(channel: grpc.aio.Channel, error: LotError) -> bool:
    """Whether the server ended a stream with a status that gRPC lost.

    grpc.aio forgets the status of a call that ends while a message is written (1.85). If the
    connection still stands, it was the server that ended the stream.
    """
    if error.reason or error.code is not grpc.StatusCode.INTERNAL:
        return False
    await asyncio.sleep(_SETTLE_SECONDS)
    return channel.get_state() is grpc.ChannelConnectivity.READY


class Condition:
    """A `threading.Condition` for the tasks of one loop, which need no lock."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    async def __aenter__(self) -> None:
        """Nothing: no other task runs until this one waits."""

    async def __aexit__(self, *error: object) -> None:
        """Nothing."""

    def notify_all(self) -> None:
        """Wake everyone who waits."""
        self._next.set()
        self._next = asyncio.Event()

    async def wait(self, seconds: float | None) -> None:
        """Wait for the next notification, for at most ``seconds``."""
        await self.wait_for(self._next.is_set, seconds)

    async def wait_for(self, predicate: Callable[[], bool], seconds: float | None) -> bool:
        """Wait until ``predicate`` holds, for at most ``seconds``; whether it does."""
        try:
            async with asyncio.timeout(seconds):
                while not predicate():
                    await self._next.wait()
        except TimeoutError:
            return False
        return True


class Worker:
    """A task in the background."""

    def __init__(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._task = asyncio.create_task(run())

    async def join(self, seconds: float | None = None) -> None:
        """Wait until it is done, for at most ``seconds``."""
        await asyncio.wait([self._task], timeout=seconds)


class AtExit(RecorderBase):
    """What happens to a recorder that is open when the interpreter ends: nothing.

    Its loop no longer runs then.
    """

    def _register(self) -> None:
        pass

    def _unregister(self) -> None:
        pass
