"""Hashes of files that were read before, so that a start need not read the whole model again.

A file counts as unchanged if its path, size, device, inode, modification time and change time are
the same. The change time cannot be set, so restoring the others hides no change. Damage below the
file system is not noticed; ``lot-grpc check`` reads the files in full.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from lot_grpc.embedding.file_hash import file_sha256

Identity: TypeAlias = list[int]

_QUIET_SECONDS = 2
"""A file that changed more recently could change again without a difference in its times."""


def default_record() -> Path | None:
    """The path in the user's cache folder; None if the user has no home folder."""
    try:
        folder = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    except RuntimeError:
        return None
    return Path(folder, "lot-grpc", "file-hashes.json")


class HashRecord:
    """Hashes by path, kept in a JSON file.

    A record that cannot be read, or that another user could have written, is ignored; files are
    then read in full.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known: dict[str, tuple[Identity, str]] = {}
        self._changed = False
        # A start must not fail because of a damaged record.
        with suppress(Exception):
            if _is_ours(file):
                content = json.loads(file.read_text(encoding="utf-8"))
                self._known = {path: (one["is"], one["sha256"]) for path, one in content.items()}

    def sha256(self, path: Path) -> str:
        """SHA-256 of a file as hex. Reads a file that is new or has changed."""
        path = path.absolute()
        before = _identity(path)
        recorded = self._known.get(str(path))
        if recorded is not None and recorded[0] == before:
            return recorded[1]
        found = file_sha256(path)
        unchanged = time.time() - max(path.stat().st_mtime, path.stat().st_ctime) > _QUIET_SECONDS
        if unchanged and _identity(path) == before:
            self._known[str(path)] = (before, found)
            self._changed = True
        return found

    def save(self) -> None:
        """Write the record if it has changed. Does nothing if it cannot be written."""
        if not self._changed:
            return
        content = {
            path: {"is": identity, "sha256": sha256}
            for path, (identity, sha256) in self._known.items()
            if os.path.isfile(path)  # noqa: PTH113 - Path raises where this user may not look
        }
        with suppress(OSError):
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Another server of this user may start at the same time.
            temporary = self._file.with_name(f"{self._file.name}.{os.getpid()}")
            temporary.touch(mode=0o600)
            temporary.write_text(json.dumps(content, indent=1), encoding="utf-8")
            temporary.replace(self._file)


def _identity(path: Path) -> Identity:
    found = path.stat()
    return [found.st_size, found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns]


def _is_ours(file: Path) -> bool:
    found = file.stat()
    return found.st_uid == os.getuid() and not found.st_mode & 0o022
