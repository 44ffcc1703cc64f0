"""``lot-grpc replay``: shows the events of an episode in order."""

from __future__ import annotations

import re
from collections.abc import Iterable

import grpc
import typer
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console
from rich.text import Text
from typer import Argument, Option

from lot_grpc.cli.calls import CALL_SECONDS, StreamingServer
from lot_grpc.cli.options import JsonLines, Namespace
from lot_grpc.cli.tables import print_line, screen
from lot_grpc.cli.texts import clean, data_text, one_line
from lot_grpc.cli.times import local_time, offset, seconds_of
from lot_grpc.cli.words import STATUSES, json_line
from lot_grpc.pb.lot.v1 import episode_pb2
from lot_grpc.pb.lot.v1 import episode_service_pb2 as pb
from lot_grpc.pb.lot.v1.episode_pb2 import Episode, EpisodeEvent
from lot_grpc.pb.lot.v1.episode_service_pb2_grpc import EpisodeServiceStub

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
"""Styles by the beginning of a word in the event's type."""

_ERROR_KEYS = ("error", "error_type", "error_message")
"""Keys of event data that mean an error, the same as in learning."""

_STATUS_STYLES: dict[int, str] = {
    episode_pb2.EPISODE_STATUS_RUNNING: "cyan",
    episode_pb2.EPISODE_STATUS_SUCCEEDED: "green",
    episode_pb2.EPISODE_STATUS_FAILED: "red",
    episode_pb2.EPISODE_STATUS_ABANDONED: "yellow",
}


def replay(
    *,
    episode_id: str = Argument(..., metavar="ID", help="The episode."),
    speed: float = Option(
        0.0,
        "--speed",
        min=0,
        max=1e6,
        metavar="X",
        help="0: at once, 1: original speed, 2: twice that.",
    ),
    after: int = Option(
        0, "--after", min=0, metavar="N", help="Start after event number N (not a time)."
    ),
    follow: bool = Option(False, "--follow", "-f", help="Follow a running episode until it ends."),
    full: bool = Option(False, "--full", help="Show event data in full."),
    namespace: Namespace = "",
    server: StreamingServer,
    as_json: JsonLines = False,
) -> None:
    """Show the events of an episode in order, as they arrive. Ctrl-C stops.

    lot-grpc replay e-17 --full

    lot-grpc replay e-17 --speed 10 --after 40

    lot-grpc replay e-17 --follow
    """
    if not episode_id:
        raise typer.BadParameter("ID must not be empty")
    request = pb.ReplayEpisodeRequest(
        namespace=namespace, episode_id=episode_id, speed=speed, after_sequence=after, follow=follow
    )
    with server.calling():
        if as_json:
            for event in _events(server, request):
                typer.echo(json_line(event))
            return
        console = screen()
        episode = _episode(server, request)
        _print_title(console, episode)
        for event in _events(server, request):
            print_event(console, event, episode.start_time, full=full)
        if follow and episode.status == episode_pb2.EPISODE_STATUS_RUNNING:
            _print_title(console, _episode(server, request))


def _episode(server: StreamingServer, replayed: pb.ReplayEpisodeRequest) -> Episode:
    request = pb.GetEpisodeRequest(namespace=replayed.namespace, episode_id=replayed.episode_id)
    with server.stub(EpisodeServiceStub) as stub:
        return stub.GetEpisode(request, timeout=CALL_SECONDS).episode


def _print_title(console: Console, episode: Episode) -> None:
    status = status_text(episode.status)
    print_line(
        console,
        (one_line(episode.episode_id), "bold"),
        ("  ", ""),
        (status.plain, str(status.style)),
        (f"  {one_line(episode.task)}", ""),
    )


def _events(server: StreamingServer, request: pb.ReplayEpisodeRequest) -> Iterable[EpisodeEvent]:
    """Each event once, even if the connection is lost in between."""

    def opened(channel: grpc.Channel) -> Iterable[pb.ReplayEpisodeResponse]:
        return EpisodeServiceStub(channel).ReplayEpisode(request)

    for batch in server.resumed(opened, lambda: f"after event {request.after_sequence}"):
        for event in batch.events:
            yield event
            request.after_sequence = event.sequence


def status_text(status: int) -> Text:
    """The status as a word in its colour."""
    return Text(STATUSES.word(status), style=_STATUS_STYLES.get(status, ""))


def print_event(console: Console, event: EpisodeEvent, start: Timestamp, *, full: bool) -> None:
    """Print a block: time, number, type and role; then the data, on one line or in full.

    Args:
        console: Where to print.
        event: The event.
        start: The time to which its own is relative; if unset, local time is shown.
        full: Show the data in full, on as many lines as needed.
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
        # More letters than columns, since some have no width.
        data = one_line(data_text(event.data), 4 * console.width)
        print_line(console, (data, ""), indent=_INDENT)


def _when(event: EpisodeEvent, start: Timestamp) -> str:
    if not event.HasField("event_time"):
        return ""
    if not start.ByteSize():
        return local_time(event.event_time)
    return offset(seconds_of(event.event_time) - seconds_of(start))


def _style(event: EpisodeEvent) -> str:
    if _ERROR.search(event.event_type) or _has_error(event.data):
        return "bold red"
    return next((style for kind, style in _STYLES if kind.search(event.event_type)), "bold")


def _has_error(data: Struct) -> bool:
    values = (data.fields[key] for key in _ERROR_KEYS if key in data.fields)
    return any(one.string_value or one.HasField("struct_value") for one in values)
