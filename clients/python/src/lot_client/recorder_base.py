"""What both recorders share: their state, and how an episode starts and ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Unpack

import grpc

from lot_client import fields
from lot_client.contract import check
from lot_client.errors import LotError
from lot_client.messages import build
from lot_client.pb.lot.v1.episode_pb2 import (
    EPISODE_STATUS_FAILED,
    EPISODE_STATUS_SUCCEEDED,
    Episode,
    EpisodeError,
    EpisodeEvent,
)
from lot_client.pb.lot.v1.episode_service_pb2 import EndEpisodeRequest
from lot_client.recorder_core import RecorderCore
from lot_client.recorder_events import error_fields, escaped, make_event, printed_fields
from lot_client.recorder_plan import RecorderPlan
from lot_client.recorder_policy import RecorderState, RecorderStats
from lot_client.recorder_spill import Spill, SpillOwner
from lot_client.requests import Requests
from lot_client.window import make_opening


class RecorderBase:
    """Both recorders without their I/O."""

    def __init__(self, plan: RecorderPlan) -> None:
        self._plan = plan
        self._process = os.getpid()
        self._episode_id = plan.episode_id
        self._spill: Spill | None = None
        self._core: RecorderCore | None = None
        self._closed = False
        self._ending = EndEpisodeRequest()
        self._ended: Episode | None = None
        self._recovered: tuple[str, int] | None = None
        self._started: datetime | None = None
        self._shortened = 0
        self._counting = threading.Lock()

    # --- state ---------------------------------------------------------------------------------

    @property
    def episode_id(self) -> str:
        """Id of the recorded episode; empty until it has started."""
        return self._episode_id

    @property
    def episode(self) -> Episode | None:
        """The episode after its end; None before."""
        return self._ended

    @property
    def recovered(self) -> tuple[str, int] | None:
        """Id of another episode, and how many of its events were sent from the spill file."""
        return self._recovered

    @property
    def state(self) -> RecorderState:
        """NEW, CONNECTING (or reconnecting), RECORDING, FAILED permanently, or CLOSED."""
        if self._closed:
            return "CLOSED"
        if self._core is None:
            return "NEW"
        if self._core.error is not None:
            return "FAILED"
        return "RECORDING" if self._core.open else "CONNECTING"

    @property
    def stats(self) -> RecorderStats:
        """Current counts."""
        stats = self._core.stats if self._core else RecorderStats()
        return replace(stats, shortened=self._shortened)

    @property
    def last_sequence(self) -> int:
        """The last event that the server acknowledged: it and all before survive a crash."""
        return self._core.acknowledged if self._core else 0

    @property
    def unacknowledged(self) -> list[EpisodeEvent]:
        """Events in memory that may not be stored, with their sequence."""
        return self._core.unacknowledged if self._core else []

    # --- the end --------------------------------------------------------------------------------

    def succeed(self, summary: str = "", **end: Unpack[fields.EpisodeEndDetails]) -> None:
        r"""End the episode as SUCCEEDED when the block is left; the last decision counts.

        NUL and lone surrogates in texts are escaped, as `\x00` and `\udc80`.

        Raises:
            TypeError, ValueError: an argument violates the contract, or the recorder was created
                with ``end=False``.
        """
        self._decide("SUCCEEDED", summary, None, end)

    def fail(
        self,
        error: BaseException | str | EpisodeError | fields.EpisodeErrorFields = "",
        summary: str = "",
        **end: Unpack[fields.EpisodeEndDetails],
    ) -> None:
        r"""End the episode as FAILED when the block is left; the last decision counts.

        NUL and lone surrogates in texts are escaped, as `\x00` and `\udc80`.

        Args:
            error: an exception, printed output, or `{"type": …, "message": …}`. A text over 64 KiB
                of the first two is cut in the middle.
            summary: how it went.
            end: further fields.

        Raises:
            TypeError, ValueError: an argument violates the contract, or the recorder was created
                with ``end=False``.
        """
        if isinstance(error, BaseException):
            error = error_fields(error)
        elif isinstance(error, str):
            error = printed_fields(error) if error else {}
        self._decide("FAILED", summary, error or None, end)

    def _decide(self, status: str, summary: str, error: Any, end: Mapping[str, Any]) -> None:
        if not self._plan.end:
            raise ValueError("this recorder was created with end=False: it leaves the episode open")
        if unknown := end.keys() - fields.EpisodeEndDetails.__annotations__.keys():
            raise TypeError(f"unknown arguments: {', '.join(sorted(unknown))}")
        ending = escaped({"status": status, "summary": summary, "error": error, **end})
        made = build(EndEpisodeRequest, ending)
        check(made)  # refuses here what the server would on leaving
        end_time = end.get("end_time")
        if end_time is not None and self._started is not None and end_time < self._started:
            raise ValueError(
                f"end_time {end_time.isoformat()} is before the episode's start_time "
                f"{self._started.isoformat()}; without it the server's clock gives the time"
            )
        self._ending = made

    def _raised(self, error: BaseException) -> bool:
        """The block is left by an exception; True: it makes the episode FAILED."""
        if isinstance(error, SystemExit) and not error.code:
            return False
        if self._plan.end and self._ending.status != EPISODE_STATUS_FAILED:
            self._ending.status = EPISODE_STATUS_FAILED
            self._ending.error.CopyFrom(build(EpisodeError, error_fields(error)))
        return True

    def _end_request(self) -> EndEpisodeRequest | None:
        if not self._plan.end:
            return None
        ending = self._ending
        ending.namespace = self._plan.requests.namespace
        ending.episode_id = self._episode_id
        ending.status = ending.status or EPISODE_STATUS_SUCCEEDED
        ending.extract_knowledge = self._plan.extract_knowledge
        return ending

    def _event(self, *arguments: Any) -> EpisodeEvent:
        event, shortened = make_event(*arguments)
        if shortened:
            with self._counting:
                self._shortened += 1
        return event

    def _starts(self, episode: Episode) -> None:
        self._episode_id = episode.episode_id
        self._started = episode.start_time.ToDatetime(UTC)

    # --- within ---------------------------------------------------------------------------------

    def _make_core(self) -> RecorderCore:
        plan, owner = self._plan, self._owner()
        if self._spill is not None and not self._spill.count:
            self._spill.begin(owner)
        first_request = make_opening(owner.namespace, owner.episode_id, plan.takeover_policy)
        return RecorderCore(first_request, plan.policy, plan.retry, plan.deadline, self._spill)

    def _hold_spill(self) -> SpillOwner | None:
        """Open the spill file; whose events it still has, if they are not this episode's."""
        path = self._plan.policy.spill_path
        if path is None:
            return None
        self._spill = Spill(path, self._plan.policy.max_spill_bytes)
        if not self._spill.count or self._spill.owner == self._owner():
            return None
        return self._spill.owner

    def _owner(self) -> SpillOwner:
        return SpillOwner(self._plan.requests.namespace or "default", self._episode_id)

    def _plan_for(self, owner: SpillOwner) -> RecorderPlan:
        """What sends the events that an earlier process left, and leaves their episode open."""
        return replace(
            self._plan,
            requests=Requests(owner.namespace),
            episode_id=owner.episode_id,
            start=None,
            end=False,
        )

    def _stuck(self, owner: SpillOwner, error: LotError) -> LotError:
        return replace(
            error,
            message=f"{self._plan.policy.spill_path} contains events of episode "
            f"{owner.episode_id} that cannot be sent: {error.message}; "
            "move the file away to continue without them",
        )

    def _drop_spill(self) -> None:
        if self._spill is not None:
            self._spill.close()
            self._spill = None

    def _alive(self) -> RecorderCore:
        """The core, where events can be recorded or waited for.

        Raises:
            LotError: says why not.
        """
        if os.getpid() != self._process:
            raise _refusal(
                "this recorder was created before a fork and belongs to the parent; "
                "create a client and a recorder in the child"
            )
        if self._core is None or self._closed:
            raise _refusal("the recorder is not open; use it within its `with` block")
        if self._core.error is not None:
            raise replace(self._core.error) from self._core.error
        return self._core

    def _full(self, timeout: float | None) -> LotError:
        return LotError(
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            f"the recorder's buffer stayed full for {timeout or 0:g} s, so the event was not "
            f"recorded; the last error: {self.stats.last_error or 'none'}",
        )

    def _note(self, error: BaseException, failure: LotError) -> None:
        """Tell of ``failure`` by the exception that leaves the block, unless that is it."""
        if error.__cause__ is None or error.__cause__ is not failure.__cause__:
            error.add_note(f"The recording of episode {self._episode_id} failed: {failure}")

    def _late(self, what: str, seconds: float) -> LotError:
        stats = self.stats
        waiting = stats.recorded - stats.acknowledged
        return LotError(
            grpc.StatusCode.DEADLINE_EXCEEDED,
            f"{what} took longer than {seconds:g} s; {waiting} events are not acknowledged; "
            f"the last error: {stats.last_error or 'none'}",
        )


def spill_refused(error: OSError) -> LotError:
    """The error for an event that the disk does not take."""
    return LotError(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        f"the spill file cannot be written, so the event was not recorded: {error}",
    )


def _refusal(text: str) -> LotError:
    return LotError(grpc.StatusCode.FAILED_PRECONDITION, text)
