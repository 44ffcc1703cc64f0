"""The recorder for asyncio. `recorder_sync.py` is the same for threads: change both together."""

from __future__ import annotations

import asyncio
import os
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
from lot_client.recorder_task import CourierTask, Happenings


class AsyncRecorder(RecorderBase):
    """Records an episode while it happens; made by `AsyncLotClient.recorder`.

    To be used with `async with`, from any task of its loop. Entering the block starts the
    episode and waits until its stream is open; from then on `record` only takes the event in, and a
    task sends it. Leaving the block sends what is left and ends the episode:

    * as SUCCEEDED, or as `succeed` or `fail` said;
    * as FAILED with the exception that leaves the block, recorded as an event `error` as well.
      `SystemExit` without an error code is no failure; what `fail` said goes first;
    * not at all with ``end=False``.

    A lost connection, a server that is away and one that restarts cost nothing: the recorder goes
    on by itself. What cannot pass by itself (the episode was ended or deleted, another writer took
    it over) is raised by the next `record` or `flush`, or by leaving the block. An exception on
    its way out of the block is never replaced: it gets a note.
    """

    def __init__(self, plan: RecorderPlan, is_connected: Callable[[], bool]) -> None:
        super().__init__(plan)
        self._is_connected = is_connected
        self._happenings = Happenings()
        self._courier: CourierTask | None = None
        self._offered = 0

    # --- what callers do ------------------------------------------------------------------------

    async def record(
        self,
        event_type: str,
        data: Mapping[str, Any] | None = None,
        *,
        agent_role: str = "",
        event_time: datetime | None = None,
    ) -> None:
        r"""Record an event. It waits for nothing but room, and lets other tasks run at times.

        Events of one task keep their order.

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
        await self._admit(event, self._plan.policy.block_timeout)
        self._offered += 1
        if self._offered % self._plan.policy.max_batch_events == 0:
            await asyncio.sleep(0)  # who records in a loop lets the batch go

    async def flush(self, timeout: float | None = None) -> int:  # noqa: ASYNC109 - says what it is
        """Wait until all that was recorded so far is stored; return the last sequence of it.

        Raises:
            LotError: it took longer than ``timeout`` seconds, or failed for good.
        """
        target = self._alive().hurry()
        self._happenings.tell()
        await self._wait_for(lambda: self._alive().acknowledged >= target, timeout, "the flush")
        return target

    async def __aenter__(self) -> Self:
        """Start the episode, or take the one that exists, and open its stream.

        Raises:
            LotError: that failed, or the server stays away for the client's ``deadline``.
            ValueError, OSError: the spill file cannot be used.
        """
        if self._core is not None or self._closed:
            raise ValueError("a recorder records once; make another")
        try:
            await self._recover()
            await self._start_episode()
            self._core = self._make_core()
            self._courier = CourierTask(
                self._core, self._plan.stub, self._happenings, self._is_connected
            )
            await self._await_stream()
        except BaseException:
            await self._give_up()
            raise
        return self

    async def __aexit__(
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
                await self._admit(error_event(error), self._plan.policy.exit_timeout)
            await self._finish(until)
            await self._end(until)
        except LotError as failure:
            if error is None:
                raise
            self._note(error, failure)
        finally:
            await self._give_up()

    # --- start and end --------------------------------------------------------------------------

    async def _recover(self) -> None:
        other = self._hold_spill()
        if other is None or self._spill is None:
            return
        count = self._spill.count
        self._drop_spill()
        try:
            async with AsyncRecorder(self._plan_for(other), self._is_connected):
                pass
        except LotError as error:
            raise self._stuck(other, error) from error
        self._recovered = (other.episode_id, count)
        self._hold_spill()

    async def _start_episode(self) -> None:
        plan = self._plan
        if plan.start is not None:
            answer = await plan.invoke(plan.stub.StartEpisode, plan.start)
            self._starts(answer.episode)

    async def _await_stream(self) -> None:
        deadline = self._plan.deadline
        await self._wait_for(lambda: self._alive().ready, deadline, "opening the stream")

    async def _finish(self, until: float) -> None:
        """Send what is left and close the stream, so that the episode is free."""
        assert self._courier is not None
        self._alive().hurry()
        self._courier.stop()
        left = max(0.0, until - time.monotonic())
        await self._wait_for(lambda: self._alive().settled, left, "sending what was left")
        await self._courier.join(max(0.0, until - time.monotonic()))

    async def _end(self, until: float) -> None:
        request = self._end_request()
        if request is not None:
            left = max(0.0, until - time.monotonic())
            answer = await self._plan.invoke(self._plan.stub.EndEpisode, request, deadline=left)
            self._ended = answer.episode

    async def _give_up(self) -> None:
        """Let go of everything, in whatever state."""
        if os.getpid() != self._process:
            return
        self._closed = True
        self._happenings.tell()
        try:
            if self._courier is not None:
                await self._courier.give_up()
        finally:
            self._drop_spill()

    # --- events ---------------------------------------------------------------------------------

    async def _admit(self, event: EpisodeEvent, seconds: float | None) -> None:
        if self._offer(event):
            return
        try:
            async with asyncio.timeout(seconds):
                while not self._offer(event):
                    await self._happenings.next()
        except TimeoutError:
            raise self._full(seconds) from None

    def _offer(self, event: EpisodeEvent) -> bool:
        core = self._alive()
        try:
            taken = core.offer(event, time.monotonic())
        except OSError as error:
            raise spill_refused(error) from error
        if taken and core.worth_waking:
            self._happenings.tell()
        return taken

    async def _wait_for(self, done: Callable[[], bool], seconds: float | None, what: str) -> None:
        try:
            async with asyncio.timeout(seconds):
                while not done():
                    await self._happenings.next()
        except TimeoutError:
            raise self._late(what, seconds or 0.0) from None
