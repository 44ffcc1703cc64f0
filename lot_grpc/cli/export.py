"""``lot-grpc export``: all that a running server holds, into a file."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import grpc
import typer

from lot_grpc.cli.calls import connected, going_on, target_of, tell_failure
from lot_grpc.cli.failures import note, tell
from lot_grpc.cli.transfer_bar import TransferBar
from lot_grpc.cli.transfer_file import (
    ExportFileError,
    count_things,
    read_part,
    settle,
    write_message,
    write_title,
)
from lot_grpc.cli.words import RESOURCE_KINDS
from lot_grpc.domain.counting import counted
from lot_grpc.pb.lot.v1 import admin_service_pb2_grpc as pb_grpc
from lot_grpc.pb.lot.v1 import transfer_pb2 as pb

_STDOUT = "-"
_COUNT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to export; ``file`` ``-`` is standard output."""

    file: str
    namespace: str
    all_namespaces: bool
    resource_kinds: tuple[str, ...]
    vectors: bool
    dry_run: bool

    def request(self) -> pb.ExportRequest:
        """Raises BadParameter for what is no kind."""
        return pb.ExportRequest(
            namespace=self.namespace,
            all_namespaces=self.all_namespaces,
            resource_kinds=RESOURCE_KINDS.numbers("--kind", self.resource_kinds),
            include_vectors=self.vectors,
        )


@dataclass
class _Written:
    """What the file has so far."""

    cursor: str = ""
    header: pb.ExportHeader | None = None
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def run(
    wanted: Wanted, address: str, patience: float, config: Path | None, *, as_json: bool
) -> bool:
    """Export, print what there was, and tell whether all of it is in the file.

    Args:
        wanted: What to export.
        address: Of the server; empty: that of the settings.
        patience: Seconds for which a lost server is tried again; 0: for ever.
        config: The settings file.
        as_json: Print the summary as an object.

    Raises:
        SettingsError: No address is given, and the settings cannot be used.
        BadParameter: What was asked for cannot be meant.
    """
    request = wanted.request()
    target = target_of(address, config)
    started = time.monotonic()
    try:
        there = _counted(target, request)
        if wanted.dry_run:
            written = _Written(counts=there)
        else:
            _spare(wanted.file, there)
            written = _export(target, request, wanted.file, sum(there.values()), patience)
    except grpc.RpcError as error:
        hints = {grpc.StatusCode.INVALID_ARGUMENT: _other_part(wanted.file)}
        tell_failure(target, error, hints)
        return False
    except ExportFileError as error:
        tell(str(error), error.hint)
        return False
    except OSError as error:
        tell(f"{wanted.file}: {error.strerror or error}", "what is written stays; export again")
        return False
    _print(wanted, target, written.counts, time.monotonic() - started, as_json=as_json)
    return True


def _counted(target: str, request: pb.ExportRequest) -> dict[str, int]:
    """What there is now."""
    asked = pb.ExportRequest()
    asked.CopyFrom(request)
    asked.dry_run = True
    counts: dict[str, int] = {}
    with connected(target) as channel:
        for message in pb_grpc.AdminServiceStub(channel).Export(asked, timeout=_COUNT_SECONDS):
            counts.update(message.summary.counts)
    return counts


def _spare(name: str, there: dict[str, int]) -> None:
    """Keep a file that is there from an export of nothing, as of a misspelt namespace."""
    if not any(there.values()) and Path(name).exists():
        raise ExportFileError(
            f"there is nothing to export, and {name} is there: it stays as it is",
            "`lot-grpc namespaces` shows what each namespace holds",
        )


def _export(
    target: str, request: pb.ExportRequest, name: str, total: int, patience: float
) -> _Written:
    written = _Written()
    with ExitStack() as stack:
        file = _opened(name, written, stack)
        bar = stack.enter_context(TransferBar("exporting", total))

        def opened(channel: grpc.Channel) -> Iterable[pb.ExportResponse]:
            request.after_cursor = written.cursor
            return pb_grpc.AdminServiceStub(channel).Export(request)

        for message in going_on(target, opened, lambda: "behind what is written", patience):
            _take(file, message, written, name)
            bar.show(written.total, counted(written.total, "thing"))
    if name != _STDOUT:
        settle(_part_of(name), Path(name))
    return written


def _take(file: BinaryIO, message: pb.ExportResponse, written: _Written, name: str) -> None:
    """Write a message; the file has one header and, at its end, one summary of it all."""
    if message.HasField("header"):
        if written.header is None:
            written.header = message.header
            write_message(file, pb.ExportResponse(header=message.header))
        elif _space(written.header) != _space(message.header):
            raise ExportFileError(
                f"the export was begun at a server of another version or model than {name} is now",
                _other_part(name),
            )
        return
    count_things(message, written.counts)
    if message.HasField("summary"):
        message.summary.counts.clear()
        message.summary.counts.update(written.counts)
    write_message(file, message)
    written.cursor = message.cursor or written.cursor
    if message.HasField("summary"):
        file.flush()


def _space(header: pb.ExportHeader) -> tuple[object, ...]:
    """What the records of one file must have in common."""
    return (
        header.format_version,
        header.schema_version,
        header.embedding_model,
        header.embedding_model_sha256,
        header.tokenizer,
    )


def _opened(name: str, written: _Written, stack: ExitStack) -> BinaryIO:
    """The file to go on writing: what an export that was killed has left is kept."""
    if name == _STDOUT:
        write_title(sys.stdout.buffer)
        return sys.stdout.buffer
    path = _part_of(name)
    part = read_part(path, written.counts)
    if part.complete:  # it was killed just before it gave the file its name
        part.size = 0
        written.counts.clear()
    file = stack.enter_context(path.open("r+b" if part.size else "w+b"))
    if part.size:
        written.cursor, written.header = part.cursor, part.header
        file.truncate(part.size)
        file.seek(part.size)
        note(f"resuming {path}, which has {counted(written.total, 'record')}")
    else:
        write_title(file)
    return file


def _part_of(name: str) -> Path:
    return Path(f"{name}.part")


def _other_part(name: str) -> str:
    return f"{_part_of(name)} may be of another export: remove it to begin anew"


def _print(
    wanted: Wanted, target: str, counts: dict[str, int], seconds: float, *, as_json: bool
) -> None:
    to_stdout = wanted.file == _STDOUT and not wanted.dry_run
    if as_json:
        told = {
            "address": target,
            "file": wanted.file,
            "dry_run": wanted.dry_run,
            "counts": dict(sorted(counts.items())),
            "elapsed_seconds": round(seconds, 3),
        }
        typer.echo(json.dumps(told, indent=2), err=to_stdout)
        return
    for resource_kind, count in sorted(counts.items()):
        typer.echo(f"{resource_kind.lower().replace('_', ' '):16}{count:>12,}", err=to_stdout)
    what = "would be exported" if wanted.dry_run else f"in {wanted.file}"
    typer.echo(f"{'all':16}{sum(counts.values()):>12,}  {what}, {seconds:.1f} s", err=to_stdout)
