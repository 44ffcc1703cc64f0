"""Streams of events that survive a lost connection."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from types import TracebackType
from typing import Any, Self

import grpc
import grpc.aio

from lot_client.errors import LotError
from lot_client.fields import Events
from lot_client.pb.lot.v1.episode_pb2 import EpisodeEvent
from lot_client.pb.lot.v1.episode_service_pb2 import RecordEventsRequest, RecordEventsResponse
from lot_client.retry import Attempts, RetryPolicy, cut
from lot_client.window import Window


class _Stream:
    """What both kinds of stream share: how they resume, and what they tell of themselves."""

    def __init__(self, stub: Any, window: Window, deadline: float, retry: RetryPolicy) -> None:
        self._stub = stub
        self._window = window
        self._deadline = deadline
        self._retry = retry
        self._call: Any = None
        self._status_lost = False

    @property
    def last_sequence(self) -> int:
        """The last event that the server acknowledged: all up to it survive its death."""
        return self._window.last_sequence

    @property
    def unacknowledged(self) -> list[EpisodeEvent]:
        """Events that may not be stored, after a LotError. The next `send` sends them again."""
        return self._window.unacknowledged()

    def _attempts(self) -> Attempts:
        return Attempts(self._retry, self._deadline)

    def _delay(self, attempts: Attempts, error: LotError) -> float:
        # Our own stream before the cut may look alive to the server for a while.
        also = "EPISODE_STREAM_OPEN" if self._window.was_open else ""
        return attempts.delay_after(error, safe=True, also=also)

    def _opening(self) -> RecordEventsRequest:
        return self._window.opening(refuse=self._status_lost)

    def _opened(self, answer: RecordEventsResponse) -> None:
        self._window.opened(answer)
        self._status_lost = False

    def _silence(self) -> LotError:
        return cut(f"no acknowledgement within {self._deadline:g} s")


class AsyncEventStream(_Stream):
    """Appends events to an episode; made by `AsyncLotClient.record_events`.

    For one task at a time. After a lost connection it goes on by itself where it was.
    """

    async def send(self, events: Events) -> int:
        """Send one event or several, and return the last sequence once they are stored.

        Each call is a message and an acknowledgement, so give events that come together in one
        list.

        Raises:
            LotError: these or earlier events were refused, or the server stays away.
        """
        self._window.add(events)
        while self._window.next() is not None:
            await self._deliver()
        return self.last_sequence

    async def __aenter__(self) -> Self:
        """Open the stream, so that an unknown or ended episode is told at once."""
        await self._deliver()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the stream and wait until the server has, so that the episode is free."""
        try:
            if error is None:
                await self.send(())  # what an earlier send could not
            if self._call is not None:
                await self._finish()
        finally:
            self._drop()

    async def _deliver(self) -> None:
        """Have the first waiting message stored, if there is one, over an open stream."""
        attempts: Attempts | None = None
        while True:
            try:
                if self._call is None:
                    self._call = self._stub.RecordEvents()
                    self._opened(await self._exchange(self._opening()))
                message = self._window.next()
                if message is not None:
                    self._window.acknowledged(await self._exchange(message))
            except LotError as error:
                self._drop()
                attempts = attempts or self._attempts()
                await asyncio.sleep(self._delay(attempts, error))
            except BaseException:
                self._drop()  # its next answer would be taken for that of another message
                raise
            else:
                return

    async def _exchange(self, message: RecordEventsRequest) -> RecordEventsResponse:
        """Write a message and read its answer, within the deadline."""
        try:
            async with asyncio.timeout(self._deadline):
                if not self._call.done():
                    await self._write(message)
                answer = await self._call.read()  # raises the status of a call that is done
        except TimeoutError:
            raise self._silence() from None
        except grpc.RpcError as error:
            raise LotError.from_rpc_error(error) from error
        if answer is grpc.aio.EOF:
            raise cut("the server closed the stream")
        found: RecordEventsResponse = answer
        return found

    async def _write(self, message: RecordEventsRequest) -> None:
        try:
            await self._call.write(message)
        except grpc.RpcError as error:
            failure = LotError.from_rpc_error(error)
            if failure.code is grpc.StatusCode.INTERNAL and not failure.reason:
                # The call ended while this was under way, and grpc.aio forgets with which status.
                # If another writer took over, the next stream must not take the episode back.
                self._status_lost = True
                failure = cut("the stream ended")
            raise failure from error

    async def _finish(self) -> None:
        try:
            async with asyncio.timeout(self._deadline):
                await self._call.done_writing()
                await self._call.read()
        except (TimeoutError, grpc.RpcError):
            pass  # what was acknowledged is stored, however the stream ends

    def _drop(self) -> None:
        if self._call is not None:
            self._call.cancel()
            self._call = None


class EventStream(_Stream):
    """Appends events to an episode; made by `LotClient.record_events`.

    For one thread at a time. After a lost connection it goes on by itself where it was.
    """

    _outgoing: queue.SimpleQueue[RecordEventsRequest | None]

    def send(self, events: Events) -> int:
        """Send one event or several, and return the last sequence once they are stored.

        Each call is a message and an acknowledgement, so give events that come together in one
        list.

        Raises:
            LotError: these or earlier events were refused, or the server stays away.
        """
        self._window.add(events)
        while self._window.next() is not None:
            self._deliver()
        return self.last_sequence

    def __enter__(self) -> Self:
        """Open the stream, so that an unknown or ended episode is told at once."""
        self._deliver()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the stream and wait until the server has, so that the episode is free."""
        try:
            if error is None:
                self.send(())  # what an earlier send could not
            if self._call is not None:
                self._finish()
        finally:
            self._drop()

    def _deliver(self) -> None:
        """Have the first waiting message stored, if there is one, over an open stream."""
        attempts: Attempts | None = None
        while True:
            try:
                if self._call is None:
                    self._outgoing = queue.SimpleQueue()
                    self._call = self._stub.RecordEvents(iter(self._outgoing.get, None))
                    self._opened(self._exchange(self._opening()))
                message = self._window.next()
                if message is not None:
                    self._window.acknowledged(self._exchange(message))
            except LotError as error:
                self._drop()
                attempts = attempts or self._attempts()
                time.sleep(self._delay(attempts, error))
            except BaseException:
                self._drop()  # its next answer would be taken for that of another message
                raise
            else:
                return

    def _exchange(self, message: RecordEventsRequest | None) -> RecordEventsResponse:
        """Send a message, or None for the end, and read the answer, within the deadline."""
        self._outgoing.put(message)
        silence = threading.Timer(self._deadline, self._call.cancel)
        silence.daemon = True
        silence.start()
        try:
            answer: RecordEventsResponse = next(self._call)
        except StopIteration:
            raise cut("the server closed the stream") from None
        except grpc.RpcError as error:
            failure = LotError.from_rpc_error(error)
            if failure.code is grpc.StatusCode.CANCELLED:  # by the timer
                failure = self._silence()
            raise failure from error
        finally:
            silence.cancel()
        return answer

    def _finish(self) -> None:
        with contextlib.suppress(LotError):  # what is acknowledged is stored, however it ends
            self._exchange(None)

    def _drop(self) -> None:
        if self._call is not None:
            self._outgoing.put(None)  # lets the thread go that gRPC sends from
            self._call.cancel()
            self._call = None
