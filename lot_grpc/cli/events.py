"""How one event of an episode is shown."""

from __future__ import annotations

import re

from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console
from rich.text import Text

from lot_grpc.cli.tables import print_line
from lot_grpc.cli.texts import clean, data_text, one_line
from lot_grpc.cli.times import local_time, offset, seconds_of
from lot_grpc.pb.lot.v1 import episode_pb2 as pb

_INDENT = 4
_ERROR = re.compile(r"error|fail|exception|crash|timeout", re.IGNORECASE)
_STYLES = tuple(
    (re.compile(rf"(?:^|[^a-z])(?:{words})", re.IGNORECASE), style)
    for words, style in (
        ("success|succeed|complete|finish|done|pass|solve", "bold green"),
        ("tool|action|command|call|exec", "bold cyan"),
        ("plan|thought|think|reason|decision|decide", "bold magenta"),
        ("message|note|log|observ|result", "bold blue"),
    )
)
"""By how a word of the event's type begins."""

_ERROR_KEYS = ("error", "error_type", "error_message")
"""Keys of an event's data that mean an error, as learning reads them."""


def print_event(console: Console, event: pb.EpisodeEvent, start: Timestamp, *, full: bool) -> None:
    """A block: when, number, type and by whom; then the data on one line, or all of it.

    Args:
        console: Where to print.
        event: The event.
        start: The time that its own is relative to; a local time where that is not known.
        full: Show the data in full, on as many lines as it takes.
    """
    parts = [
        (f"{_when(event, start):>12}", "dim"),
        (f"  #{event.sequence}  ", "dim"),
        (one_line(event.event_type), _style(event)),
    ]
    if event.agent_role:
        parts.append((f"  {one_line(event.agent_role)}", "italic"))
    print_line(console, *parts)
    if not event.data.fields:
        return
    if full:
        for line in data_text(event.data, indent=2).splitlines():
            console.print(Text(" " * _INDENT + clean(line)))
    else:
        # More letters than columns, as some take no room.
        data = one_line(data_text(event.data), 4 * console.width)
        print_line(console, (data, ""), indent=_INDENT)


def _when(event: pb.EpisodeEvent, start: Timestamp) -> str:
    if not event.HasField("event_time"):
        return ""
    if not start.ByteSize():
        return local_time(event.event_time)
    return offset(seconds_of(event.event_time) - seconds_of(start))


def _style(event: pb.EpisodeEvent) -> str:
    if _ERROR.search(event.event_type) or _has_error(event.data):
        return "bold red"
    return next((style for kind, style in _STYLES if kind.search(event.event_type)), "bold")


def _has_error(data: Struct) -> bool:
    values = (data.fields[key] for key in _ERROR_KEYS if key in data.fields)
    return any(one.string_value or one.HasField("struct_value") for one in values)
