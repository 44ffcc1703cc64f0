"""``lot-grpc import``: a file of an export into a running server."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import grpc
import typer

from lot_grpc.cli.calls import going_on, target_of, tell_failure
from lot_grpc.cli.failures import tell
from lot_grpc.cli.transfer_bar import TransferBar
from lot_grpc.cli.transfer_file import ExportFileError, read_messages
from lot_grpc.pb.lot.v1 import admin_service_pb2_grpc as pb_grpc
from lot_grpc.pb.lot.v1 import transfer_pb2 as pb

_STDIN = "-"
_WINDOW = 8
"""Messages on their way that are not acknowledged: about 2 MB."""

_CONFLICTS = {
    "fail": pb.IMPORT_CONFLICT_FAIL,
    "skip": pb.IMPORT_CONFLICT_SKIP,
    "overwrite": pb.IMPORT_CONFLICT_OVERWRITE,
}
_HINTS = {
    grpc.StatusCode.ALREADY_EXISTS: "--conflict skip keeps the stored ones, --conflict overwrite "
    "replaces them",
    grpc.StatusCode.FAILED_PRECONDITION: "nothing more was stored; see docs/transfer.md",
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to import, where, and how; ``file`` ``-`` is standard input."""

    file: str
    namespace: str
    keep_namespaces: bool
    conflict: str
    dry_run: bool


@dataclass
class _Tally:
    """What came of the records so far."""

    imported: int = 0
    unchanged: int = 0
    skipped: int = 0
    counts: dict[str, int] = field(default_factory=dict)

    def plus(self, ack: pb.ImportResponse) -> _Tally:
        """With what a stream has told last."""
        names = {*self.counts, *ack.counts}
        return _Tally(
            self.imported + ack.imported_count,
            self.unchanged + ack.unchanged_count,
            self.skipped + ack.skipped_count,
            {name: self.counts.get(name, 0) + ack.counts.get(name, 0) for name in names},
        )

    def line(self) -> str:
        return (
            f"{self.imported:,} imported, {self.unchanged:,} there already, "
            f"{self.skipped:,} skipped"
        )


class _Sender:
    """Gives the messages of a file to one stream after another, those not acknowledged again."""

    def __init__(self, messages: Iterator[pb.ExportResponse], opening: pb.ImportRequest) -> None:
        self._messages = messages
        self._opening = opening
        self._unacknowledged: deque[pb.ImportRequest] = deque()
        self._changed = threading.Condition()
        self._stream = 0
        self._all_read = False
        self.broken: ExportFileError | None = None
        """Why the file could not be read to its end."""

    def requests(self) -> Iterator[pb.ImportRequest]:
        """The requests of a new stream; those of the one before end."""
        with self._changed:
            self._stream += 1
            mine = self._stream
            self._changed.notify_all()
            again = list(self._unacknowledged)
        return self._requests(mine, again)

    def _requests(self, mine: int, again: list[pb.ImportRequest]) -> Iterator[pb.ImportRequest]:
        yield self._opening
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

    def acknowledged(self) -> None:
        """The oldest message is stored."""
        with self._changed:
            self._unacknowledged.popleft()
            self._changed.notify_all()

    def close(self) -> None:
        """Let a stream that is over read no more."""
        with self._changed:
            self._stream += 1
            self._changed.notify_all()


def run(
    wanted: Wanted, address: str, patience: float, config: Path | None, *, as_json: bool
) -> bool:
    """Import, print what came of it, and tell whether all of the file was imported.

    Args:
        wanted: What to import.
        address: Of the server; empty: that of the settings.
        patience: Seconds for which a lost server is tried again; 0: for ever.
        config: The settings file.
        as_json: Print the summary as an object.

    Raises:
        SettingsError: No address is given, and the settings cannot be used.
        BadParameter: What was asked for cannot be meant.
    """
    if wanted.conflict not in _CONFLICTS:
        raise typer.BadParameter(f"--conflict {wanted.conflict!r} is none of fail, skip, overwrite")
    target = target_of(address, config)
    started = time.monotonic()
    tally = _Tally()
    whole = False
    with ExitStack() as stack:
        try:
            file, size = _opened(wanted.file, stack)
            for tally in _import(target, wanted, file, size, patience):  # noqa: B007
                pass
            whole = True
        except grpc.RpcError as error:
            tell_failure(target, error, _HINTS)
        except ExportFileError as error:
            tell(str(error), error.hint)
        except OSError as error:
            tell(f"{wanted.file}: {error.strerror or error}", "")
    _print(wanted, target, tally, time.monotonic() - started, whole=whole, as_json=as_json)
    return whole


def _opened(name: str, stack: ExitStack) -> tuple[BinaryIO, int]:
    """The file and its size, 0 for standard input."""
    if name == _STDIN:
        return sys.stdin.buffer, 0
    path = Path(name)
    return stack.enter_context(path.open("rb")), path.stat().st_size


def _import(
    target: str, wanted: Wanted, file: BinaryIO, size: int, patience: float
) -> Iterator[_Tally]:
    """How far it has come, after each message. Raises for a file that is not whole, at its end."""
    messages = read_messages(file, wanted.file)
    first = next(messages)
    if not first.HasField("header"):
        raise ExportFileError(f"{wanted.file} does not begin with a header", "export again")
    opening = pb.ImportRequest(
        namespace=wanted.namespace,
        keep_namespaces=wanted.keep_namespaces,
        header=first.header,
        conflict=_CONFLICTS[wanted.conflict],
        dry_run=wanted.dry_run,
    )
    sender = _Sender(messages, opening)
    before = tally = _Tally()
    opened_now = False

    def opened(channel: grpc.Channel) -> Iterable[pb.ImportResponse]:
        nonlocal before, opened_now
        before, opened_now = tally, True
        return pb_grpc.AdminServiceStub(channel).Import(sender.requests())

    doing = "checking" if wanted.dry_run else "importing"
    try:
        with TransferBar(doing, size) as bar:
            for ack in going_on(target, opened, lambda: "behind what is stored", patience):
                if opened_now:  # the opening itself
                    opened_now = False
                else:
                    sender.acknowledged()
                tally = before.plus(ack)
                bar.show(file.tell() if size else 0, tally.line())
                yield tally
    finally:
        sender.close()
    if sender.broken is not None:
        raise sender.broken


def _print(
    wanted: Wanted, target: str, tally: _Tally, seconds: float, *, whole: bool, as_json: bool
) -> None:
    if as_json:
        told = {
            "address": target,
            "file": wanted.file,
            "dry_run": wanted.dry_run,
            "complete": whole,
            "imported_count": tally.imported,
            "unchanged_count": tally.unchanged,
            "skipped_count": tally.skipped,
            "counts": dict(sorted(tally.counts.items())),
            "elapsed_seconds": round(seconds, 3),
        }
        typer.echo(json.dumps(told, indent=2))
        return
    for resource_kind, count in sorted(tally.counts.items()):
        typer.echo(f"{resource_kind.lower().replace('_', ' '):16}{count:>12,}")
    stored = ", nothing was stored" if wanted.dry_run else ""
    until = "" if whole else " until then"
    internal = tally.imported > sum(tally.counts.values())
    records = "records, internal ones included" if internal else "records"
    typer.echo(f"{records}{until}: {tally.line()}{stored}, {seconds:.1f} s")
