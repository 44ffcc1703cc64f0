"""The task that carries a recorder's events to the server. `recorder_thread.py` is its like."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any

import grpc
import grpc.aio

from lot_client.errors import LotError
from lot_client.pb.lot.v1.episode_service_pb2 import RecordEventsRequest
from lot_client.recorder_core import RecorderCore
from lot_client.retry import cut

_SETTLE_SECONDS = 0.1
"""For a lost connection to show."""


class Happenings:
    """Lets tasks wait until something happens."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def tell(self) -> None:
        """Something happened: wake everyone who waits."""
        self._next.set()
        self._next = asyncio.Event()

    async def next(self) -> None:
        """Wait for what happens next."""
        await self._next.wait()

    async def next_within(self, seconds: float | None) -> None:
        """Wait for it, but not longer; None: as long as it takes."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._next.wait()


class CourierTask:
    """Carries what a core has over one stream after another, until all is sent or nothing helps."""

    def __init__(
        self,
        core: RecorderCore,
        stub: Any,
        happenings: Happenings,
        is_connected: Callable[[], bool],
    ) -> None:
        self._core = core
        self._stub = stub
        self._happenings = happenings
        self._is_connected = is_connected
        self._stopping = self._given_up = self._silent = False
        self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        """Close the stream once all is sent."""
        self._stopping = True
        self._happenings.tell()

    async def join(self, seconds: float) -> None:
        """Wait until the stream is closed, but not longer."""
        await asyncio.wait([self._task], timeout=seconds)

    async def give_up(self) -> None:
        """End at once."""
        self._given_up = True
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        """One stream after another, until all is sent or nothing helps."""
        core = self._core
        while not self._done():
            delay: float | None = None
            try:
                await self._converse()
            except LotError as error:
                by_server = await self._was_ended(error)
                delay = core.lost(error, time.monotonic(), by_server=by_server)
            except Exception as error:  # noqa: BLE001 - callers are told, whatever it is
                core.fail(error)
            self._happenings.tell()
            if delay is None:
                return
            until = time.monotonic() + delay
            while not self._done() and (left := until - time.monotonic()) > 0:
                await self._happenings.next_within(left)

    async def _was_ended(self, error: LotError) -> bool:
        """Whether the server ended the stream without a word that came.

        grpc.aio forgets the status of a call that ends while a message is written (1.85). Then the
        connection tells: if it stands, the server ended the stream, perhaps for another writer.
        """
        if error.reason or error.code is not grpc.StatusCode.INTERNAL:
            return False
        await asyncio.sleep(_SETTLE_SECONDS)
        return self._is_connected()

    def _done(self) -> bool:
        return self._given_up or (self._stopping and self._core.settled)

    async def _converse(self) -> None:
        """One stream: a task sends, this one reads answers until it ends.

        Raises:
            LotError: why it ended, unless all was done.
        """
        self._silent = False
        call = self._stub.RecordEvents()
        sender = asyncio.create_task(self._send(call))
        try:
            while (answer := await call.read()) is not grpc.aio.EOF:
                self._core.answered(answer, time.monotonic())
                self._happenings.tell()
        except grpc.RpcError as error:
            raise LotError.from_rpc_error(error) from error
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Not this task but the call was cancelled: by the sender, or with the channel.
            silent = self._silent
            raise (self._core.silence() if silent else cut("the call was cancelled")) from None
        finally:
            sender.cancel()
            call.cancel()
            await asyncio.wait([sender])
        if not self._done():
            raise cut("the server closed the stream")

    async def _send(self, call: Any) -> None:
        try:
            await call.write(self._core.start(time.monotonic()))
            while (message := await self._next()) is not None:
                await call.write(message)
            if self._silent:
                call.cancel()
            else:
                await call.done_writing()
        except (grpc.RpcError, asyncio.InvalidStateError):
            pass  # the read that waits tells of it: it knows the status
        except Exception as error:  # noqa: BLE001 - callers are told, whatever it is
            self._core.fail(error)
            call.cancel()

    async def _next(self) -> RecordEventsRequest | None:
        """Wait for the next message that is due; None at the end of the stream."""
        core = self._core
        while True:
            now = time.monotonic()
            message = core.next(now)
            if message is not None:
                return message
            if self._stopping and core.settled and core.open:
                return None
            if core.is_silent(now):
                self._silent = True
                return None
            await self._happenings.next_within(core.wait(now))
