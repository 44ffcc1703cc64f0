"""One process per data folder.

The lock is the kernel's (``flock``), so it ends with the process, however that ends. The file's
contents only serve the error message of a second process.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from datetime import UTC, datetime
from pathlib import Path

from lot_grpc.domain.errors import StartupError, StoreLockedError

LOCK_NAME = "lot.lock"


class FolderLock:
    """Holds the data folder for this process from construction to ``release``.

    Raises:
        StoreLockedError: another process holds it.
        StartupError: the folder cannot be made or written.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK_NAME
        self._file: int | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StartupError(
                f"cannot use the data folder {folder}: {error.strerror}; choose a folder this user "
                "can write to",
                path=folder,
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _read(file)
            os.close(file)
            raise _locked(folder, holder) from None
        except OSError as error:
            os.close(file)
            raise StartupError(
                f"the file system of {folder} does not support locks: {error.strerror}; put the "
                "data folder on a local disk",
                path=folder,
            ) from error
        self._file = file
        self._write_holder(file)

    def _write_holder(self, file: int) -> None:
        holder = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps(holder).encode(), 0)

    def release(self) -> None:
        """Release the folder. Idempotent. The file stays, since removing it would race."""
        if self._file is not None:
            os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None


def _read(file: int) -> dict[str, str]:
    try:
        holder = json.loads(os.pread(file, 4096, 0))
    except ValueError:  # empty while the other process starts or stops
        return {}
    return {key: str(value) for key, value in holder.items()} if isinstance(holder, dict) else {}


def _locked(folder: Path, holder: dict[str, str]) -> StoreLockedError:
    pid = holder.get("pid", "unknown")
    host = holder.get("host", "an unknown host")
    started = holder.get("started", "an unknown time")
    return StoreLockedError(
        f"the data folder {folder} is in use by process {pid} on {host} since {started}; stop that "
        "process, or choose another data folder",
        path=folder,
        pid=pid,
        host=host,
    )


def sync_folder(folder: Path) -> None:
    """Flush a folder, so that a new entry in it survives a power loss."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
