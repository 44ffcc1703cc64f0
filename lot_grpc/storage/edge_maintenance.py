"""Offline compaction of the embedded store: merge segments, index vectors, drop deleted points.

Edge's ``optimize()`` holds the GIL for as long as it takes (a minute and more at 100,000 vectors),
so it never runs in the serving process. It runs before serving, in a child process::

    python -m lot_grpc.storage.edge_maintenance FOLDER [COLLECTION ...]

It locks the folder, compacts the named collections (none named: all), and writes one JSON line per
collection to its standard output, the fields of ``ShardCompaction``. If it cannot continue, it
writes the reason to its standard error and exits with status 1.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import qdrant_edge as edge

from lot_grpc.domain.errors import LotError, StartupError
from lot_grpc.storage.edge_shard import EDGE_ERRORS, load, shard_folders
from lot_grpc.storage.lock import FolderLock
from lot_grpc.storage.manifest import Manifest, missing_things
from lot_grpc.storage.space import SpaceGuard, used_bytes

STATE_NAME = "lot.maintenance.json"

_GROWTH_BYTES = 96 * 2**20
"""About 10,000 patterns with a 384-d vector: below that an unindexed search costs 1 ms at most."""

_GROWTH_SHARE = 4
_LOG_FOLDER = "wal"


@dataclass(frozen=True, slots=True)
class ShardCompaction:
    """What was done to one collection. ``skipped`` says why nothing was done, else it is empty."""

    collection: str
    points: int
    segments_before: int
    segments_after: int
    bytes_before: int
    bytes_after: int
    seconds: float
    changed: bool
    skipped: str = ""


def needs_compaction(folder: Path) -> list[str]:
    """Collections that grew by 96 MiB and by a quarter since they were last compacted.

    Reads only file sizes: it takes milliseconds and needs no lock. Growth is a proxy both for
    unindexed vectors and for the remains of changed and deleted points.
    """
    state = _read_state(folder)
    grown = []
    for shard in shard_folders(folder):
        after = state.get(shard.name, 0)
        size = used_bytes(shard, without=_LOG_FOLDER)
        if size - after > max(_GROWTH_BYTES, after // _GROWTH_SHARE):
            grown.append(shard.name)
    return grown


def compact_folder(folder: Path, collections: Sequence[str] = ()) -> Iterator[ShardCompaction]:
    """Compact the collections (none named: all) one by one, under the folder's lock.

    Safe to kill: Edge swaps whole segments.
    """
    lock = FolderLock(folder)
    try:
        manifest = Manifest(folder)
        if missing := manifest.missing_files():
            raise StartupError(missing_things(folder, missing))
        for shard in shard_folders(folder):
            if not collections or shard.name in collections:
                done = _compact(shard, manifest)
                _write_state(folder, done)
                yield done
    finally:
        lock.release()


async def compact_in_child(
    folder: Path, collections: Sequence[str] = ()
) -> AsyncIterator[ShardCompaction]:
    """Run this module in a child process and report each collection as it is done.

    Raises:
        StartupError: the child could not continue; the message is the child's.
    """
    command = [sys.executable, "-m", __name__, str(folder), *collections]
    child = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    if child.stdout is None or child.stderr is None:
        raise RuntimeError("the child process has no pipes")
    try:
        async for line in child.stdout:
            yield ShardCompaction(**json.loads(line))
        message = (await child.stderr.read()).decode(errors="replace").strip()
        if await child.wait() != 0:
            raise StartupError(
                f"compaction of {folder} failed: {message or f'status {child.returncode}'}"
            )
    finally:
        if child.returncode is None:
            child.terminate()
            await child.wait()


def _compact(folder: Path, manifest: Manifest) -> ShardCompaction:
    started = time.monotonic()
    bytes_before = used_bytes(folder, without=_LOG_FOLDER)
    free = SpaceGuard(folder).free()
    if free < 2 * bytes_before:
        reason = f"needs {2 * bytes_before // 2**20} MiB free, only {free // 2**20} are available"
        return ShardCompaction(
            folder.name, 0, 0, 0, bytes_before, bytes_before, 0.0, changed=False, skipped=reason
        )
    shard = load(folder)
    with EDGE_ERRORS:
        try:
            before = shard.info()
            count = shard.count(edge.CountRequest(True, None))
            if missing := manifest.missing_records(folder.name, count):
                raise StartupError(missing_things(folder.parent, [missing]))
            manifest.forget(folder.name)
            changed = shard.optimize()
            shard.flush()
            after = shard.info()
        finally:
            shard.close()
    manifest.note(folder.name)
    manifest.save()
    return ShardCompaction(
        collection=folder.name,
        points=after.points_count,
        segments_before=before.segments_count,
        segments_after=after.segments_count,
        bytes_before=bytes_before,
        bytes_after=used_bytes(folder, without=_LOG_FOLDER),
        seconds=round(time.monotonic() - started, 3),
        changed=changed,
    )


def _read_state(folder: Path) -> dict[str, int]:
    try:
        state = json.loads((folder / STATE_NAME).read_text())
    except (OSError, ValueError):  # nothing is lost: every collection is examined again
        return {}
    return {str(name): int(size) for name, size in state.items()}


def _write_state(folder: Path, done: ShardCompaction) -> None:
    if done.skipped:
        return
    state = _read_state(folder) | {done.collection: done.bytes_after}
    new = folder / f".{STATE_NAME}"
    new.write_text(json.dumps(state))
    new.replace(folder / STATE_NAME)


def main(arguments: Sequence[str]) -> int:
    """The entry point of the child process; returns its exit status."""
    if not arguments:
        sys.stderr.write("usage: FOLDER [COLLECTION ...]\n")
        return 1
    try:
        for done in compact_folder(Path(arguments[0]), arguments[1:]):
            sys.stdout.write(json.dumps(asdict(done)) + "\n")
            sys.stdout.flush()
    except LotError as error:
        sys.stderr.write(f"{error.message}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
