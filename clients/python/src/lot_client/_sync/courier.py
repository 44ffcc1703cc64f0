# Generated from _async/courier.py: do not edit.
"""Carries a recorder's events to the server."""

from __future__ import annotations

import time
from typing import Any, Self

from lot_client._sync._primitives import Condition, Worker, read, was_ended_by_server
from lot_client.errors import LotError
from lot_client.pb.lot.v1.episode_service_pb2 import RecordEventsRequest
from lot_client.recorder_core import RecorderCore
from lot_client.recorder_plan import RecorderPlan
from lot_client.retry import cut


class Courier:
    """Carries what a core has over one stream after another, until all is sent or nothing helps.

    ``changed`` guards the core; it is notified of all that happens.
    """

    def __init__(self, plan: RecorderPlan, core: RecorderCore, changed: Condition) -> None:
        self._plan = plan
        self._core = core
        self._changed = changed
        self._stopping = self._given_up = False
        self._stream: Messages | None = None
        self._worker = Worker(self._run)

    def stop(self) -> None:
        """Close the stream once all is sent."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def join(self, seconds: float) -> None:
        """Wait until the stream is closed, but not longer."""
        self._worker.join(seconds)

    def give_up(self) -> None:
        """End at once."""
        with self._changed:
            self._given_up = True
            self._changed.notify_all()
            if self._stream is not None:
                self._stream.cancel()
        self._worker.join()

    @property
    def closing(self) -> bool:
        """The stream may be closed: it is to be, and all is sent."""
        return self._stopping and self._core.is_acknowledged

    def _done(self) -> bool:
        return self._given_up or self.closing

    def _run(self) -> None:
        """One stream after another, until all is sent or nothing helps."""
        while not self._done():
            delay: float | None = None
            try:
                self._converse()
            except LotError as error:
                by_server = was_ended_by_server(self._plan.channel, error)
                with self._changed:
                    delay = self._core.lost(error, time.monotonic(), by_server=by_server)
            except Exception as error:  # noqa: BLE001 - callers get it, whatever it is
                with self._changed:
                    self._core.fail(error)
            with self._changed:
                self._changed.notify_all()
                if delay is None:
                    return
                self._changed.wait_for(self._done, delay)

    def _converse(self) -> None:
        """One stream: read answers until it ends, while gRPC sends its messages.

        Raises:
            LotError: why it ended, unless all was done.
        """
        stream = Messages(self, self._core, self._changed)
        try:
            call = self._plan.stub.RecordEvents(stream)
            with self._changed:
                self._stream = stream
                stream.call = call
                if self._given_up:
                    call.cancel()
            while (answer := read(call)) is not None:
                with self._changed:
                    self._core.answered(answer, time.monotonic())
                    self._changed.notify_all()
            with self._changed:
                if not self._done():
                    raise cut("the server closed the stream")
        except LotError as error:
            if stream.silent:
                raise self._core.silence() from error
            raise
        finally:
            with self._changed:
                stream.over = True
                self._changed.notify_all()
            stream.cancel()


class Messages:
    """What gRPC sends over one stream.

    Attributes:
        call: the stream, once it is known.
        silent: the server owed an answer for too long.
        over: the stream has ended.
    """

    def __init__(self, courier: Courier, core: RecorderCore, changed: Condition) -> None:
        self._courier = courier
        self._core = core
        self._changed = changed
        self._started = False
        self.call: Any = None
        self.silent = False
        self.over = False

    def cancel(self) -> None:
        """End the stream at once."""
        if self.call is not None:
            self.call.cancel()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> RecordEventsRequest:
        with self._changed:
            try:
                message = self._next()
            except Exception as error:
                self._core.fail(error)  # gRPC hides it, and the stream would be tried again
                raise
        if message is None:
            raise StopIteration
        return message

    def _next(self) -> RecordEventsRequest | None:
        """Wait for the next message that is due; None at the end of the stream."""
        core = self._core
        while not self.over:
            now = time.monotonic()
            if not self._started:
                self._started = True
                return core.start(now)
            message = core.next(now)
            if message is not None:
                return message
            if self._courier.closing and core.open:
                return None
            if core.is_silent(now) and self.call is not None:
                self.silent = True
                self.cancel()
                return None
            self._changed.wait(core.wait(now))
        return None
