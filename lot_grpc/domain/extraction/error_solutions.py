"""An error that an episode met, as an error solution."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from lot_grpc.domain.episode import Episode
from lot_grpc.domain.error_solution import ErrorSolutionContent
from lot_grpc.domain.extraction.digest import ErrorSeen, Step, error_seen
from lot_grpc.domain.extraction.errors_met import ErrorMet
from lot_grpc.domain.extraction.single import language_of
from lot_grpc.domain.json_values import json_text
from lot_grpc.domain.origin import BY_SERVER
from lot_grpc.domain.text_form import visible

EXTRACTED: Final = "extracted"
"""The tag of error solutions extracted from an episode."""

LONGEST_TYPE: Final = 1_024
LONGEST_MESSAGE: Final = 16_384
LONGEST_TASK: Final = 4_096
LONGEST_NOTE: Final = 512
LONGEST_ARGS: Final = 512
LONGEST_ERROR: Final = 256
"""Bytes. Twenty errors of fifty steps are returned at once, so texts are shorter than the contract
allows; a longer one is cut, marked by an ellipsis."""

_ELLIPSIS = "…"
_HEAD = 4_096
"""Bytes of a long message that are kept from its beginning; a stack trace may name the error there
or at its end."""


def error_solution_of(episode: Episode, met: ErrorMet) -> ErrorSolutionContent:
    """The error solution of an error that an episode met.

    If the error has no message, its type is used instead.
    """
    error, category = met.error, episode.start.category
    return ErrorSolutionContent(
        error_message=_message(error),
        error_type=_cut(error.type, LONGEST_TYPE),
        context=_context(episode.start.task, met.failed_step),
        language=language_of(episode),
        steps=tuple(_sentence(step) for step in met.steps),
        categories=(category,) if category else (),
        worked=met.worked,
        tags=(EXTRACTED,),
        source_episode_ids=(episode.episode_id,),
        origin=BY_SERVER,
    )


def ended_by(episode: Episode) -> ErrorSeen | None:
    """The error that ended a failed episode, if the caller gave it."""
    error = episode.end.error if episode.end else None
    return error_seen(error.type, error.message) if error is not None else None


def _message(error: ErrorSeen) -> str:
    """The message as raised; of a long one, the beginning and the end."""
    text = visible(error.message) or error.type
    raw = text.encode()
    if len(raw) <= LONGEST_MESSAGE:
        return text
    between = f"\n{_ELLIPSIS}\n"
    tail = LONGEST_MESSAGE - _HEAD - len(between.encode())
    head, end = raw[:_HEAD].decode(errors="ignore"), raw[-tail:].decode(errors="ignore")
    return f"{head}{between}{end}"


def _context(task: str, failed: Step | None) -> str:
    text = f"Task: {_cut(task, LONGEST_TASK)}"
    return text if failed is None else f"{text}\nFailed at: {_call(failed)}"


def _sentence(step: Step) -> str:
    """``tool_call(pytest): note {args}``, and the error that the step met on its way."""
    if step.error is None:
        return _call(step)
    error = ": ".join(part for part in (step.error.type, step.error.message) if part)
    return f"{_call(step)} (failed with {_line(error, LONGEST_ERROR)})"


def _call(step: Step) -> str:
    """A step in one line."""
    args = _line(_json(step.args, LONGEST_ARGS), LONGEST_ARGS) if step.args else ""
    details = " ".join(part for part in (_line(step.note, LONGEST_NOTE), args) if part)
    return f"{step.name}: {details}" if details else step.name


def _json(value: Any, size: int) -> str:
    """The beginning of a value as JSON, no less than ``size`` bytes of it."""
    made, room = [], size
    for chunk in _chunks(value):
        made.append(chunk)
        room -= len(chunk)
        if room < 0:
            break
    return "".join(made)


def _chunks(value: Any) -> Iterator[str]:
    """A value as JSON, piece by piece."""
    if isinstance(value, Mapping):
        yield "{"
        for at, (key, inner) in enumerate(value.items()):
            yield f"{', ' if at else ''}{json.dumps(key, ensure_ascii=False)}: "
            yield from _chunks(inner)
        yield "}"
    elif isinstance(value, list):
        yield "["
        for at, inner in enumerate(value):
            yield ", " if at else ""
            yield from _chunks(inner)
        yield "]"
    else:
        yield json_text(value)


def _line(text: str, size: int) -> str:
    """A text in one line, at most ``size`` bytes of it."""
    read = text[: 4 * size]  # the rest of a long text need not be read
    line = " ".join(read.split())
    return _cut(line if read == text else f"{line}{_ELLIPSIS}", size)


def _cut(text: str, size: int) -> str:
    """The beginning of a text, at most ``size`` bytes with its ellipsis."""
    raw = text.encode()
    if len(raw) <= size:
        return text
    return f"{raw[: size - len(_ELLIPSIS.encode())].decode(errors='ignore')}{_ELLIPSIS}"
