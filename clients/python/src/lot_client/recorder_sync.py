"""The recorder for threads. `recorder_aio.py` is the same for asyncio: change both together."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from lot_client.errors import LotError
from lot_client.pb.lot.v1.episode_pb2 import EpisodeEvent
from lot_client.recorder_base import (
    RecorderBase,
    spill_refused,
)
from lot_client.recorder_events import error_event
from lot_client.recorder_plan import RecorderPlan
from lot_client.recorder_thread import CourierThread

_log = logging.getLogger("lot_client")
_open: set[Callable[[], None]] = set()
"""What closes the recorders that are open, of this process and of the one it was forked off."""


class Recorder(RecorderBase):
    """Records an episode while it happens; made by `LotClient.recorder`.

    To be used with `with`, from any number of threads. Entering the block starts the episode and
    waits until its stream is open; from then on `record` only takes the event in, and a thread
    sends it. Leaving the block sends what is left and ends the episode:

    * as SUCCEEDED, or as `succeed` or `fail` said;
    * as FAILED with the exception that leaves the block, recorded as an event `error` as well.
      `SystemExit` without an error code is no failure; what `fail` said goes first;
    * not at all with ``end=False``.

    A lost connection, a server that is away and one that restarts cost nothing: the recorder goes
    on by itself. What cannot pass by itself (the episode was ended or deleted, another writer took
    it over) is raised by the next `record` or `flush`, or by leaving the block. An exception on
    its way out of the block is never replaced: it gets a note.
    """

    def __init__(self, plan: RecorderPlan) -> None:
        super().__init__(plan)
        self._changed = threading.Condition()
        self._courier: CourierThread | None = None

    # --- what callers do ------------------------------------------------------------------------

    def record(
        self,
        event_type: str,
        data: Mapping[str, Any] | None = None,
        *,
        agent_role: str = "",
        event_time: datetime | None = None,
    ) -> None:
        r"""Record an event. Events of one thread keep their order.

        What a tool printed is never refused: NUL and lone surrogates in texts are escaped, as
        `\x00` and `\udc80`, and of data over 256 KiB the longest texts lose their middle, where a
        note says how much; `stats.shortened` counts. An exception in the data becomes its type and
        message.

        Raises:
            TypeError, ValueError: the data is not JSON, nested deeper than 16 levels, holds NaN or
                has too many items, or the type or role is too long; nothing is recorded.
            LotError: there is no room within ``block_timeout``, or the recorder is not open, has
                failed for good, or belongs to another process.
        """
        self._alive()
        event = self._event(event_type, data, agent_role, event_time)
        self._admit(event, self._plan.policy.block_timeout)

    def flush(self, timeout: float | None = None) -> int:
        """Wait until all that was recorded so far is stored; return the last sequence of it.

        Raises:
            LotError: it took longer than ``timeout`` seconds, or failed for good.
        """
        core = self._alive()
        with self._changed:
            target = core.hurry()
            self._changed.notify_all()
            self._wait_for(lambda: self._alive().acknowledged >= target, timeout, "the flush")
        return target

    def __enter__(self) -> Self:
        """Start the episode, or take the one that exists, and open its stream.

        Raises:
            LotError: that failed, or the server stays away for the client's ``deadline``.
            ValueError, OSError: the spill file cannot be used.
        """
        if self._core is not None or self._closed:
            raise ValueError("a recorder records once; make another")
        try:
            self._recover()
            self._start_episode()
            self._core = self._make_core()
            self._courier = CourierThread(self._core, self._plan.stub, self._changed)
            self._await_stream()
        except BaseException:
            self._give_up()
            raise
        _open.add(self._close_at_exit)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Send what is left, and end the episode."""
        until = time.monotonic() + self._plan.policy.exit_timeout
        try:
            self._alive()
            if error is not None and self._raised(error):
                self._admit(error_event(error), self._plan.policy.exit_timeout)
            self._finish(until)
            self._end(until)
        except LotError as failure:
            if error is None:
                raise
            self._note(error, failure)
        finally:
            self._give_up()

    # --- start and end --------------------------------------------------------------------------

    def _recover(self) -> None:
        other = self._hold_spill()
        if other is None or self._spill is None:
            return
        count = self._spill.count
        self._drop_spill()
        try:
            with Recorder(self._plan_for(other)):
                pass
        except LotError as error:
            raise self._stuck(other, error) from error
        self._recovered = (other.episode_id, count)
        self._hold_spill()

    def _start_episode(self) -> None:
        plan = self._plan
        if plan.start is not None:
            answer = plan.invoke(plan.stub.StartEpisode, plan.start)
            self._starts(answer.episode)

    def _await_stream(self) -> None:
        with self._changed:
            self._wait_for(lambda: self._alive().ready, self._plan.deadline, "opening the stream")

    def _finish(self, until: float) -> None:
        """Send what is left and close the stream, so that the episode is free."""
        assert self._courier is not None
        with self._changed:
            self._alive().hurry()
            self._courier.stop()
            left = max(0.0, until - time.monotonic())
            self._wait_for(lambda: self._alive().settled, left, "sending what was left")
        self._courier.join(max(0.0, until - time.monotonic()))

    def _end(self, until: float) -> None:
        request = self._end_request()
        if request is not None:
            left = max(0.0, until - time.monotonic())
            self._ended = self._plan.invoke(
                self._plan.stub.EndEpisode, request, deadline=left
            ).episode

    def _close_at_exit(self) -> None:
        """Send what is left, and leave the episode open: nobody said how it ended."""
        if os.getpid() != self._process:
            return
        try:
            self._finish(time.monotonic() + self._plan.policy.atexit_timeout)
        except LotError as failure:
            _log.warning("episode %s was not recorded to its end: %s", self._episode_id, failure)
        finally:
            self._give_up()

    def _give_up(self) -> None:
        """Let go of everything, in whatever state."""
        if os.getpid() != self._process:
            return
        _open.discard(self._close_at_exit)
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._courier is not None:
            self._courier.give_up()
        self._drop_spill()

    # --- events ---------------------------------------------------------------------------------

    def _admit(self, event: EpisodeEvent, timeout: float | None) -> None:
        until = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while not self._offer(event):
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    raise self._full(timeout)
                self._changed.wait(left)

    def _offer(self, event: EpisodeEvent) -> bool:
        core = self._alive()
        try:
            taken = core.offer(event, time.monotonic())
        except OSError as error:
            raise spill_refused(error) from error
        if taken and core.worth_waking:
            self._changed.notify_all()
        return taken

    def _wait_for(self, done: Any, timeout: float | None, what: str) -> None:
        if not self._changed.wait_for(done, timeout):
            raise self._late(what, timeout or 0.0)


def _close_all() -> None:
    """At the end of the interpreter: send what is left, within each one's ``atexit_timeout``."""
    for close in list(_open):
        close()


atexit.register(_close_all)
