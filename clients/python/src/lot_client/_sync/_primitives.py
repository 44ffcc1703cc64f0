"""What differs between tasks and threads. `_async/_primitives.py` has the same names for tasks."""

from __future__ import annotations

import atexit
import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import grpc

from lot_client.errors import LotError
from lot_client.recorder_base import RecorderBase
from lot_client.retry import cut, no_answer

_log = logging.getLogger("lot_client")

Condition = threading.Condition


def read(call: Any) -> Any:
    """The next message of a stream; None at its end.

    Raises:
        LotError: how the stream ended; CANCELLED if it was cancelled here.
    """
    try:
        return next(call, None)
    except grpc.RpcError as error:
        raise LotError.from_rpc_error(error) from error


class Exchange:
    """A stream on which each message is answered before the next is sent.

    Attributes:
        status_lost: gRPC lost the status with which the stream ended: only grpc.aio does.
    """

    status_lost = False

    def __init__(self, method: Any, seconds: float) -> None:
        """``seconds``: for an answer."""
        self._outgoing: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._call = method(iter(self._outgoing.get, None))
        self._seconds = seconds

    def send(self, message: Any) -> Any:
        """Send a message, or None for the end, and read the answer.

        Raises:
            LotError: the stream ended, or there was no answer in time.
        """
        self._outgoing.put(message)
        timer = threading.Timer(self._seconds, self._call.cancel)
        timer.daemon = True
        timer.start()
        try:
            answer = read(self._call)
        except LotError as failure:
            if failure.code is grpc.StatusCode.CANCELLED:  # by the timer
                raise no_answer(self._seconds) from failure
            raise
        finally:
            timer.cancel()
        if answer is None:
            raise cut("the server closed the stream")
        return answer

    def cancel(self) -> None:
        """End it at once."""
        self._outgoing.put(None)  # releases the thread from which gRPC sends
        self._call.cancel()


def was_ended_by_server(channel: grpc.Channel, error: LotError) -> bool:
    """Whether the server ended a stream with a status that gRPC lost: only grpc.aio loses it."""
    return False


class Worker(threading.Thread):
    """A thread in the background."""

    def __init__(self, run: Callable[[], None]) -> None:
        super().__init__(target=run, name="lot-recorder", daemon=True)
        self.start()


class AtExit(RecorderBase):
    """A recorder that, if it is open when the interpreter ends, sends what is left.

    The episode stays open: nobody said how it ended.
    """

    _finish: Any
    _give_up: Any

    def _register(self) -> None:
        _open.add(self._close)

    def _unregister(self) -> None:
        _open.discard(self._close)

    def _close(self) -> None:
        if os.getpid() != self._process:
            return
        try:
            self._finish(time.monotonic() + self._plan.policy.atexit_timeout)
        except LotError as failure:
            _log.warning("episode %s was not recorded to its end: %s", self._episode_id, failure)
        finally:
            self._give_up()


_open: set[Callable[[], None]] = set()
"""What closes the recorders that are open, in this process and in the one it was forked from."""


@atexit.register
def _close_all() -> None:
    for close in list(_open):
        close()
