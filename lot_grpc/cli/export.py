"""``lot-grpc export``: the data of a running server, to a file."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import grpc
import typer
from typer import Argument, Option

from lot_grpc.cli.calls import CALL_SECONDS, StreamingServer
from lot_grpc.cli.failures import FAILED, print_error, print_note
from lot_grpc.cli.options import Json, Namespace, new_file
from lot_grpc.cli.progress import progress_bars
from lot_grpc.cli.transfer_file import (
    STDIO,
    ExportFileError,
    Part,
    finish,
    print_summary,
    read_part,
    write_message,
    write_title,
)
from lot_grpc.cli.words import RESOURCE_KINDS
from lot_grpc.domain.counting import counted
from lot_grpc.pb.lot.v1 import resource_kind_pb2
from lot_grpc.pb.lot.v1 import transfer_pb2 as pb
from lot_grpc.pb.lot.v1.admin_service_pb2_grpc import AdminServiceStub


def export(
    *,
    file: str = Argument(
        ..., metavar="FILE", help="Output file; - is standard output.", callback=new_file
    ),
    namespace: Namespace = "",
    all_namespaces: bool = Option(False, "--all-namespaces", help="Every namespace."),
    resource_kind: list[resource_kind_pb2.ResourceKind.ValueType] | None = RESOURCE_KINDS.option(
        None, "--kind", help="Only this kind, such as pattern or episode. Repeatable."
    ),
    subject: str = Option(
        "", "--subject", help="Only what `lot-grpc erase` would delete for this subject."
    ),
    vectors: bool = Option(
        False,
        "--vectors",
        help="Include vectors, so that a store with this model need not re-embed.",
    ),
    dry_run: bool = Option(False, "--dry-run", help="Count only; write nothing."),
    server: StreamingServer,
    as_json: Json = False,
) -> None:
    """Export a namespace to a file. An existing file is replaced only once the export is complete.

    If interrupted, it leaves FILE.part, and the same command resumes from it.

    lot-grpc export backup.lot

    lot-grpc export all.lot --all-namespaces --vectors
    """
    if namespace and all_namespaces:
        raise typer.BadParameter("--namespace and --all-namespaces are mutually exclusive")
    request = pb.ExportRequest(
        namespace=namespace,
        all_namespaces=all_namespaces,
        resource_kinds=resource_kind,
        include_vectors=vectors,
        subject=subject,
    )
    started = time.monotonic()
    try:
        with server.calling({grpc.StatusCode.INVALID_ARGUMENT: _other_part(file)}):
            counts = _count(server, request)
            if not dry_run:
                _check_replaceable(file, counts)
                counts = _export(server, request, file, sum(counts.values()))
    except ExportFileError as error:
        print_error(str(error), error.hint)
        raise typer.Exit(FAILED) from None
    except BrokenPipeError:  # the reader of standard output is gone
        raise
    except OSError as error:
        hint = "what was written is still there; run the export again to resume"
        print_error(f"{file}: {error.strerror or error}", hint)
        raise typer.Exit(FAILED) from None
    seconds = time.monotonic() - started
    done = "would be exported" if dry_run else f"in {file}"
    print_summary(
        {"address": server.target, "file": file, "dry_run": dry_run},
        counts,
        seconds,
        f"{'all':16}{sum(counts.values()):>12,}  {done}, {seconds:.1f} s",
        as_json=as_json,
        to_stderr=file == STDIO and not dry_run,
    )


def _count(server: StreamingServer, request: pb.ExportRequest) -> dict[str, int]:
    """The current number of records, by kind."""
    counting = pb.ExportRequest()
    counting.CopyFrom(request)
    counting.dry_run = True
    counts: dict[str, int] = {}
    with server.stub(AdminServiceStub) as stub:
        for message in stub.Export(counting, timeout=CALL_SECONDS):
            counts.update(message.summary.record_counts)
    return counts


def _check_replaceable(name: str, counts: dict[str, int]) -> None:
    """Protect an existing file from an empty export, for example of a misspelt namespace."""
    if not any(counts.values()) and Path(name).exists():
        raise ExportFileError(
            f"there is nothing to export, so the existing {name} was left as it is",
            "`lot-grpc namespaces` shows what each namespace holds",
        )


def _export(
    server: StreamingServer, request: pb.ExportRequest, name: str, total: int
) -> dict[str, int]:
    with ExitStack() as stack:
        file, part = _open(name, stack)
        bars = stack.enter_context(progress_bars())
        bar = bars.add_task("exporting", total=total or None, remark="")

        def opened(channel: grpc.Channel) -> Iterable[pb.ExportResponse]:
            request.after_cursor = part.cursor
            return AdminServiceStub(channel).Export(request)

        for message in server.resumed(opened, lambda: "after what is written"):
            _write(file, part, message, name)
            bars.update(bar, completed=part.total, remark=counted(part.total, "record"))
    if name != STDIO:
        finish(_part_of(name), Path(name))
    return part.counts


def _open(name: str, stack: ExitStack) -> tuple[BinaryIO, Part]:
    """The file to append to, and its contents: an interrupted export is resumed."""
    if name == STDIO:
        write_title(sys.stdout.buffer)
        return sys.stdout.buffer, Part()
    path = _part_of(name)
    part = read_part(path)
    file = stack.enter_context(path.open("r+b" if part.size else "w+b"))
    if part.size:
        file.truncate(part.size)
        file.seek(part.size)
        print_note(f"resuming {path}, which has {counted(part.total, 'record')}")
    else:
        write_title(file)
    return file, part


def _write(file: BinaryIO, part: Part, message: pb.ExportResponse, name: str) -> None:
    """Append a message; the file has one header and, at its end, one overall summary."""
    if message.HasField("header") and part.header is not None:
        if _origin(part.header) != _origin(message.header):
            raise ExportFileError(
                "the server's version or model has changed since this export began",
                _other_part(name),
            )
        return
    part.add(message)
    if part.complete:
        message.summary.record_counts.clear()
        message.summary.record_counts.update(part.counts)
    write_message(file, message)
    if part.complete:
        file.flush()


def _origin(header: pb.ExportHeader) -> tuple[object, ...]:
    """What all records of one file must have in common."""
    return (
        header.format_version,
        header.schema_version,
        header.embedding_model,
        header.embedding_model_sha256,
        header.tokenizer,
    )


def _part_of(name: str) -> Path:
    return Path(f"{name}.part")


def _other_part(name: str) -> str:
    return f"{_part_of(name)} may belong to another export: remove it to start over"
