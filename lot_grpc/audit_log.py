"""The audit log: JSON lines, appended to a file that is rotated, or written to standard output.

A line is written in one piece, before the response is sent, so what was acknowledged is in the log
even if the process dies. It is not synced: a power loss may take the last seconds.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from glob import escape
from pathlib import Path
from typing import Any, Final, Protocol, TextIO

from lot_grpc.domain.errors import StartupError
from lot_grpc.telemetry.metrics import AUDIT_LOST, AUDIT_RECORDS

OFF: Final = "off"
STDOUT: Final = "stdout"


class Reports(Protocol):
    """Hears of what goes wrong while the log is written."""

    def lost(self, records: int, why: str) -> None:
        """A record was lost; ``records``: how many so far."""

    def recovered(self) -> None:
        """Records are written again."""

    def not_rotated(self, why: str) -> None:
        """The file is full and cannot be renamed, so it grows on."""


def audit_time() -> str:
    """Now, in UTC, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def json_line(record: Mapping[str, object]) -> str:
    """A record as JSON in one line, in which whatever steers a terminal is escaped."""
    text = json.dumps(record, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in text)


class AuditOutput:
    """Writes to standard output.

    If that fails, calls continue, ``reports`` hears of it, and the number of lost records is the
    first line once it works again.

    Attributes:
        reads: Whether calls that change nothing are recorded too.
        losses: How many records could not be written, since the process began.
    """

    def __init__(self, *, reads: bool, reports: Reports) -> None:
        """Raises StartupError if there is no standard output."""
        self.reads = reads
        self.losses = 0
        self._reports = reports
        self._unsaid = 0
        """Lost records that the log does not mention yet."""
        self._opened = -1
        self._torn = False
        """Whether the last line has no end."""
        try:
            self._open()
        except OSError as error:
            raise self._refusal(error.strerror or str(error)) from error

    def write(self, record: Mapping[str, object]) -> None:
        """Append a record."""
        try:
            self._make_ready()
            if self._unsaid:
                self._append({"event": "lost", "records": self._unsaid})
                self._unsaid = 0
                self._reports.recovered()
            self._append(record)
            AUDIT_RECORDS.add()
        except OSError as error:
            self.losses += 1
            AUDIT_LOST.add()
            self._unsaid += 1
            self._reports.lost(self.losses, error.strerror or str(error))

    def close(self) -> None:
        """Close the log."""
        if self._opened >= 0:
            os.close(self._opened)
            self._opened = -1

    def _append(self, record: Mapping[str, object]) -> None:
        line = json_line({"time": audit_time(), **record}).encode() + b"\n"
        if self._torn:
            line = b"\n" + line
        written = os.write(self._opened, line)
        self._torn = written < len(line)
        if self._torn:
            raise OSError(0, "the disk is full")

    def _open(self) -> None:
        if sys.stdout is None:  # closed by whoever started the process
            raise OSError(0, "it is closed")
        self._opened = os.dup(sys.stdout.fileno())

    def _make_ready(self) -> None:
        """Called before each record. Standard output stays open."""

    def _refusal(self, why: str) -> StartupError:
        return StartupError(
            f"the audit log cannot be written to standard output: {why}; open it, or set LOT_AUDIT "
            "to a file or to off"
        )


class AuditFile(AuditOutput):
    """Appends to a file, which it creates with mode 0600 if there is none.

    At ``max_bytes`` the file is renamed to ``NAME.1``, and earlier ones to the next number; at most
    ``files`` of them are kept. If something else renamed or removed the file, a new one is created.
    A file that cannot be renamed grows by ``max_bytes`` before that is tried again. Several
    processes may append; one at a time renames it.
    """

    def __init__(
        self, path: Path, *, reads: bool, max_bytes: int, files: int, reports: Reports
    ) -> None:
        """Open it; raises StartupError if it cannot be written."""
        self._path = _target(path)
        self._max_bytes = max_bytes
        self._files = files
        super().__init__(reads=reads, reports=reports)

    def _make_ready(self) -> None:
        """Open the file again if it is another one now; rotate it if it is full."""
        if self._opened < 0 or not (size := self._size()):
            self._open()
        elif size >= self._rotate_at:
            self._rotate(size)
        else:
            self._torn = not self._ends_a_line(size)

    def _size(self) -> int:
        """The size of the file; 0 if it is not the open one."""
        try:
            found = os.stat(self._path)  # noqa: PTH116
        except FileNotFoundError:
            return 0
        return found.st_size if os.path.samestat(found, self._found) else 0

    def _rotate(self, size: int) -> None:
        try:
            fcntl.flock(self._opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # another process is renaming it
        except OSError:
            pass  # a file system without locks
        if not self._size():  # it just has
            self._open()
            return
        try:
            for number in range(self._files - 1, 0, -1):
                with suppress(FileNotFoundError):
                    _numbered(self._path, number).replace(_numbered(self._path, number + 1))
            self._path.replace(_numbered(self._path, 1))
        except OSError as error:
            with suppress(OSError):
                fcntl.flock(self._opened, fcntl.LOCK_UN)
            self._rotate_at = size + self._max_bytes
            self._reports.not_rotated(error.strerror or str(error))
        else:
            self._open()

    def _open(self) -> None:
        self.close()
        # Without O_NONBLOCK, opening a pipe would wait for its reader.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        self._opened = os.open(self._path, flags, 0o600)
        self._found = found = os.fstat(self._opened)
        if not stat.S_ISREG(found.st_mode):
            self.close()
            raise OSError(0, "it is not a regular file")
        self._rotate_at = self._max_bytes
        self._torn = bool(found.st_size) and not self._ends_a_line(found.st_size)

    def _ends_a_line(self, size: int) -> bool:
        return os.pread(self._opened, 1, size - 1) == b"\n"

    def _refusal(self, why: str) -> StartupError:
        return StartupError(
            f"the audit log {self._path} cannot be written: {why}; set LOT_AUDIT to a file in a "
            "folder that this user may write, to stdout, or to off",
            path=self._path,
        )


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a log, the oldest first, with those of rotated files.

    Lines that are not records, such as one that a full disk cut off, are skipped, and so is a
    number that a killed rotation left out. A concurrent rotation changes nothing: all files are
    opened first, the newest before those that it becomes.
    """
    path = _target(path)
    rotated = path.parent.glob(f"{escape(path.name)}.*")
    numbers = {0, *(int(one.suffix[1:]) for one in rotated if one.suffix[1:].isdecimal())}
    with ExitStack() as stack:
        files: dict[int, TextIO] = {}
        for number in sorted(numbers | {number + 1 for number in numbers}):
            with suppress(FileNotFoundError, IsADirectoryError):
                file = _numbered(path, number).open(encoding="utf-8", errors="replace")
                files.setdefault(os.fstat(file.fileno()).st_ino, stack.enter_context(file))
        for lines in reversed(files.values()):
            for line in lines:
                with suppress(ValueError, RecursionError):
                    record = json.loads(line)
                    if _is_record(record):
                        yield record


def _is_record(found: Any) -> bool:
    if not isinstance(found, dict) or not isinstance(found.get("time"), str):
        return False
    rest = dict(found)
    ids, namespaces = rest.pop("ids", {}), rest.pop("namespaces", [])
    return (
        isinstance(ids, dict)
        and all(map(_are_texts, [namespaces, *ids.values()]))
        and not any(isinstance(value, dict | list) for value in rest.values())
    )


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _target(path: Path) -> Path:
    """What a link leads to: the file is renamed, not the link."""
    return Path(os.path.realpath(path))


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}") if number else path
