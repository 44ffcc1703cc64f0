"""Spans: what a call spends its time on, if it is traced.

Outside a traced call, ``span`` and ``annotate`` cost one look at a context variable. Spans are
plain objects; whatever publishes them receives each when it has ended.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

Value: TypeAlias = str | bool | int | float | Sequence[str]


class SpanKind(Enum):
    """The kinds of OpenTelemetry that occur here."""

    INTERNAL = "internal"
    SERVER = "server"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class RemoteParent:
    """The caller's span, as its ``traceparent`` and ``tracestate`` name it."""

    trace_id: int
    span_id: int
    sampled: bool
    state: str = ""


@dataclass(slots=True)
class Trace:
    """What the spans of one call share. ``contents``: attributes may hold the text of a query."""

    id: int
    parent: RemoteParent | None
    contents: bool
    end: Callable[[Span], None]
    children: int = 0


class Span:
    """A span. Within its block, spans and annotations of the same task and its children join it.

    ``begin_time`` and ``end_time`` are Unix times in nanoseconds. ``error`` is the
    ``error.type`` of one that failed.
    """

    __slots__ = (
        "_outer",
        "attributes",
        "begin_time",
        "end_time",
        "error",
        "id",
        "kind",
        "name",
        "parent",
        "root",
        "trace",
    )

    def __init__(
        self,
        name: str,
        trace: Trace,
        parent: Span | None,
        attributes: Mapping[str, Value],
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> None:
        self.name = name
        self.trace = trace
        self.parent = parent
        self.root: Span = self if parent is None else parent.root
        self.attributes = dict(attributes)
        self.kind = kind
        self.id = random.getrandbits(64) or 1
        self.begin_time = time.time_ns()
        self.end_time = 0
        self.error = ""

    def __enter__(self) -> Self:
        self._outer = _current.get()
        _current.set(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Not with a token: a generator may be closed in another context than it began in.
        _current.set(self._outer)
        if kind is not None and self.parent is not None:  # that of a call has a status instead
            self.error = kind.__name__
        self.end_time = time.time_ns()
        self.trace.end(self)


_current: ContextVar[Span | None] = ContextVar("lot_span", default=None)

_UNTRACED: Final = nullcontext()

MAX_CHILDREN: Final = 500
"""How many spans a call has below its own: a stream may be open for days."""


def span(
    name: str, attributes: Mapping[str, Value] = {}, kind: SpanKind = SpanKind.INTERNAL
) -> Span | nullcontext[None]:
    """A block whose time is a span of the current call. Attributes never hold contents."""
    parent = _current.get()
    # Tasks outlive the call in which they began, such as the one that reads the change feed.
    if parent is None or parent.root.end_time or parent.trace.children >= MAX_CHILDREN:
        return _UNTRACED
    parent.trace.children += 1
    return Span(name, parent.trace, parent, attributes, kind)


_CONTENT_CHARACTERS: Final = 4096


def annotate(key: str, value: Value) -> None:
    """Add an attribute to the span of the current call. Never contents."""
    current = _current.get()
    if current is not None:
        current.root.attributes[key] = value


def annotate_content(key: str, value: str) -> None:
    """Add text of a caller to the span of the current call, if the operator allows contents."""
    current = _current.get()
    if current is not None and current.trace.contents:
        current.root.attributes[key] = value[:_CONTENT_CHARACTERS]


class Tracer:
    """Begins the spans of calls.

    Args:
        end: Receives each span that has ended. It must neither block nor raise.
        ratio: Share of the calls that are traced, unless the caller's span says.
        contents: Whether spans may hold the texts of queries.
    """

    def __init__(self, end: Callable[[Span], None], ratio: float, *, contents: bool) -> None:
        self._end = end
        self._bound = round(ratio * 2**64)
        self._contents = contents

    def begin(
        self, name: str, parent: RemoteParent | None, attributes: Mapping[str, Value]
    ) -> Span | None:
        """The span of a call; None if it is not sampled: its caller decides, else the ratio."""
        if parent is not None:
            trace_id, sampled = parent.trace_id, parent.sampled
        else:
            trace_id = random.getrandbits(128) or 1
            sampled = trace_id % 2**64 < self._bound
        if not sampled:
            return None
        trace = Trace(trace_id, parent, self._contents, self._end)
        return Span(name, trace, None, attributes, SpanKind.SERVER)


_TRACEPARENT: Final = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
_LONGEST_STATE: Final = 512


def remote_parent(metadata: Iterable[tuple[str, Any]]) -> RemoteParent | None:
    """The span that the metadata of a call names, by W3C Trace Context; None without a valid one.

    A caller's error is not ours to report: the call then begins a trace of its own.
    """
    metadata = list(metadata)
    parents = [value for key, value in metadata if key == "traceparent"]
    if len(parents) != 1 or not isinstance(parents[0], str):
        return None
    matched = _TRACEPARENT.fullmatch(parents[0].strip())
    if matched is None or (matched[1] == "00" and matched[5]):
        return None
    states = [value for key, value in metadata if key == "tracestate" and isinstance(value, str)]
    state = ",".join(states)
    return RemoteParent(
        int(matched[2], 16),
        int(matched[3], 16),
        bool(int(matched[4], 16) & 1),
        state if len(state) <= _LONGEST_STATE else "",
    )
