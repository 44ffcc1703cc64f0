"""``lot-grpc watch``: changes in the memory of a running server, one line each."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import grpc
import typer
from rich.console import Console
from typer import Option

from lot_grpc.cli.calls import StreamingServer
from lot_grpc.cli.failures import print_error, print_note
from lot_grpc.cli.options import OWN_NAMESPACE, JsonLines, Namespace, new_file
from lot_grpc.cli.tables import print_line, screen
from lot_grpc.cli.texts import clean, data_text, one_line
from lot_grpc.cli.times import local_time
from lot_grpc.cli.words import CHANGE_TYPES, RESOURCE_KINDS, STATUSES, json_line
from lot_grpc.domain.text_form import visible
from lot_grpc.pb.lot.v1 import change_pb2 as pb
from lot_grpc.pb.lot.v1 import resource_kind_pb2
from lot_grpc.pb.lot.v1.memory_service_pb2_grpc import MemoryServiceStub

_HINTS = {
    grpc.StatusCode.OUT_OF_RANGE: "--from-start prints all existing records and continues from "
    "there; first remove a --cursor-file that holds the old cursor"
}
_MODE = 0o600
"""Mode of the cursor file: a cursor reveals something about the store."""


class _CursorError(Exception):
    """The cursor file cannot be written."""


def watch(
    *,
    resource_kind: list[resource_kind_pb2.ResourceKind.ValueType] | None = RESOURCE_KINDS.option(
        None,
        "--kind",
        help="memory, pattern, episode, error_solution, preference, learning_event, decision or "
        "retrieval. Retrievals are watched only if named. Repeatable.",
    ),
    change_type: list[pb.ChangeType.ValueType] | None = CHANGE_TYPES.option(
        None,
        "--type",
        help="stored, updated, deleted, cleared, pattern.learned, pattern.matched or "
        "context.suggested. Repeatable.",
    ),
    from_start: bool = Option(False, "--from-start", help="Print all existing records first."),
    after: str = Option(
        "",
        "--after",
        metavar="CURSOR",
        help="Resume after this cursor, as printed by --json (not a time).",
    ),
    cursor_file: Path | None = Option(
        None,
        "--cursor-file",
        metavar="FILE",
        callback=new_file,
        help="Save the last cursor in FILE; the next watch resumes after it.",
    ),
    namespace: Namespace = "",
    server: StreamingServer = StreamingServer(timeout=0.0),
    as_json: JsonLines = False,
) -> bool:
    """Print a line for each change: stored, updated, deleted, learned. Ctrl-C stops.

    lot-grpc watch

    lot-grpc watch --kind pattern --kind episode --type updated

    lot-grpc watch --json --from-start --cursor-file seen.cursor
    """
    if after and (from_start or cursor_file):
        raise typer.BadParameter("--after cannot be combined with --from-start or --cursor-file")
    request = pb.WatchChangesRequest(
        namespace=namespace,
        resource_kinds=resource_kind,
        types=change_type,
        from_start=from_start,
        after_cursor=after or (_read_cursor(cursor_file) if cursor_file else ""),
    )
    try:
        with server.calling(_HINTS):
            _print_changes(server, request, cursor_file, as_json=as_json)
    except _CursorError as error:
        print_error(str(error))
    else:
        print_error(f"{server.target}: the server ended the stream", "watch again to continue")
    return False


def _print_changes(
    server: StreamingServer,
    request: pb.WatchChangesRequest,
    cursor_file: Path | None,
    *,
    as_json: bool,
) -> None:
    """Print the changes; ``after_cursor`` of the request is the last one."""
    console = screen()
    started = False
    saved = request.after_cursor

    def opened(channel: grpc.Channel) -> Iterable[pb.WatchChangesResponse]:
        if request.after_cursor:
            request.from_start = False
        return MemoryServiceStub(channel).WatchChanges(request)

    def save() -> None:
        nonlocal saved
        if cursor_file is not None and request.after_cursor != saved:
            _write_cursor(cursor_file, request.after_cursor)
            saved = request.after_cursor

    try:
        for message in server.resumed(opened, lambda: "from the last cursor"):
            if not started:
                started = True
                name = clean(request.namespace) or OWN_NAMESPACE
                print_note(f"watching {name} on {server.target}; Ctrl-C stops")
            for change in message.change_events:
                if as_json:
                    typer.echo(json_line(change))
                else:
                    print_change(console, change)
                request.after_cursor = change.cursor or request.after_cursor
            request.after_cursor = message.cursor or request.after_cursor
            save()
    finally:
        save()


def _read_cursor(path: Path) -> str:
    """The saved cursor; empty if there is no file.

    Raises:
        BadParameter: The file cannot be read, or does not contain a cursor.
    """
    try:
        cursor = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"--cursor-file {path}: {error}") from None
    if not cursor or len(cursor.split()) > 1:
        raise typer.BadParameter(f"--cursor-file {path} has no cursor; remove it to start over")
    return cursor


def _write_cursor(path: Path, cursor: str) -> None:
    """Save the cursor atomically; a lost write repeats some changes.

    Raises:
        _CursorError: It cannot be written; the file is unchanged.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _MODE), "w") as file:
            file.write(f"{cursor}\n")
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise _CursorError(f"--cursor-file {path}: {error}") from error


