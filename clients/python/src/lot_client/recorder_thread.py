"""The thread that carries a recorder's events to the server. `recorder_task.py` is its like."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import grpc

from lot_client.errors import LotError
from lot_client.pb.lot.v1.episode_service_pb2 import RecordEventsRequest
from lot_client.recorder_core import RecorderCore
from lot_client.retry import cut


class _Stream:
    """One stream: its call, and whether it is over."""

    call: Any = None
    over = False
    silent = False


class CourierThread:
    """Carries what a core has over one stream after another, until all is sent or nothing helps.

    ``changed`` guards the core; it is notified of all that happens.
    """

    def __init__(self, core: RecorderCore, stub: Any, changed: threading.Condition) -> None:
        self._core = core
        self._stub = stub
        self._changed = changed
        self._stopping = self._given_up = False
        self._stream = _Stream()
        self._thread = threading.Thread(target=self._run, name="lot-recorder", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close the stream once all is sent."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def join(self, seconds: float) -> None:
        """Wait until the stream is closed, but not longer."""
        self._thread.join(seconds)

    def give_up(self) -> None:
        """End at once."""
        with self._changed:
            self._given_up = True
            self._changed.notify_all()
            if self._stream.call is not None:
                self._stream.call.cancel()
        self._thread.join()

    def _run(self) -> None:
        """One stream after another, until all is sent or nothing helps."""
        core = self._core
        while not self._done():
            delay: float | None = None
            try:
                self._converse()
            except LotError as error:
                with self._changed:
                    delay = core.lost(error, time.monotonic())
            except Exception as error:  # noqa: BLE001 - callers are told, whatever it is
                with self._changed:
                    core.fail(error)
            with self._changed:
                self._changed.notify_all()
                if delay is None:
                    return
                self._changed.wait_for(self._done, delay)

    def _done(self) -> bool:
        return self._given_up or (self._stopping and self._core.settled)

    def _converse(self) -> None:
        """One stream: read answers until it ends. A thread of gRPC's sends.

        Raises:
            LotError: why it ended, unless all was done.
        """
        stream = _Stream()
        try:
            call = self._stub.RecordEvents(self._messages(stream))
            with self._changed:
                self._stream = stream
                stream.call = call
                if self._given_up:
                    call.cancel()
            for answer in call:
                with self._changed:
                    self._core.answered(answer, time.monotonic())
                    self._changed.notify_all()
            with self._changed:
                if not self._done():
                    raise cut("the server closed the stream")
        except grpc.RpcError as error:
            if stream.silent:
                raise self._core.silence() from error
            raise LotError.from_rpc_error(error) from error
        finally:
            with self._changed:
                stream.over = True
                self._changed.notify_all()
            if stream.call is not None:
                stream.call.cancel()

    def _messages(self, stream: _Stream) -> Iterator[RecordEventsRequest]:
        """What gRPC sends. It would hide an exception, and the stream would be tried again."""
        try:
            yield from self._due(stream)
        except Exception as error:
            with self._changed:
                self._core.fail(error)
            raise

    def _due(self, stream: _Stream) -> Iterator[RecordEventsRequest]:
        with self._changed:
            if stream.over:
                return
            message: RecordEventsRequest | None = self._core.start(time.monotonic())
        while message is not None:
            yield message
            with self._changed:
                message = self._next(stream)

    def _next(self, stream: _Stream) -> RecordEventsRequest | None:
        """Wait for the next message that is due; None at the end of the stream."""
        while not stream.over:
            now = time.monotonic()
            message = self._core.next(now)
            if message is not None:
                return message
            if self._stopping and self._core.settled and self._core.open:
                return None
            if self._core.is_silent(now) and stream.call is not None:
                stream.silent = True
                stream.call.cancel()
                return None
            self._changed.wait(self._core.wait(now))
        return None
