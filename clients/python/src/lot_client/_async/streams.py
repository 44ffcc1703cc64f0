"""Streams of events that survive a lost connection."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Any, Self

from lot_client._async._primitives import Exchange
from lot_client.errors import LotError
from lot_client.fields import Events
from lot_client.pb.lot.v1.episode_pb2 import EpisodeEvent
from lot_client.retry import Attempts, RetryPolicy
from lot_client.window import Window


class AsyncEventStream:
    """Appends events to an episode; made by `AsyncLotClient.record_events`.

    For one task at a time. After a lost connection it resumes by itself.
    """

    def __init__(self, stub: Any, window: Window, deadline: float, retry: RetryPolicy) -> None:
        self._stub = stub
        self._window = window
        self._deadline = deadline
        self._retry = retry
        self._call: Exchange | None = None
        self._status_lost = False

    @property
    def last_sequence(self) -> int:
        """The last event that the server acknowledged: it and all before survive a crash."""
        return self._window.last_sequence

    @property
    def unacknowledged(self) -> list[EpisodeEvent]:
        """After a LotError, events that may not be stored; the next `send` sends them again."""
        return self._window.unacknowledged()

    async def send(self, events: Events) -> int:
        """Send one event or several, and return the last sequence once they are stored.

        Each call is a message and an acknowledgement, so pass events that come together as one
        list.

        Raises:
            LotError: these or earlier events were refused, or the server stayed unreachable.
        """
        self._window.add(events)
        while self._window.next() is not None:
            await self._deliver()
        return self.last_sequence

    async def __aenter__(self) -> Self:
        """Open the stream, so that an unknown or ended episode is reported at once."""
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
                with contextlib.suppress(LotError):  # what was acknowledged is stored in any case
                    await self._call.send(None)
        finally:
            self._drop()

    async def _deliver(self) -> None:
        """Have the first waiting message stored, if there is one, over an open stream."""
        attempts: Attempts | None = None
        while True:
            try:
                if self._call is None:
                    self._call = Exchange(self._stub.RecordEvents, self._deadline)
                    # If the status was lost, another writer may have taken over, which must not
                    # be replaced.
                    first_request = self._window.first_request(refuse=self._status_lost)
                    self._window.opened(await self._call.send(first_request))
                    self._status_lost = False
                message = self._window.next()
                if message is not None:
                    self._window.acknowledged(await self._call.send(message))
            except LotError as error:
                self._drop()
                attempts = attempts or Attempts(self._retry, self._deadline)
                # After a cut, our own stream may look alive to the server for a while.
                also = "EPISODE_STREAM_OPEN" if self._window.was_open else ""
                await asyncio.sleep(attempts.delay_after(error, safe=True, also=also))
            except BaseException:
                self._drop()  # its next answer would be taken for that of another message
                raise
            else:
                return

    def _drop(self) -> None:
        if self._call is not None:
            self._status_lost = self._status_lost or self._call.status_lost
            self._call.cancel()
            self._call = None
