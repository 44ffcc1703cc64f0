"""A failed episode as read for analysis: its error, and the step before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lot_grpc.domain.error_text.signature import normalised, read_error
from lot_grpc.domain.extraction.digest import ErrorSeen, Step, error_seen, says_error

Place = tuple[str, str]
"""Event type and tool of a step, "" for none."""

UNKNOWN = ErrorSeen()
"""Of a failure that tells nothing."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed episode. ``end_time`` in microseconds since 1970.

    ``signature`` is empty and ``error`` is ``UNKNOWN`` for one that tells nothing. ``after`` is the
    step after which it failed; None where no event says it.
    """

    episode_id: str
    end_time: int
    error: ErrorSeen
    signature: str
    after: Place | None = None
    tools: tuple[str, ...] = ()


def error_of(
    ended_by: ErrorSeen | None, steps: Sequence[Step], error_patterns: Sequence[str]
) -> ErrorSeen:
    """The error that made an episode fail.

    Its error, else that of its last event that tells one, else the last of its error patterns that
    is not blank; ``UNKNOWN`` without any.
    """
    errors = (
        ended_by,
        *(step.error for step in reversed(steps)),
        *(error_seen("", text) for text in reversed(error_patterns)),
    )
    return next((error for error in errors if error is not None), UNKNOWN)


def signature_or_none(error: ErrorSeen) -> str:
    """The signature of an error, else its line without varying parts.

    Empty for an error without a message.
    """
    if error == UNKNOWN:
        return ""
    read = read_error(error.type, error.message)
    return read.signature or normalised(read.line)


def failed_after(steps: Sequence[Step], error: ErrorSeen) -> Place | None:
    """The step after which an episode failed; ``steps`` are its last ones, in order.

    It is the one before the event that reports the error. A step that reports its own error, such
    as a tool call with its result, is the step itself. If no event reports the error, it is the
    last one that is not an error.
    """
    places = [at for at, step in enumerate(steps) if step.error == error]
    last = places[-1] if places else len(steps)
    if places and not says_error(steps[last].event_type):
        return _place(steps[last])
    for step in reversed(steps[:last]):
        if not says_error(step.event_type):
            return _place(step)
    return None


def tools_of(tools_used: Sequence[str], steps: Sequence[Step]) -> tuple[str, ...]:
    """The distinct tools of an episode."""
    return tuple(dict.fromkeys((*tools_used, *(step.tool for step in steps if step.tool))))


def _place(step: Step) -> Place:
    return step.event_type, step.tool
