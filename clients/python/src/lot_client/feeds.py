"""Streams of answers that go on by themselves after a lost connection: replays and changes."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Any, Self

import grpc
import grpc.aio

from lot_client.errors import LotError
from lot_client.pb.lot.v1.change_pb2 import (
    ChangeEvent,
    WatchChangesRequest,
    WatchChangesResponse,
)
from lot_client.pb.lot.v1.episode_pb2 import EpisodeEvent
from lot_client.pb.lot.v1.episode_service_pb2 import ReplayEpisodeRequest
from lot_client.retry import Attempts, RetryPolicy, cut, of_the_way


class _Resume:
    """When a stream is opened again: as long as the server is away for less than a deadline."""

    def __init__(self, retry: RetryPolicy, deadline: float) -> None:
        self._retry = retry
        self._deadline = deadline
        self._attempts: Attempts | None = None

    def came(self) -> None:
        """The server answered."""
        self._attempts = None

    def delay(self, error: grpc.RpcError) -> float:
        """Seconds to wait. Raises LotError where another stream is no use."""
        failure = LotError.from_rpc_error(error)
        if of_the_way(failure):
            failure = cut(failure.message)
        failure.__cause__ = error
        return self._delay(failure)

    def ended(self) -> float:
        """Likewise for a stream that ended without an error, which it should not."""
        return self._delay(cut("the server closed the stream"))

    def _delay(self, failure: LotError) -> float:
        self._attempts = self._attempts or Attempts(self._retry, self._deadline)
        return self._attempts.delay_after(failure, safe=True)


def replay(
    stub: Any, request: ReplayEpisodeRequest, retry: RetryPolicy, deadline: float
) -> Iterator[EpisodeEvent]:
    """Events in order, each once, over as many streams as it takes."""
    resume = _Resume(retry, deadline)
    while True:
        call = stub.ReplayEpisode(request)
        try:
            for answer in call:
                resume.came()
                for event in answer.events:
                    request.after_sequence = event.sequence
                    yield event
        except grpc.RpcError as error:
            delay = resume.delay(error)
        else:
            return
        finally:
            call.cancel()
        time.sleep(delay)


async def replay_async(
    stub: Any, request: ReplayEpisodeRequest, retry: RetryPolicy, deadline: float
) -> AsyncIterator[EpisodeEvent]:
    """Events in order, each once, over as many streams as it takes."""
    resume = _Resume(retry, deadline)
    while True:
        call = stub.ReplayEpisode(request)
        try:
            async for answer in call:
                resume.came()
                for event in answer.events:
                    request.after_sequence = event.sequence
                    yield event
        except grpc.RpcError as error:
            delay = resume.delay(error)
        else:
            return
        finally:
            call.cancel()
        await asyncio.sleep(delay)


class _Watch:
    """What both watches share: where they are, and what came but was not given out."""

    def __init__(
        self, stub: Any, request: WatchChangesRequest, retry: RetryPolicy, deadline: float
    ) -> None:
        self._stub = stub
        self._request = request
        self._resume = _Resume(retry, deadline)
        self._came: deque[ChangeEvent] = deque()
        self._behind = ""  # cursor behind all that came
        self._call: Any = None
        self._closed = False
        self._cursor = request.after_cursor

    @property
    def cursor(self) -> str:
        """To go on from behind the last change that was given out: keep it as `after_cursor`.

        Empty until the server has answered; within the block it has.
        """
        return self._cursor

    def _take(self, answer: WatchChangesResponse) -> None:
        self._resume.came()
        self._came.extend(answer.change_events)
        self._behind = answer.cursor
        if answer.cursor:
            # Another stream begins behind all of it, which is here and will be given out.
            self._request.after_cursor = answer.cursor
            self._request.from_start = False
        if not self._came:
            self._cursor = answer.cursor or self._cursor

    def _give(self) -> ChangeEvent:
        change = self._came.popleft()
        self._cursor = change.cursor or self._cursor
        if not self._came:
            self._cursor = self._behind or self._cursor
        return change


class ChangeWatch(_Watch):
    """Changes as they happen; made by `LotClient.watch_changes`. Iterate over it.

    It waits for changes until `close` is called, from any thread, and goes on from its cursor
    after a lost connection. Within `with` the server knows of it, so that nothing which happens
    from then on is missed.
    """

    def __enter__(self) -> Self:
        """Begin, and wait until the server has."""
        while not self._cursor and not self._came and self._read():
            pass
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it."""
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ChangeEvent:
        while not self._came:
            if not self._read():
                raise StopIteration
        return self._give()

    def close(self) -> None:
        """End it, also for who waits for the next change."""
        self._closed = True
        if self._call is not None:
            self._call.cancel()

    def _read(self) -> bool:
        """Wait for the next message, over another stream if need be. False: it was closed."""
        if self._closed:
            return False
        try:
            if self._call is None:
                self._call = self._stub.WatchChanges(self._request)
            self._take(next(self._call))
        except StopIteration:
            self._call = None  # the server closed it without a word
            time.sleep(self._resume.ended())
        except grpc.RpcError as error:
            self._call = None
            if self._closed:
                return False
            time.sleep(self._resume.delay(error))
        return True


class AsyncChangeWatch(_Watch):
    """Changes as they happen; made by `AsyncLotClient.watch_changes`. Iterate over it.

    It waits for changes until `close` is called, from any task, and goes on from its cursor after
    a lost connection. Within `async with` the server knows of it, so that nothing which happens
    from then on is missed.
    """

    async def __aenter__(self) -> Self:
        """Begin, and wait until the server has."""
        while not self._cursor and not self._came and await self._read():
            pass
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it."""
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ChangeEvent:
        while not self._came:
            if not await self._read():
                raise StopAsyncIteration
        return self._give()

    def close(self) -> None:
        """End it, also for who waits for the next change."""
        self._closed = True
        if self._call is not None:
            self._call.cancel()

    async def _read(self) -> bool:
        """Wait for the next message, over another stream if need be. False: it was closed."""
        if self._closed:
            return False
        call = self._call = self._call or self._stub.WatchChanges(self._request)
        try:
            answer = await call.read()
        except grpc.RpcError as error:
            self._call = None
            await asyncio.sleep(self._resume.delay(error))
        except asyncio.CancelledError:
            call.cancel()
            self._call = None  # its next answer may be lost with this one
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return not self._closed  # not this task but the call was cancelled
        else:
            if answer is grpc.aio.EOF:
                self._call = None
                await asyncio.sleep(self._resume.ended())
            else:
                self._take(answer)
        return True
