"""The file of an export: a title line, then messages, each complete or absent.

The line is ``lot-grpc export 1``. A message is its length and its CRC-32 (4 bytes each, big-endian)
followed by that many bytes: an ``ExportResponse``, compressed with zlib. Each is compressed
separately, so that a truncated file can be resumed after its last complete message. The first has
the header, the last the summary: a file without a summary is incomplete.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import typer
from google.protobuf.message import DecodeError

from lot_grpc.pb.lot.v1 import transfer_pb2 as pb

FORMAT = 1
STDIO = "-"
"""File name that means standard output or input."""

_TITLE = b"lot-grpc export "
_HEAD = struct.Struct(">II")
_MOST_BYTES = 2**31
_LEVEL = 3
"""Compression level: half the time of the default level for a tenth more bytes."""


class ExportFileError(Exception):
    """A file cannot be read, or not to its end; with a hint at what to do."""

    def __init__(self, sentence: str, hint: str) -> None:
        super().__init__(sentence)
        self.hint = hint


class CutOffError(ExportFileError):
    """The file ends within a message, or before the summary."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} is incomplete: it was cut off",
            "export again (an existing FILE.part is resumed), or copy the file again; importing "
            "it again is harmless",
        )


def write_title(file: BinaryIO) -> None:
    """Write the title line."""
    file.write(_TITLE + f"{FORMAT}\n".encode())


def write_message(file: BinaryIO, message: pb.ExportResponse) -> None:
    """Write a message; it counts only if complete."""
    raw = zlib.compress(message.SerializeToString(), _LEVEL)
    file.write(_HEAD.pack(len(raw), zlib.crc32(raw)) + raw)


def read_messages(file: BinaryIO, name: str) -> Iterator[pb.ExportResponse]:
    """The messages of a file, up to the one with the summary.

    Raises:
        ExportFileError: The file is not an export, has a later format, is damaged, has data after
            its end, or was cut off (CutOffError).
    """
    _read_title(file, name)
    while True:
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            raise CutOffError(name)
        size, crc = _HEAD.unpack(head)
        if size > _MOST_BYTES:
            raise _damaged(name)
        raw = file.read(size)
        if len(raw) < size:
            raise CutOffError(name)
        if zlib.crc32(raw) != crc:
            raise _damaged(name)
        try:
            message = pb.ExportResponse.FromString(zlib.decompress(raw))
        except (zlib.error, DecodeError):
            raise _damaged(name) from None
        yield message
        if message.HasField("summary"):
            if file.read(1):
                raise ExportFileError(
                    f"{name} has data after the end of the export",
                    "something else wrote to it, or several exports were joined: import each from "
                    "its own file",
                )
            return


def _read_title(file: BinaryIO, name: str) -> None:
    title = file.readline(64)
    if not title:
        raise CutOffError(name)
    number = title.removeprefix(_TITLE).strip()
    if not title.startswith(_TITLE) or not number.isdigit():
        raise ExportFileError(
            f"{name} is not an export of lot-grpc", "`lot-grpc export FILE` creates one"
        )
    if int(number) > FORMAT:
        raise ExportFileError(
            f"{name} has format {int(number)}; this version of lot-grpc reads format {FORMAT}",
            "import it with the version of lot-grpc that wrote it, or a later one",
        )


def _damaged(name: str) -> ExportFileError:
    return ExportFileError(
        f"{name} is damaged: a message fails its checksum", "copy the file again, or export again"
    )


@dataclass
class Part:
    """A partial export: how far its messages are complete, and the cursor there."""

    header: pb.ExportHeader | None = None
    cursor: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    size: int = 0
    complete: bool = False

    @property
    def total(self) -> int:
        """The number of records."""
        return sum(self.counts.values())

    def add(self, message: pb.ExportResponse) -> None:
        """Add a message."""
        if message.HasField("header"):
            self.header = message.header
        self.cursor = message.cursor or self.cursor
        count_records(message, self.counts)
        self.complete = message.HasField("summary")


def read_part(path: Path) -> Part:
    """The complete messages of a file whose export may have been interrupted.

    A missing or empty file is an empty part; so is a complete one, which only lacks its name.

    Raises:
        ExportFileError: It is not an export.
    """
    part = Part()
    with suppress(FileNotFoundError, CutOffError), path.open("rb") as file:
        for message in read_messages(file, str(path)):
            part.add(message)
            part.size = file.tell()
    return Part() if part.complete else part


def count_records(message: pb.ExportResponse, counts: dict[str, int]) -> None:
    """Count the records of a message by kind, as in a summary, without their parts."""
    from lot_grpc.services.resources import REGISTRY  # slow: imported only when needed

    for record in message.records:
        kind = record.WhichOneof("record")
        collection = REGISTRY.exported.get(record.stored_form.fields["of"].string_value)
        if kind is not None and collection is not None and collection.is_thing:
            counts[kind.upper()] = counts.get(kind.upper(), 0) + 1


def finish(part: Path, path: Path) -> None:
    """Sync a complete part to disk and rename it."""
    with part.open("rb+") as file:
        os.fsync(file.fileno())
    part.replace(path)


def print_summary(
    head: dict[str, object],
    counts: dict[str, int],
    seconds: float,
    last_line: str,
    *,
    as_json: bool,
    to_stderr: bool = False,
    name: str = "record_counts",
) -> None:
    """Print what was transferred: as one object, or a line per kind and a final one.

    ``name`` is the key of the counts in the object.
    """
    counts = dict(sorted(counts.items()))
    if as_json:
        fields = {**head, name: counts, "elapsed_seconds": round(seconds, 3)}
        typer.echo(json.dumps(fields, indent=2), err=to_stderr)
        return
    for kind, count in counts.items():
        typer.echo(f"{kind.lower().replace('_', ' '):16}{count:>12,}", err=to_stderr)
    typer.echo(last_line, err=to_stderr)