_STYLES = {
    pb.CHANGE_TYPE_STORED: "green",
    pb.CHANGE_TYPE_UPDATED: "yellow",
    pb.CHANGE_TYPE_DELETED: "red",
    pb.CHANGE_TYPE_CLEARED: "bold red",
    pb.CHANGE_TYPE_PATTERN_LEARNED: "magenta",
    pb.CHANGE_TYPE_PATTERN_MATCHED: "cyan",
    pb.CHANGE_TYPE_CONTEXT_SUGGESTED: "cyan",
}


def print_change(console: Console, change: pb.ChangeEvent) -> None:
    """Print time, type, kind, id and summary on one line, cut to the width."""
    summary = one_line(summary_of(change), 4 * console.width)
    if change.resource_kind:
        kind = RESOURCE_KINDS.word(change.resource_kind)
    else:  # a clear may be of all kinds; a context has none
        kind = "all" if change.type == pb.CHANGE_TYPE_CLEARED else ""
    print_line(
        console,
        (local_time(change.change_time, "%H:%M:%S"), "dim"),
        (f"  {CHANGE_TYPES.word(change.type)}", _STYLES.get(change.type, "")),
        (f"  {kind}" if kind else "", ""),
        (f"  {one_line(change.id)}" if change.id else "", "bold"),
        (f"  {summary}" if summary else "", ""),
    )


def summary_of(change: pb.ChangeEvent) -> str:
    """A summary of the payload; empty without one. Not cleaned."""
    match change.WhichOneof("payload"):
        case "memory":
            return visible(change.memory.title) or change.memory.content
        case "pattern":
            return visible(change.pattern.title) or change.pattern.task
        case "episode":
            return f"{STATUSES.word(change.episode.status)}: {change.episode.task}"
        case "error_solution":
            solution = change.error_solution
            error = ": ".join(filter(None, (solution.error_type, solution.error_message)))
            return f"{error} → {solution.resolution}" if solution.resolution else error
        case "preference":
            return data_text(change.preference.value)
        case "session":
            return f"up to message {change.session.last_sequence}"
        case "learning_event":
            event = change.learning_event
            return ": ".join(filter(None, (event.event_type, visible(event.text) or event.task)))
        case "decision":
            return f"{change.decision.chosen_option}: {change.decision.context}"
        case "retrieval":
            return change.retrieval.query
        case "pattern_match":
            return f"{change.pattern_match.similarity:.2f} for {change.pattern_match.query}"
        case "context_suggestion":
            return change.context_suggestion.task
    return ""
