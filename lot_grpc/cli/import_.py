"""``lot-grpc import``: loads an export file into a running server."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import grpc
import typer
from typer import Argument, Option

from lot_grpc.cli.calls import StreamingServer
from lot_grpc.cli.failures import print_error
from lot_grpc.cli.options import Json, Namespace
from lot_grpc.cli.progress import progress_bars
from lot_grpc.cli.transfer_file import STDIO, ExportFileError, print_summary, read_messages
from lot_grpc.cli.words import CONFLICTS
from lot_grpc.pb.lot.v1 import transfer_pb2 as pb
from lot_grpc.pb.lot.v1.admin_service_pb2_grpc import AdminServiceStub

_WINDOW = 8
"""Unacknowledged messages in flight: about 2 MB."""

_HINTS = {
    grpc.StatusCode.ALREADY_EXISTS: "--conflict-policy skip keeps the stored records, "
    "--conflict-policy overwrite replaces them",
    grpc.StatusCode.FAILED_PRECONDITION: "nothing more was stored; see docs/transfer.md",
}


def import_(
    *,
    file: str = Argument(..., metavar="FILE", help="What `export` wrote; - is standard input."),
    namespace: Namespace = "",
    keep_namespaces: bool = Option(
        False, "--keep-namespaces", help="Import into the original namespaces."
    ),
    conflict_policy: pb.ImportConflictPolicy.ValueType = CONFLICTS.option(
        "fail",
        "--conflict-policy",
        help="If an id exists with other content: fail, skip or overwrite.",
    ),
    dry_run: bool = Option(False, "--dry-run", help="Check and count only; store nothing."),
    server: StreamingServer,
    as_json: Json = False,
) -> bool:
    """Import an export. Identical records are left alone, so an interrupted import can be rerun.

    lot-grpc import backup.lot

    lot-grpc import all.lot --keep-namespaces --conflict-policy skip
    """
    if namespace and keep_namespaces:
        raise typer.BadParameter("--namespace and --keep-namespaces are mutually exclusive")
    request = pb.ImportRequest(
        namespace=namespace,
        keep_namespaces=keep_namespaces,
        conflict_policy=conflict_policy,
        dry_run=dry_run,
    )
    started = time.monotonic()
    imported = pb.ImportResponse()
    complete = False
    try:
        with ExitStack() as stack, server.calling(_HINTS):
            stream, size = _open(file, stack)
            for imported in _import(server, request, file, stream, size):  # noqa: B007
                pass
        complete = True
    except ExportFileError as error:
        print_error(str(error), error.hint)
    except OSError as error:
        print_error(f"{file}: {error.strerror or error}")
    except typer.Exit:  # a call failed, and the error is printed
        pass
    head = {"address": server.target, "file": file, "dry_run": dry_run, "complete": complete}
    _print(head, imported, time.monotonic() - started, as_json=as_json)
    return complete


def _open(name: str, stack: ExitStack) -> tuple[BinaryIO, int]:
    """The file and its size, 0 for standard input."""
    if name == STDIO:
        return sys.stdin.buffer, 0
    path = Path(name)
    return stack.enter_context(path.open("rb")), path.stat().st_size


class _Sender:
    """Feeds the messages of a file to successive streams, and resends unacknowledged ones."""

    def __init__(self, messages: Iterator[pb.ExportResponse], first: pb.ImportRequest) -> None:
        self._messages = messages
        self._first = first
        self._unacknowledged: deque[pb.ImportRequest] = deque()
        self._changed = threading.Condition()
        self._stream = 0
        self._all_read = False
        self.broken: ExportFileError | None = None
        """Why the file could not be read to the end."""

    def requests(self) -> Iterator[pb.ImportRequest]:
        """The requests of a new stream; those of the previous one end."""
        with self._changed:
            self._stream += 1
            mine = self._stream
            self._changed.notify_all()
            again = list(self._unacknowledged)
        return self._requests(mine, again)

    def _requests(self, mine: int, again: list[pb.ImportRequest]) -> Iterator[pb.ImportRequest]:
        yield self._first
        yield from again
        while True:
            with self._changed:
                while len(self._unacknowledged) >= _WINDOW and self._stream == mine:
                    self._changed.wait()
                request = self._next() if self._stream == mine else None
                if request is None:
                    return
                self._unacknowledged.append(request)
            yield request

    def _next(self) -> pb.ImportRequest | None:
        if self._all_read:
            return None
        try:
            for message in self._messages:
                if message.records:
                    return pb.ImportRequest(records=message.records, cursor=message.cursor)
        except ExportFileError as error:
            self.broken = error
        self._all_read = True
        return None

    def acknowledge(self) -> None:
        """Drop the oldest message, which is stored."""
        with self._changed:
            self._unacknowledged.popleft()
            self._changed.notify_all()

    def close(self) -> None:
        """Stop a finished stream from reading more."""
        with self._changed:
            self._stream += 1
            self._changed.notify_all()


def _import(
    server: StreamingServer, request: pb.ImportRequest, name: str, file: BinaryIO, size: int
) -> Iterator[pb.ImportResponse]:
    """The progress after each message. Raises at the end of an incomplete file."""
    messages = read_messages(file, name)
    first = next(messages)
    if not first.HasField("header"):
        raise ExportFileError(f"{name} does not begin with a header", "export again")
    request.header.CopyFrom(first.header)
    sender = _Sender(messages, request)
    before = imported = pb.ImportResponse()
    is_first = False

    def opened(channel: grpc.Channel) -> Iterable[pb.ImportResponse]:
        nonlocal before, is_first
        before, is_first = imported, True
        return AdminServiceStub(channel).Import(sender.requests())

    try:
        with progress_bars() as bars:
            doing = "checking" if request.dry_run else "importing"
            bar = bars.add_task(doing, total=size or None, remark="")
            for ack in server.resumed(opened, lambda: "after what is stored"):
                if not is_first:  # the first acknowledges the header
                    sender.acknowledge()
                is_first = False
                imported = _sum(before, ack)
                bars.update(bar, completed=file.tell() if size else 0, remark=_tally(imported))
                yield imported
    finally:
        sender.close()
    if sender.broken is not None:
        raise sender.broken


def _sum(before: pb.ImportResponse, ack: pb.ImportResponse) -> pb.ImportResponse:
    """The sum of what earlier streams have imported, and this one so far."""
    return pb.ImportResponse(
        imported_count=before.imported_count + ack.imported_count,
        unchanged_count=before.unchanged_count + ack.unchanged_count,
        skipped_count=before.skipped_count + ack.skipped_count,
        imported_counts={
            name: before.imported_counts.get(name, 0) + ack.imported_counts.get(name, 0)
            for name in {*before.imported_counts, *ack.imported_counts}
        },
    )


def _tally(imported: pb.ImportResponse) -> str:
    return (
        f"{imported.imported_count:,} imported, {imported.unchanged_count:,} unchanged, "
        f"{imported.skipped_count:,} skipped"
    )


def _print(
    head: dict[str, object], imported: pb.ImportResponse, seconds: float, *, as_json: bool
) -> None:
    numbers = {
        name: getattr(imported, name)
        for name in ("imported_count", "unchanged_count", "skipped_count")
    }
    stored = "; nothing was stored" if head["dry_run"] else ""
    until = "" if head["complete"] else " before it stopped"
    internal = imported.imported_count > sum(imported.imported_counts.values())
    records = "records, including internal ones" if internal else "records"
    line = f"{records}{until}: {_tally(imported)}{stored}, {seconds:.1f} s"
    print_summary(
        head | numbers,
        dict(imported.imported_counts),
        seconds,
        line,
        as_json=as_json,
        name="imported_counts",
    )
