"""Lets the writes to a shard survive a power loss without flushing the whole shard.

Edge adds each write to its log before anything else, and replays at the next start what it has not
flushed since. So syncing the log is enough, as long as Edge can open the rest of the folder. It can
if every page of a file is as it was last flushed, or newer. It cannot if a file was added or
enlarged since, and is only partly on the disk (docs/adr/0100-sync-the-log.md).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from lot_grpc.domain.errors import StoreUnavailableError
from lot_grpc.storage import durable

_LOG = "wal"
_SEGMENTS = ("open-", "closed-")


class ShardSync:
    """Tracks which files of a shard are known to be on the disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._synced: dict[str, int] = {}

    def sync_log(self) -> bool:
        """Sync the log. False if that is not enough: then flush the shard and ``sync_files``.

        Raises:
            StoreUnavailableError: The disk failed. The log may have a gap now, so the next one is
                not enough.
        """
        log = self._folder / _LOG
        try:
            if not self._synced or self._synced != _state(self._synced):
                return False
            for segment in log.iterdir():
                if segment.name.startswith(_SEGMENTS):
                    durable.sync_data(segment)
            durable.sync(log)
        except OSError as error:
            self._synced = {}
            raise _failed(error) from error
        return True

    def sync_files(self) -> None:
        """Sync files and folders that are new or changed size. Call it right after Edge's flush.

        Raises:
            StoreUnavailableError: The disk failed.
        """
        former, self._synced = self._synced, {}
        log = f"{self._folder}/{_LOG}"
        try:
            paths = [str(self._folder)]
            for folder, folders, names in os.walk(self._folder, onerror=_raise):
                if folder != log:
                    paths += [f"{folder}/{name}" for name in (*folders, *names)]
            state = _state(path for path in paths if path != log)
            for path, now in state.items():
                if former.get(path) != now:
                    durable.sync(Path(path))
            durable.sync(Path(log))
        except OSError as error:
            raise _failed(error) from error
        self._synced = state


def _state(paths: Iterable[str]) -> dict[str, int]:
    """The size of each file, and the time of change of each folder; -1 if it is missing."""
    return {path: _look(path) for path in paths}


def _look(path: str) -> int:
    try:
        found = os.stat(path)  # noqa: PTH116 - Path is three times slower
    except FileNotFoundError:
        return -1
    return found.st_mtime_ns if stat.S_ISDIR(found.st_mode) else found.st_size


def _raise(error: OSError) -> None:
    raise error


def _failed(error: OSError) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"the embedded store could not sync a write to the disk: {error.strerror or error}; check "
        "the disk, then repeat the call. The write may or may not have been stored"
    )
