# Generated from _async/recorder.py: do not edit.
"""Records an episode while it happens."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from lot_client._sync._primitives import AtExit, Condition
from lot_client._sync.courier import Courier
from lot_client.errors import LotError
from lot_client.pb.lot.v1.episode_pb2 import EpisodeEvent
from lot_client.recorder_base import spill_refused
from lot_client.recorder_events import error_event
from lot_client.recorder_plan import RecorderPlan


class Recorder(AtExit):
    """Records an episode while it happens; made by `LotClient.recorder`.

    Use it with `with`, from any number of threads. Entering the block starts the episode and
    waits until its stream is open; from then on `record` only queues the event, and a background
    thread sends it. Leaving the block sends what is left and ends the episode:

    * as SUCCEEDED, or as the last `succeed` or `fail` decided;
    * as FAILED with the exception that leaves the block, which is also recorded as an `error`
      event. `SystemExit` without an error code is no failure; `fail` takes precedence;
    * not at all with ``end=False``.

    A lost connection or a server that is unreachable or restarts costs nothing: the recorder
    resumes by itself. A permanent failure (the episode was ended or deleted, another writer took
    it over) is raised by the next `record` or `flush`, or on leaving the block. An exception that
    leaves the block is never replaced: the failure is added to it as a note.
    """

    def __init__(self, plan: RecorderPlan) -> None:
        super().__init__(plan)
        self._changed = Condition()
        self._courier: Courier | None = None
        self._offered = 0

    # --- what callers do ------------------------------------------------------------------------

    def record(
        self,
        event_type: str,
        data: Mapping[str, Any] | None = None,
        *,
        agent_role: str = "",
        event_time: datetime | None = None,
    ) -> None:
        r"""Record an event, waiting only while the buffer is full.

        Events of one thread keep their order.

        What a tool printed is never refused: NUL and lone surrogates in texts are escaped, as
        `\x00` and `\udc80`, and if the data exceeds 256 KiB its longest texts are cut in the
        middle, with a note of how much was removed; `stats.shortened` counts such events. An
        exception in the data becomes its type and message.

        Raises:
            TypeError, ValueError: the data is not JSON, is nested deeper than 16 levels, contains
                NaN or has too many items, or the type or role is too long; nothing is recorded.
            LotError: the buffer stayed full for ``block_timeout``, or the recorder is not open, has
                failed permanently, or belongs to another process.
        """
        self._alive()
        event = self._event(event_type, data, agent_role, event_time)
        self._admit(event, self._plan.policy.block_timeout)
        if self._offered % self._plan.policy.max_batch_events == 0:
            time.sleep(0)  # lets a batch go, where nothing else does

    def flush(self, timeout: float | None = None) -> int:
        """Wait until everything recorded so far is stored; return its last sequence.

        Raises:
            LotError: it took longer than ``timeout`` seconds, or the recorder failed permanently.
        """
        core = self._alive()
        with self._changed:
            target = core.hurry()
            self._changed.notify_all()
            self._wait_for(lambda: self._alive().acknowledged >= target, timeout, "the flush")
        return target

    def __enter__(self) -> Self:
        """Start the episode, or take the existing one, and open its stream.

        Raises:
            LotError: that failed, or the server was unreachable for the client's ``deadline``.
            ValueError, OSError: the spill file cannot be used.
        """
        if self._core is not None or self._closed:
            raise ValueError("a recorder records once; create another")
        try:
            self._recover()
            self._start_episode()
            self._core = self._make_core()
            self._courier = Courier(self._plan, self._core, self._changed)
            self._await_stream()
        except BaseException:
            self._give_up()
            raise
        self._register()
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
        deadline = self._plan.deadline
        with self._changed:
            self._wait_for(lambda: self._alive().ready, deadline, "opening the stream")

    def _finish(self, until: float) -> None:
        """Send what is left and close the stream, so that the episode is free."""
        assert self._courier is not None
        with self._changed:
            self._alive().hurry()
            self._courier.stop()
            left = max(0.0, until - time.monotonic())
            self._wait_for(lambda: self._alive().is_acknowledged, left, "sending what was left")
        self._courier.join(max(0.0, until - time.monotonic()))

    def _end(self, until: float) -> None:
        request = self._end_request()
        if request is not None:
            left = max(0.0, until - time.monotonic())
            answer = self._plan.invoke(self._plan.stub.EndEpisode, request, deadline=left)
            self._ended = answer.episode

    def _give_up(self) -> None:
        """Let go of everything, in whatever state."""
        if os.getpid() != self._process:
            return
        self._unregister()
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        try:
            if self._courier is not None:
                self._courier.give_up()
        finally:
            self._drop_spill()

    # --- events ---------------------------------------------------------------------------------

    def _admit(self, event: EpisodeEvent, seconds: float | None) -> None:
        until = None if seconds is None else time.monotonic() + seconds
        with self._changed:
            while not self._offer(event):
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    raise self._full(seconds)
                self._changed.wait(left)

    def _offer(self, event: EpisodeEvent) -> bool:
        core = self._alive()
        self._offered += 1
        try:
            taken = core.offer(event, time.monotonic())
        except OSError as error:
            raise spill_refused(error) from error
        if taken and core.worth_waking:
            self._changed.notify_all()
        return taken

    def _wait_for(self, done: Callable[[], bool], seconds: float | None, what: str) -> None:
        if not self._changed.wait_for(done, seconds):
            raise self._late(what, seconds or 0.0)
