"""The file of an export: a line that says what it is, then messages, each whole or not there.

The line is ``lot-grpc export 1``. A message is its length and its CRC-32 (4 bytes each, the highest
first), then as many bytes: an ``ExportResponse``, compressed with zlib. Each is compressed by
itself, so that a file that was cut off ends behind its last whole message, and is gone on with
there. The first has the header, the last the summary: a file without it is not the whole export.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from google.protobuf.message import DecodeError

from lot_grpc.pb.lot.v1 import transfer_pb2 as pb

FORMAT = 1
_TITLE = b"lot-grpc export "
_HEAD = struct.Struct(">II")
_MOST_BYTES = 2**31
_LEVEL = 3
"""Of compression: half the time of the default level for a tenth more bytes."""


class ExportFileError(Exception):
    """A file that cannot be read, or not to its end. ``hint`` says what to do."""

    def __init__(self, sentence: str, hint: str) -> None:
        super().__init__(sentence)
        self.hint = hint


class CutOffError(ExportFileError):
    """The file ends within a message, or before the summary."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} ends before the export does: it was cut off",
            "export again (a FILE.part is gone on with), or copy the file again; importing it "
            "again then is harmless",
        )


def write_title(file: BinaryIO) -> None:
    """The line that says what the file is."""
    file.write(_TITLE + f"{FORMAT}\n".encode())


def write_message(file: BinaryIO, message: pb.ExportResponse) -> None:
    """A message, whole once the file has it all."""
    raw = zlib.compress(message.SerializeToString(), _LEVEL)
    file.write(_HEAD.pack(len(raw), zlib.crc32(raw)) + raw)


def read_messages(file: BinaryIO, name: str) -> Iterator[pb.ExportResponse]:
    """The messages of a file, up to the one with the summary.

    Raises:
        ExportFileError: It is no export, of a later format, damaged, goes on behind its end, or
            was cut off (CutOffError).
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
                    f"{name} goes on behind the end of the export",
                    "it was written to by something else, or several exports were joined: import "
                    "each from a file of its own",
                )
            return


def _read_title(file: BinaryIO, name: str) -> None:
    title = file.readline(64)
    if not title:
        raise CutOffError(name)
    number = title.removeprefix(_TITLE).strip()
    if not title.startswith(_TITLE) or not number.isdigit():
        raise ExportFileError(
            f"{name} is no export of lot-grpc", "`lot-grpc export FILE` makes one"
        )
    if int(number) > FORMAT:
        raise ExportFileError(
            f"{name} has format {int(number)}, this lot-grpc reads format {FORMAT}",
            "a later version of lot-grpc wrote it: import it with that one, or a later one",
        )


def _damaged(name: str) -> ExportFileError:
    return ExportFileError(
        f"{name} is damaged: a message in it is not as it was written",
        "copy the file again, or export again",
    )


@dataclass
class Part:
    """What there is of an export: up to where its messages are whole, and behind which cursor."""

    header: pb.ExportHeader | None = None
    cursor: str = ""
    size: int = 0
    complete: bool = False


def read_part(path: Path, counts: dict[str, int]) -> Part:
    """The whole messages of a file that an export may have been killed while writing.

    ``counts`` takes in how many things there are, by kind. A file that is not there, or not even
    begun, is an empty part.

    Raises:
        ExportFileError: It is no export.
    """
    part = Part()
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return part
    with file:
        try:
            for message in read_messages(file, str(path)):
                part.size = file.tell()
                if message.HasField("header"):
                    part.header = message.header
                part.cursor = message.cursor or part.cursor
                count_things(message, counts)
                part.complete = message.HasField("summary")
        except CutOffError:
            pass
    return part


def count_things(message: pb.ExportResponse, counts: dict[str, int]) -> None:
    """Count the things of a message by kind, as a summary does: not what only hangs on one."""
    for record in message.records:
        resource_kind = record.WhichOneof("thing")
        if resource_kind is not None and record.internal.fields["of"].string_value in _THINGS:
            counts[resource_kind.upper()] = counts.get(resource_kind.upper(), 0) + 1


_THINGS = frozenset(
    {
        "patterns", "error_solutions", "outcomes", "memories", "episodes", "events",
        "preferences", "sessions", "learning_events", "decisions", "action_values", "policies",
    }
)  # fmt: skip
"""What ``internal`` says of a record that is a thing itself."""


def settle(part: Path, path: Path) -> None:
    """Bring a finished part to the disk and give it its name."""
    with part.open("rb+") as file:
        os.fsync(file.fileno())
    part.replace(path)
