"""Files that decide who may call: checked, replaced atomically, reread when they change."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Generic, TypeAlias, TypeVar

import structlog

from lot_grpc.telemetry.metrics import RELOADS

T = TypeVar("T")

_log = structlog.get_logger()

MAX_BYTES: Final = 4 * 2**20
"""Largest file that is read."""

LOOK_SECONDS: Final = 1.0
"""How often a file is checked for changes, in seconds."""

_QUIET_SECONDS = 2
"""A file that changed more recently could change again without a difference in its times."""

_LOCK_SECONDS = 10.0
_RETRY_SECONDS = 0.05

Identity: TypeAlias = tuple[int, ...]


class FileError(Exception):
    """Why a file cannot be used, as a sentence that names it. Never quotes its contents."""


def read(path: Path, *, private: bool) -> tuple[bytes, Identity | None]:
    """The contents of a file, and what tells them from others; None if it just changed.

    ``private``: others may not read it either.

    Raises:
        FileError: It cannot be read, or somebody else could have written it.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            found = os.fstat(file)
            if problem := _problem(found, private=private):
                raise FileError(f"{path} {problem}")
            with os.fdopen(file, "rb", closefd=False) as opened:
                content = opened.read(MAX_BYTES + 1)
        finally:
            os.close(file)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from None
    if len(content) > MAX_BYTES:
        raise FileError(f"{path} has more than {MAX_BYTES // 2**20} MiB")
    quiet = time.time() - max(found.st_mtime, found.st_ctime) > _QUIET_SECONDS
    return content, _identity(found) if quiet else None


def _problem(found: os.stat_result, *, private: bool) -> str:
    if not stat.S_ISREG(found.st_mode):
        return "is not a file"
    if found.st_uid not in (0, os.geteuid()):
        return "belongs to another user; change its owner to root or to the server's user"
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o022:
        return f"can be written by others (mode {mode:04o}); run `chmod 600` on it"
    if private and mode & 0o007:
        return f"is open to others (mode {mode:04o}); run `chmod 600` on it"
    return ""


def _identity(found: os.stat_result) -> Identity:
    return (found.st_size, found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns)


class WatchedFile(Generic[T]):
    """A file that is reread when it changes. If it cannot be used, the last value stays.

    Args:
        path: The file.
        what: What it is, for the log.
        parse: Its contents as a value; raises FileError without quoting them.
        private: Others may not read it.
        metric: What it is, for the metrics.

    Raises:
        FileError: It cannot be used.
    """

    def __init__(
        self, path: Path, what: str, parse: Callable[[bytes], T], *, private: bool, metric: str
    ) -> None:
        self._path = path
        self._what = what
        self._parse = parse
        self._private = private
        self._metric = metric
        self._looked = time.monotonic()
        self._content, self._identity = read(path, private=private)
        self._problem = ""
        self.value = parse(self._content)

    def refresh(self) -> bool:
        """Look at the file, at most once a second; whether the value changed. Never raises."""
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return False
        self._looked = now
        try:
            changed = self._read()
        except FileError as error:
            RELOADS.add(self._metric, "failed")
            if self._problem != (problem := str(error)):
                self._problem = problem
                _log.error(
                    "cannot use a changed file; keeping the last good state",
                    what=self._what,
                    why=problem,
                )
            return False
        if changed:
            RELOADS.add(self._metric, "ok")
            _log.info("read a changed file", what=self._what, path=str(self._path))
        elif self._problem:
            _log.info("can use the file again", what=self._what, path=str(self._path))
        self._problem = ""
        return changed

    def _read(self) -> bool:
        with suppress(OSError):
            if self._identity is not None and self._identity == _identity(self._path.stat()):
                return False
        content, identity = read(self._path, private=self._private)
        if content == self._content:
            self._identity = identity
            return False
        value = self._parse(content)
        self._content, self._identity, self.value = content, identity, value
        return True


@contextmanager
def locked(path: Path) -> Iterator[Path]:
    """Lock the folder of a file against other writers; yields the file with links resolved.

    Raises:
        FileError: The folder cannot be locked, or is locked for too long.
    """
    target = Path(os.path.realpath(path))
    end = time.monotonic() + _LOCK_SECONDS
    try:
        folder = os.open(target.parent, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    except OSError as error:
        raise FileError(f"{target.parent} cannot be opened: {error.strerror or error}") from None
    try:
        while not _lock(folder, target.parent):
            if time.monotonic() > end:
                raise FileError(f"{target.parent} is locked by another process; try again")
            time.sleep(_RETRY_SECONDS)
        yield target
    finally:
        os.close(folder)


def _lock(folder: int, path: Path) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise FileError(f"{path} cannot be locked: {error.strerror or error}") from None
    return True


def write(path: Path, content: bytes) -> None:
    """Replace a file atomically, keeping its owner and mode; a new one is for its user only.

    The caller holds the lock. The new file survives a power loss once this returns.

    Raises:
        FileError: It cannot be written; what was there stays.
    """
    temporary = path.with_name(f"{path.name}.new")
    try:
        temporary.unlink(missing_ok=True)
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(file, "wb") as opened:
            with suppress(FileNotFoundError):
                old = path.stat()
                if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(file, old.st_uid, old.st_gid)
                os.fchmod(file, stat.S_IMODE(old.st_mode))
            opened.write(content)
            opened.flush()
            os.fsync(file)
        temporary.replace(path)
        folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise FileError(f"{path} cannot be written: {error.strerror or error}") from None
