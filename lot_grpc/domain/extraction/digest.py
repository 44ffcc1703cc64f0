"""The parts of an episode that learning reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.event_data import read_data
from lot_grpc.domain.text_form import visible

_TOOL_KEYS = ("tool", "tool_name")
_NOTE_KEY = "note"
_ARGS_KEYS = ("args", "arguments")
_ERROR_KEYS = ("error", "error_type", "error_message", "message")
_KEYS = frozenset((*_TOOL_KEYS, _NOTE_KEY, *_ERROR_KEYS))
_KEYS_WITH_ARGS = _KEYS.union(_ARGS_KEYS)

_ERROR_EVENT = re.compile(r"error|exception", re.IGNORECASE)
_LONGEST_NOTE = 1_024
_LONGEST_TOOL = 256
"""Characters and bytes."""


@dataclass(frozen=True, slots=True)
class ErrorSeen:
    """An error in an event."""

    type: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """An event as a step. ``tool``, ``note`` and ``args`` come from its data; empty: not given."""

    event_type: str
    tool: str = ""
    note: str = ""
    args: Mapping[str, Any] = field(default_factory=dict, hash=False, compare=False)
    error: ErrorSeen | None = None

    @property
    def name(self) -> str:
        """Its name in indicators: ``tool_call(pytest)``, or only the event type."""
        return f"{self.event_type}({self.tool})" if self.tool else self.event_type


@dataclass(frozen=True, slots=True)
class Digest:
    """An ended episode, as far as learning reads it.

    ``terms``: of task and context, each with a word to show for it. ``task_words``: the words of
    the task alone, by term. ``seconds`` it took; None if unknown. ``steps`` have no immediate
    repeats; ``None`` among them is a part that was not read.
    """

    namespace: str
    episode_id: str
    succeeded: bool
    task: str
    task_type: str = ""
    category: str = ""
    language: str = ""
    complexity: Complexity | None = None
    approach: str = ""
    context: str = ""
    seconds: float | None = None
    tools: tuple[str, ...] = ()
    success_factors: tuple[str, ...] = ()
    error_type: str = ""
    error_patterns: tuple[str, ...] = ()
    terms: Mapping[str, str] = field(default_factory=dict)
    task_words: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[Step | None, ...] = ()

    def runs(self) -> Iterator[list[Step]]:
        """The runs of consecutive steps."""
        run: list[Step] = []
        for step in (*self.steps, None):
            if step is not None:
                run.append(step)
            elif run:
                yield run
                run = []


def step_of(event_type: str, data: bytes, *, with_args: bool = False) -> Step:
    """An event as a step; ``args`` are read only with ``with_args``.

    Its tool is in the data under ``tool`` or ``tool_name``, its arguments under ``args`` or
    ``arguments``, a note under ``note``; an error is a text or ``{type, message}`` under ``error``,
    or is under ``error_type`` and ``error_message``; for an event whose type says that it is an
    error, such as ``tool_error``, also under ``message``.
    """
    if not data:
        return Step(event_type)
    fields = read_data(data, _KEYS_WITH_ARGS if with_args else _KEYS)
    args: Mapping[str, Any] = next(
        (fields[key] for key in _ARGS_KEYS if isinstance(fields.get(key), dict)), {}
    )
    return Step(
        event_type,
        tool=_tool(fields),
        note=_text(fields, _NOTE_KEY).replace("\0", "")[:_LONGEST_NOTE],
        args=args,
        error=_error(event_type, fields),
    )


def without_repeats(steps: Sequence[Step | None]) -> tuple[Step | None, ...]:
    """The first of each run of steps of one name."""
    kept: list[Step | None] = []
    for step in steps:
        before = kept[-1] if kept else None
        if step is None or before is None or step.name != before.name:
            kept.append(step)
    return tuple(kept)


def error_seen(kind: str, message: str) -> ErrorSeen | None:
    """An error of this type and message; None if both are blank."""
    return ErrorSeen(kind, message) if visible(kind + message) else None


def says_error(event_type: str) -> bool:
    """Whether an event's type says that it is an error, such as ``tool_error``."""
    return _ERROR_EVENT.search(event_type) is not None


def _error(event_type: str, fields: Mapping[str, Any]) -> ErrorSeen | None:
    error = fields.get("error")
    kind, message = _text(fields, "error_type"), _text(fields, "error_message")
    if says_error(event_type):
        message = message or _text(fields, "message")
    if isinstance(error, str):
        message = message or error
    elif isinstance(error, dict):
        kind = kind or _text(error, "type")
        message = message or _text(error, "message")
    return error_seen(kind.replace("\0", ""), message.replace("\0", ""))


def _tool(fields: Mapping[str, Any]) -> str:
    """The tool's name; empty for a text that is not valid as a pattern's tool."""
    for key in _TOOL_KEYS:
        name = _text(fields, key)
        if name and len(name.encode()) <= _LONGEST_TOOL and "\0" not in name:
            return name
    return ""


def _text(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""
