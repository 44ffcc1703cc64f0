"""Removes from the files of a shard what was deleted or overwritten.

Edge marks a deleted point, frees the place of an overwritten payload and acknowledges what is in
its log, but the bytes stay until their place is needed again. Two things remove them for good:

- A segment with a deleted point is written anew, with any number of points. Segments that accept
  writes may also contain overwritten payloads, so a point of our own is added and deleted first.
- A segment of the log is cut to its contents, so that the next write opens another. Edge removes
  closed segments at a flush, except for the newest, so this is done twice.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import qdrant_edge as edge
from qdrant_edge import UpdateOperation

from lot_grpc.ports import EXPIRES_KEY, Record
from lot_grpc.storage.edge_points import point
from lot_grpc.storage.edge_schema import CONFIG_NAME

LOG_FOLDER: Final = "wal"

_OURS: Final = Record(str(uuid.uuid5(uuid.NAMESPACE_OID, "lot-grpc/erasure")), "", {EXPIRES_KEY: 0})
"""Expired, so that no search finds it if the process dies before it is deleted again."""

_HALF_BUILT: Final = "temp_segments"
_EVERY_DELETED: Final = {"deleted_threshold": 1e-9, "vacuum_min_vector_number": 1}
_ALIGNMENT: Final = 8
_SPARE: Final = 16
"""Bytes kept after the last that is not zero, as entries may end in zeros; too few for one."""


def log_state(folder: Path) -> dict[str, int]:
    """The length of the contents of each open segment of the log: equal if nothing was written."""
    return {file.name: _contents(file) for file in sorted((folder / LOG_FOLDER).glob("open-*"))}


def close_log(folder: Path) -> None:
    """Make the next write to a closed shard open another segment of its log.

    Segments that a killed compaction left half-built are removed too.
    """
    shutil.rmtree(folder / _HALF_BUILT, ignore_errors=True)
    for name, length in log_state(folder).items():
        if length > _ALIGNMENT:  # more than its header
            whole = -(-(length + _SPARE) // _ALIGNMENT) * _ALIGNMENT
            file = folder / LOG_FOLDER / name
            if whole < file.stat().st_size:
                os.truncate(file, whole)


@contextmanager
def rewriting_segments(folder: Path) -> Iterator[None]:
    """Let ``optimize`` write every segment anew that has a deleted point.

    Edge reads this from the shard's file when it is opened. If it is not set back, later
    compactions are only slower.
    """
    file = folder / CONFIG_NAME
    former = file.read_text()
    content = json.loads(former)
    _replace(file, json.dumps(content | {"optimizers": {**_unset(content), **_EVERY_DELETED}}))
    try:
        yield
    finally:
        _replace(file, json.dumps(json.loads(file.read_text()) | {"optimizers": _unset(content)}))


def touch(shard: edge.EdgeShard) -> None:
    """Add a point and delete it, in the log and in the segment that accepts writes."""
    shard.update(UpdateOperation.upsert_points([point(_OURS)]))
    shard.update(UpdateOperation.delete_points([_OURS.id]))
    shard.flush()


def _unset(content: dict[str, dict[str, object] | None]) -> dict[str, object]:
    """The shard's own optimizer settings, with Edge's defaults for ours."""
    return {**(content.get("optimizers") or {}), **dict.fromkeys(_EVERY_DELETED)}


def _contents(file: Path) -> int:
    """The length without the zeros at its end; holes are not read, which could fill them."""
    length = 0
    with file.open("rb") as opened:
        for start, end in _written(opened.fileno(), file.stat().st_size):
            opened.seek(start)
            if data := opened.read(end - start).rstrip(b"\0"):
                length = start + len(data)
    return length


def _written(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """The ranges of a file that are not holes."""
    end = 0
    while end < size:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole follows
                return
            raise
        end = os.lseek(descriptor, start, os.SEEK_HOLE)
        yield start, end


def _replace(file: Path, text: str) -> None:
    new = file.with_name(f".new-{file.name}")
    new.write_text(text)
    new.replace(file)
