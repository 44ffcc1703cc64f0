"""Episode: one run of a task, with what happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.errors import invalid
from lot_grpc.domain.ids import etag_of
from lot_grpc.domain.outcomes import NO_OUTCOMES, OutcomeStats
from lot_grpc.domain.search_text import SearchText, joined
from lot_grpc.domain.text_form import visible

DEFAULT_ABANDON_HOURS = 24.0
"""How long an episode may be silent before it counts as abandoned: longer than agents pause."""


class EpisodeStatus(StrEnum):
    """The status of an episode."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    ABANDONED = "abandoned"

    @property
    def ended(self) -> bool:
        """Whether no further events are accepted."""
        return self in (EpisodeStatus.SUCCEEDED, EpisodeStatus.FAILED)


@dataclass(frozen=True, slots=True)
class EpisodeError:
    """The error of a failed episode."""

    type: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class EpisodeStart:
    """What is known when an episode starts. Field by field as in ``lot.v1.Episode``."""

    task: str
    task_id: str = ""
    category: str = ""
    task_type: str = ""
    complexity: Complexity | None = None
    dependencies: tuple[str, ...] = ()
    effort: float = 0.0
    approach: str = ""
    agent_role: str = ""
    context: str = ""
    tags: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    start_time: int | None = None
    """Microseconds since 1970; None is now."""


@dataclass(frozen=True, slots=True)
class EpisodeEnd:
    """How an episode ended. ``status`` is SUCCEEDED or FAILED."""

    status: EpisodeStatus
    summary: str = ""
    error: EpisodeError | None = None
    error_patterns: tuple[str, ...] = ()
    success_factors: tuple[str, ...] = ()
    tools_used: tuple[str, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    reward: float | None = None
    used_pattern_ids: tuple[str, ...] = ()
    used_episode_ids: tuple[str, ...] = ()
    approach: str = ""
    end_time: int | None = None
    """Microseconds since 1970; None is now."""

    def check(self, path: str = "") -> None:
        """Check what the contract cannot express: an error only with FAILED.

        ``path``: the prefix of the end's fields in the request, such as ``episode.``.
        """
        if self.error is not None and self.status is not EpisodeStatus.FAILED:
            raise invalid(
                f"{path}error",
                "error.status",
                "error is only allowed with status FAILED; omit it otherwise",
            )


@dataclass(frozen=True, slots=True)
class Episode:
    """A stored episode. ``end`` is None until it ended. Times in microseconds since 1970.

    ``end_time`` of an ABANDONED one is that of its last activity; None while it is RUNNING.
    """

    namespace: str
    episode_id: str
    start: EpisodeStart
    status: EpisodeStatus
    end: EpisodeEnd | None
    start_time: int
    end_time: int | None
    event_count: int
    reused_count: int
    writer_epoch: int
    revision: int
    create_time: int
    update_time: int
    outcomes: OutcomeStats = NO_OUTCOMES

    @property
    def etag(self) -> str:
        """Changes with every edit, never with an event or an outcome."""
        return etag_of(
            self.namespace, self.episode_id, self.create_time, self.update_time, self.revision
        )

    @property
    def approach(self) -> str:
        """The approach actually taken, else the one given at the start."""
        return visible(self.end.approach if self.end else "") or self.start.approach

    def ended_by(self, end: EpisodeEnd, event_count: int, now: int, path: str = "") -> Episode:
        """The episode after its end. Raises RequestInvalidError; ``path`` as in ``end.check``."""
        end_time = max(now, self.start_time) if end.end_time is None else end.end_time
        if end_time < self.start_time:
            raise invalid(
                f"{path}end_time",
                "end_time.order",
                "end_time must not be before the episode's start_time",
            )
        return replace(
            self,
            status=end.status,
            end=end,
            end_time=end_time,
            event_count=event_count,
            revision=self.revision + 1,
            update_time=max(now, self.update_time),
        )


@dataclass(frozen=True, slots=True)
class EpisodeEvent:
    """An event of an episode. ``sequence`` 0: assigned by the server.

    ``data`` is the deterministic serialization of a ``google.protobuf.Struct``: carried, never
    read here; None where the caller gave none, which is not the same as an empty one.
    ``event_time`` None is the time of recording.
    """

    sequence: int
    event_type: str
    agent_role: str = ""
    data: bytes | None = None
    event_time: int | None = None
    record_time: int = 0


def numbered(events: Sequence[EpisodeEvent], now: int) -> list[EpisodeEvent]:
    """The events of a whole episode, numbered from 1. Raises RequestInvalidError."""
    for number, event in enumerate(events, 1):
        if event.sequence not in (0, number):
            raise invalid(
                f"events[{number - 1}].sequence",
                "event.sequence.order",
                f"sequence must be 0 or {number}: events are numbered in order from 1",
            )
    return [
        replace(event, sequence=number, record_time=now) for number, event in enumerate(events, 1)
    ]


def named_by_end(start: EpisodeStart, end: EpisodeEnd) -> EpisodeStart:
    """The start of an episode that is recorded whole: without a task the summary is its task."""
    return start if visible(start.task) else replace(start, task=end.summary)


def search_text(start: EpisodeStart, end: EpisodeEnd | None) -> SearchText:
    """The text by which an episode is found: task and context, and the summary once it has ended.

    The summary has a vector of its own: in that of the task it would make tasks less alike.
    """
    summary = end.summary if end is not None and end.summary != start.task else ""
    return SearchText(joined(start.task, start.context), more=summary, solved=summary)
