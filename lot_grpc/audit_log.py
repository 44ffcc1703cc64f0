"""The audit log: JSON lines, appended to a file that is rotated, or written to standard output.

A line is written in one piece, before the response is sent, so what was acknowledged is in the log
even if the process dies. It is not synced: a power loss may take the last seconds.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from glob import escape
from pathlib import Path
from typing import Any, Final, TextIO

from lot_grpc.domain.errors import StartupError
from lot_grpc.telemetry.metrics import AUDIT_LOST, AUDIT_RECORDS

OFF: Final = "off"
STDOUT: Final = "stdout"

Report = Callable[[int, str], None]
"""Takes how many records were lost so far, and why; 0 once they are written again."""


def audit_time() -> str:
    """Now, in UTC, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


class AuditFile:
    """Appends to a file, which it creates with mode 0600 if there is none.

    At ``max_bytes`` the file is renamed to ``NAME.1``, and earlier ones to the next number; at most
    ``files`` of them are kept. If something else renamed or removed the file, a new one is
    created. Several processes may append, but only one may rotate.

    If it cannot be written, calls continue, ``report`` is called, and the number of lost records is
    the first line once it can be written again.

    Attributes:
        reads: Whether calls that change nothing are recorded too.
        lost: How many records could not be written, since the process began.
    """

    def __init__(
        self, path: Path, *, reads: bool, max_bytes: int, files: int, report: Report
    ) -> None:
        """Open it.

        Raises:
            StartupError: It cannot be written.
        """
        self.reads = reads
        self.lost = 0
        self._unsaid = 0
        """Lost records that the log does not mention yet."""
        self._path = path
        self._max_bytes = max_bytes
        self._files = files
        self._report = report
        self._opened = -1
        self._inode = self._size = 0
        self._torn = False
        try:
            self._open()
        except OSError as error:
            raise StartupError(
                f"the audit log {path} cannot be written: {error.strerror or error}; set LOT_AUDIT "
                "to a file in a folder that this user may write, or to off",
                path=path,
            ) from error

    def write(self, record: Mapping[str, object]) -> None:
        """Append a record."""
        try:
            self._make_ready()
            if self._unsaid:
                self._append({"event": "lost", "records": self._unsaid})
                self._unsaid = 0
                self._report(0, "")
            self._append(record)
            AUDIT_RECORDS.add()
        except OSError as error:
            self.lost += 1
            AUDIT_LOST.add()
            self._unsaid += 1
            self._report(self.lost, error.strerror or str(error))

    def close(self) -> None:
        """Close the file."""
        if self._opened >= 0:
            os.close(self._opened)
            self._opened = -1

    def _append(self, record: Mapping[str, object]) -> None:
        line = _line(record).encode()
        if self._torn:
            line = b"\n" + line
        written = os.write(self._opened, line)
        self._size += written
        self._torn = written < len(line)
        if self._torn:
            raise OSError(0, "the disk is full")

    def _make_ready(self) -> None:
        """Open the file again if it is another one now, or was written to; rotate it if full."""
        try:
            found = os.stat(self._path)  # noqa: PTH116
            same = self._opened >= 0 and (found.st_ino, found.st_size) == (self._inode, self._size)
        except FileNotFoundError:
            same = False
        if not same:
            self._open()
        if self._size >= self._max_bytes:
            for number in range(self._files - 1, 0, -1):
                with suppress(FileNotFoundError):
                    _numbered(self._path, number).replace(_numbered(self._path, number + 1))
            self._path.replace(_numbered(self._path, 1))
            self._open()

    def _open(self) -> None:
        self.close()
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._opened = os.open(self._path, flags, 0o600)
        found = os.fstat(self._opened)
        self._inode, self._size = found.st_ino, found.st_size
        self._torn = bool(self._size) and os.pread(self._opened, 1, self._size - 1) != b"\n"


class AuditOutput:
    """Writes to standard output. If that is closed, ``report`` is told."""

    def __init__(self, *, reads: bool, report: Report) -> None:
        self.reads = reads
        self.lost = 0
        self._report = report

    def write(self, record: Mapping[str, object]) -> None:
        """Write a record."""
        try:
            sys.stdout.write(
                json.dumps({"time": audit_time(), **record}, ensure_ascii=False) + "\n"
            )
            sys.stdout.flush()
            AUDIT_RECORDS.add()
        except (OSError, ValueError) as error:
            self.lost += 1
            AUDIT_LOST.add()
            self._report(self.lost, str(error))

    def close(self) -> None:
        """Nothing to close."""


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a log, the oldest first, with those of rotated files.

    Lines that are not records, such as one that a full disk cut off, are skipped, and so is a
    number that a killed rotation left out. A concurrent rotation changes nothing: all files are
    opened first, the newest before those that it becomes.
    """
    rotated = path.parent.glob(f"{escape(path.name)}.*")
    last = max((int(one.suffix[1:]) for one in rotated if one.suffix[1:].isdecimal()), default=0)
    with ExitStack() as stack:
        files: dict[int, TextIO] = {}
        for number in range(last + 2):
            with suppress(FileNotFoundError):
                file = _numbered(path, number).open(encoding="utf-8", errors="replace")
                files.setdefault(os.fstat(file.fileno()).st_ino, stack.enter_context(file))
        for lines in reversed(files.values()):
            for line in lines:
                with suppress(ValueError, RecursionError):
                    record = json.loads(line)
                    if isinstance(record, dict) and isinstance(record.get("time"), str):
                        yield record


def _line(record: Mapping[str, object]) -> str:
    return json.dumps({"time": audit_time(), **record}, ensure_ascii=False) + "\n"


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}") if number else path
