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
    """What is known to be on the disk of one shard's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._synced: dict[str, int] = {}

    def sync_log(self) -> bool:
        """Sync the log. False if that is not enough: then flush the shard and ``sync_files``.

        Raises:
            StoreUnavailableError: The disk failed. The log may have a gap now, so the next one is
                not enough.
        """
        if not self._synced or self._synced != _state(self._synced):
            return False
        log = self._folder / _LOG
        try:
            for segment in log.iterdir():
                if segment.name.startswith(_SEGMENTS):
                    durable.sync_data(segment)
            durable.sync(log)
        except OSError as error:
            self._synced = {}
            raise _failed(error) from error
        return True

    def sync_files(self) -> None:
        """Sync the files and folders that are new or have another size; Edge has just flushed.

        Raises:
            StoreUnavailableError: The disk failed.
        """
        former, self._synced = self._synced, {}
        paths = [str(self._folder)]
        for folder, folders, names in os.walk(self._folder):
            paths += [f"{folder}/{name}" for name in (*folders, *names)]
        log = f"{self._folder}/{_LOG}"
        state = _state(path for path in paths if not path.startswith(log))
        try:
            for path, now in state.items():
                if former.get(path) != now:
                    durable.sync(Path(path))
            durable.sync(Path(log))
        except OSError as error:
            raise _failed(error) from error
        self._synced = state


def _state(paths: Iterable[str]) -> dict[str, int]:
    """The sizes of files, and when names in a folder last changed; -1: it is not there."""
    return {path: _look(path) for path in paths}


def _look(path: str) -> int:
    try:
        found = os.stat(path)  # noqa: PTH116 - Path is three times slower
    except FileNotFoundError:
        return -1
    return found.st_mtime_ns if stat.S_ISDIR(found.st_mode) else found.st_size


def _failed(error: OSError) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"the embedded store cannot sync a write to the disk: {error.strerror}; check the disk. "
        "The write may or may not be kept; repeat it"
    )
