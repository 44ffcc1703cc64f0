"""The file in which a recorder keeps events that the server has not acknowledged.

A line of magic, a record that says whose events these are, then a record each: length and CRC-32
of 4 bytes, big endian, and the serialized event. It is only ever appended to; what is
acknowledged at its start is left behind by a copy of the rest that takes its place.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lot_client.pb.lot.v1.episode_pb2 import EpisodeEvent

try:
    import fcntl
except ImportError:  # Windows: the rest of the client works there
    fcntl = None  # type: ignore[assignment]

_MAGIC = b"lot-spill 1\n"
_HEAD = struct.Struct(">II")
_MAX_RECORD = 16 * 2**20
_WORTH_A_COPY = 4 * 2**20


@dataclass(frozen=True, slots=True)
class SpillOwner:
    """Whose events a file has."""

    namespace: str
    episode_id: str


class Spill:
    """A spill file that this process holds. Positions never move, whatever is left behind.

    Attributes:
        owner: None: the file has no events.
        count: events that an earlier process left.
        first_sequence, last_sequence: of these; 0 without any.
        torn_bytes: cut off the end, since that process died writing them.
    """

    def __init__(self, path: str | os.PathLike[str], max_bytes: int) -> None:
        """Open or make the file and hold it.

        Raises:
            ValueError: another recorder holds it, it is not a spill file, or this is not Unix.
            OSError: it cannot be opened.
        """
        if fcntl is None:
            raise ValueError("a spill file requires a Unix system; use BLOCK or DROP")
        self.path = Path(path)
        self._max_bytes = max_bytes
        self._file = _hold(self.path)
        self.owner: SpillOwner | None = None
        self.count = self.first_sequence = self.last_sequence = self.torn_bytes = 0
        self._shift = 0  # of positions against places in the file
        self._header = b""
        try:
            self._size = os.fstat(self._file).st_size
            self._load()
        except BaseException:
            os.close(self._file)
            raise
        self.start = self._released = self._shift + len(self._header)

    @property
    def end(self) -> int:
        """Position behind the last event."""
        return self._shift + self._size

    def begin(self, owner: SpillOwner) -> None:
        """Take the events of ``owner`` from now on; there are no others."""
        self._cut(0)
        self._header = _MAGIC + _packed(json.dumps([owner.namespace, owner.episode_id]).encode())
        self._write(self._header)
        self.owner = owner
        self.start = self._released = self.end

    def append(self, data: bytes) -> int | None:
        """Add an event; the position behind it, or None if there is no space.

        Raises:
            OSError: the disk does not take it; then the file is as before.
        """
        record = _packed(data)
        if self._size + len(record) > self._max_bytes:
            if self._dead * 2 < self._size:
                return None
            self._leave_behind()
            if self._size + len(record) > self._max_bytes:
                return None
        self._write(record)
        return self.end

    def read(self, position: int) -> tuple[bytes, int]:
        """The event at a position before the end, and the position behind it."""
        length, _ = _HEAD.unpack(os.pread(self._file, _HEAD.size, position - self._shift))
        data = os.pread(self._file, length, position - self._shift + _HEAD.size)
        return data, position + _HEAD.size + length

    def release(self, position: int) -> None:
        """Everything before it is acknowledged."""
        self._released = max(self._released, position)
        if self._released == self.end:
            keep = len(self._header)
            self._shift += self._size - keep
            self._cut(keep)
        elif self._dead > _WORTH_A_COPY and self._dead * 2 > self._size:
            with contextlib.suppress(OSError):  # a full disk: later, then
                self._leave_behind()

    def close(self) -> None:
        """Let go of the file. One without events is left empty."""
        if self._released == self.end:
            self._cut(0)
        os.close(self._file)

    @property
    def _dead(self) -> int:
        return self._released - self._shift - len(self._header)

    def _write(self, data: bytes) -> None:
        try:
            _write_all(self._file, data, self._size)
        except OSError:
            os.ftruncate(self._file, self._size)
            raise
        self._size += len(data)

    def _cut(self, size: int) -> None:
        os.ftruncate(self._file, size)
        self._size = size

    def _leave_behind(self) -> None:
        """Put a copy of what is not acknowledged in the file's place, held as well."""
        dead = self._dead
        fresh = self.path.with_name(self.path.name + ".new")
        file = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            _lock(file)
            _write_all(file, self._header, 0)
            place = len(self._header)
            while chunk := os.pread(self._file, 2**20, place + dead):
                _write_all(file, chunk, place)
                place += len(chunk)
            fresh.replace(self.path)
        except BaseException:
            os.close(file)
            fresh.unlink(missing_ok=True)
            raise
        os.close(self._file)
        self._file, self._size = file, place
        self._shift += dead

    def _load(self) -> None:
        """Learn what an earlier process left, and cut a torn end off."""
        magic = os.pread(self._file, len(_MAGIC), 0)
        if not _MAGIC.startswith(magic):
            raise ValueError(f"{self.path} is not a spill file; use another path")
        good = 0
        for data, place in self._records(len(_MAGIC)):
            good = place
            if self.owner is None:
                self.owner = SpillOwner(*json.loads(data))
                self._header = os.pread(self._file, place, 0)
                continue
            self.last_sequence = EpisodeEvent.FromString(data).sequence
            self.first_sequence = self.first_sequence or self.last_sequence
            self.count += 1
        self.torn_bytes = self._size - good
        self._cut(good)

    def _records(self, place: int) -> Iterator[tuple[bytes, int]]:
        while len(head := os.pread(self._file, _HEAD.size, place)) == _HEAD.size:
            length, check = _HEAD.unpack(head)
            data = os.pread(self._file, length, place + _HEAD.size) if length < _MAX_RECORD else b""
            if len(data) < length or zlib.crc32(data) != check:
                return
            place += _HEAD.size + length
            yield data, place


def _packed(data: bytes) -> bytes:
    return _HEAD.pack(len(data), zlib.crc32(data)) + data


def _write_all(file: int, data: bytes, place: int) -> None:
    if os.pwrite(file, data, place) < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _hold(path: Path) -> int:
    """Open the file for this process alone."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(file)
            if os.fstat(file).st_ino == path.stat().st_ino:  # not one that a copy has replaced
                return file
        except BlockingIOError:
            os.close(file)
            raise ValueError(f"{path} is in use by another recorder; use another path") from None
        except FileNotFoundError:
            pass
        os.close(file)


def _lock(file: int) -> None:
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
