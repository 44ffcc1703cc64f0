# Generated from _async/feeds.py: do not edit.
"""Streams that resume by themselves after a lost connection: replays and changes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from lot_client._sync._primitives import read
from lot_client.errors import LotError
from lot_client.pb.lot.v1.change_pb2 import (
    ChangeEvent,
    WatchChangesRequest,
    WatchChangesResponse,
)
from lot_client.pb.lot.v1.episode_pb2 import EpisodeEvent
from lot_client.pb.lot.v1.episode_service_pb2 import ReplayEpisodeRequest
from lot_client.retry import Resumption, RetryPolicy


def replay(
    stub: Any, request: ReplayEpisodeRequest, retry: RetryPolicy, deadline: float
) -> Iterator[EpisodeEvent]:
    """Events in order, each once, over as many streams as it takes."""
    resumption = Resumption(retry, deadline)
    while True:
        call = stub.ReplayEpisode(request)
        try:
            while (answer := read(call)) is not None:
                resumption.succeeded()
                for event in answer.events:
                    request.after_sequence = event.sequence
                    yield event
        except LotError as error:
            delay = resumption.delay(error)
        else:
            return
        finally:
            call.cancel()
        time.sleep(delay)


class ChangeWatch:
    """Changes as they happen; made by `LotClient.watch_changes`. Iterate over it.

    Waits for changes until `close` is called, from any thread, and resumes from its cursor after a
    lost connection. Inside `with` the server is already watching, so nothing that happens
    from then on is missed.
    """

    def __init__(
        self, stub: Any, request: WatchChangesRequest, retry: RetryPolicy, deadline: float
    ) -> None:
        self._stub = stub
        self._request = request
        self._resumption = Resumption(retry, deadline)
        self._received: deque[ChangeEvent] = deque()
        self._cursor = request.after_cursor
        self._next_cursor = ""  # behind all that was received
        self._call: Any = None
        self._closed = False

    @property
    def cursor(self) -> str:
        """Pass it as `after_cursor` to resume after the last change that was returned.

        Empty until the server has answered, which it has inside the block.
        """
        return self._cursor

    def __enter__(self) -> Self:
        """Start watching, and wait until the server does."""
        while not self._cursor and not self._received and self._read():
            pass
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop watching."""
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ChangeEvent:
        while not self._received:
            if not self._read():
                raise StopIteration
        change = self._received.popleft()
        self._cursor = change.cursor or self._cursor
        if not self._received:
            self._cursor = self._next_cursor or self._cursor
        return change

    def close(self) -> None:
        """Stop watching, which also ends a wait for the next change."""
        self._closed = True
        call = self._call
        if call is not None:
            call.cancel()

    def _read(self) -> bool:
        """Wait for the next message, over another stream if need be. False: it was closed."""
        if not self._closed:
            self._call = self._call or self._stub.WatchChanges(self._request)
        if self._closed:  # perhaps while the call was made, which `close` did not see
            self.close()
            return False
        try:
            answer = read(self._call)
        except LotError as error:
            self._call = None
            if self._closed:
                return False
            time.sleep(self._resumption.delay(error))
        except BaseException:
            self._call.cancel()
            self._call = None  # its next answer may be lost
            raise
        else:
            if answer is None:
                self._call = None
                time.sleep(self._resumption.delay_after_end())
            else:
                self._take(answer)
        return True

    def _take(self, answer: WatchChangesResponse) -> None:
        self._resumption.succeeded()
        self._received.extend(answer.change_events)
        self._next_cursor = answer.cursor
        if answer.cursor:
            # Another stream begins behind all that was received, and will be returned.
            self._request.after_cursor = answer.cursor
            self._request.from_start = False
        if not self._received:
            self._cursor = answer.cursor or self._cursor
