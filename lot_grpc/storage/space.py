"""Free space, checked before every write.

Edge maps sparse files into memory: on a full disk, a write or opening a store ends the process with
SIGBUS. So writes stop while there is still space, and resume by themselves. A reading takes a
microsecond and is never reused: with one 250 ms old, a file that filled the disk at once killed the
process.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from lot_grpc.domain.errors import StartupError, StorageFullError, StoreUnavailableError

DEFAULT_MIN_FREE_BYTES = 400 * 2**20
"""Enough for a dozen collections: each may open a 32 MiB log file and grow its mapped pages."""

_EMERGENCY_SHARE = 4


class FileSystem(Protocol):
    """The fields used of ``os.statvfs_result``."""

    @property
    def f_bavail(self) -> int:
        """Free blocks for unprivileged users."""

    @property
    def f_frsize(self) -> int:
        """Bytes in a block."""


class SpaceGuard:
    """Refuses writes below ``min_free_bytes``, deletes and opening below a quarter of it.

    ``min_free_bytes`` 0 switches it off.
    """

    def __init__(
        self,
        folder: Path,
        min_free_bytes: int = DEFAULT_MIN_FREE_BYTES,
        *,
        statvfs: Callable[[Path], FileSystem] = os.statvfs,
    ) -> None:
        self.min_free_bytes = min_free_bytes
        self._folder = folder
        self._statvfs = statvfs

    @property
    def emergency_bytes(self) -> int:
        """Below this, not even a delete or an open is attempted."""
        return self.min_free_bytes // _EMERGENCY_SHARE

    def free(self) -> int:
        """Bytes that this user may still write. May raise ``StoreUnavailableError``."""
        try:
            stat = self._statvfs(self._folder)
        except OSError as error:
            raise StoreUnavailableError(
                f"the data folder {self._folder} cannot be used ({error.strerror}); check that it "
                "exists and that this user can read it",
                path=self._folder,
            ) from error
        return stat.f_bavail * stat.f_frsize

    def require_write(self) -> None:
        """Raise ``StorageFullError`` below the watermark."""
        self._require(self.min_free_bytes)

    def require_delete(self) -> None:
        """Raise ``StorageFullError`` below the emergency margin, which is lower for deletes."""
        self._require(self.emergency_bytes)

    def require_open(self) -> None:
        """Raise ``StartupError`` below the emergency margin."""
        if self.min_free_bytes and (free := self.free()) < self.emergency_bytes:
            raise StartupError(
                f"{free // 2**20} MiB free in {self._folder}, but opening the store needs "
                f"{self.emergency_bytes // 2**20} MiB; free some space and start again (nothing "
                "is lost)",
                path=self._folder,
                free_bytes=free,
            )

    def _require(self, needed: int) -> None:
        if needed and (free := self.free()) < needed:
            raise StorageFullError(free, needed, str(self._folder))


def used_bytes(folder: Path, *, without: str = "") -> int:
    """Bytes on disk below ``folder``, counted in blocks since Edge's files are sparse.

    Folders named ``without`` are left out.
    """
    return sum(_used_by_folder(folder, without).values())


def used_by_collection(folder: Path) -> dict[str, int]:
    """``used_bytes`` by the name of each folder in it, with its own files under the empty name."""
    used: dict[str, int] = {}
    for path, size in _used_by_folder(folder, "").items():
        name = next(iter(path.relative_to(folder).parts), "")
        used[name] = used.get(name, 0) + size
    return used


def _used_by_folder(folder: Path, without: str) -> dict[Path, int]:
    """Bytes of the files directly in each folder below."""
    used = {}
    for directory, folders, names in os.walk(folder):
        if without in folders:
            folders.remove(without)
        total = 0
        for name in names:
            try:
                total += os.lstat(Path(directory, name)).st_blocks * 512
            except FileNotFoundError:  # a segment that was just replaced
                continue
        used[Path(directory)] = total
    return used
