"""Offline compaction of the embedded store: merge segments, index vectors, drop deleted points.

Edge's ``optimize()`` holds the GIL for as long as it takes (a minute and more at 100,000 vectors),
so it never runs in the serving process. It runs before serving, in a child process::

    python -m lot_grpc.storage.edge_maintenance FOLDER [COLLECTION ...]

It locks the folder, compacts the named collections, and writes one JSON line per collection to its
standard output, the fields of ``ShardCompaction``. With none named, it compacts all, and also
erases what was deleted or overwritten from their files. If it cannot continue, it writes the reason
to its standard error and exits with status 1.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import qdrant_edge as edge

from lot_grpc.domain.errors import LotError, StartupError
from lot_grpc.storage.edge_erasure import (
    LOG_FOLDER,
    close_log,
    log_state,
    rewriting_segments,
    touch,
)
from lot_grpc.storage.edge_shard import EDGE_ERRORS, load, shard_folders
from lot_grpc.storage.lock import FolderLock
from lot_grpc.storage.manifest import Manifest, missing_things
from lot_grpc.storage.space import SpaceGuard, used_bytes

STATE_NAME = "lot.maintenance.json"

_GROWTH_BYTES = 96 * 2**20
"""About 10,000 patterns with a 384-d vector: below that an unindexed search costs 1 ms at most."""

_GROWTH_SHARE = 4


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
        after = state[shard.name].size if shard.name in state else 0
        size = used_bytes(shard, without=LOG_FOLDER)
        if size - after > max(_GROWTH_BYTES, after // _GROWTH_SHARE):
            grown.append(shard.name)
    return grown


def compact_folder(folder: Path, collections: Sequence[str] = ()) -> Iterator[ShardCompaction]:
    """Compact the collections one by one, under the folder's lock.

    None named: all, and erase what was deleted or overwritten from those that were written to.
    Safe to kill: Edge swaps whole segments.
    """
    lock = FolderLock(folder)
    try:
        manifest = Manifest(folder)
        if missing := manifest.missing_files():
            raise StartupError(missing_things(folder, missing))
        for shard in shard_folders(folder):
            if not collections:
                erased = _read_state(folder).get(shard.name)
                erase = erased is None or erased.log != log_state(shard)
            elif shard.name in collections:
                erase = False
            else:
                continue
            done = _compact(shard, manifest, erase=erase)
            if not done.skipped:
                log = log_state(shard) if erase or not collections else {}
                _write_state(folder, shard.name, _State(done.bytes_after, log))
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


def _compact(folder: Path, manifest: Manifest, *, erase: bool) -> ShardCompaction:
    started = time.monotonic()
    bytes_before = used_bytes(folder, without=LOG_FOLDER)
    free = SpaceGuard(folder).free()
    if free < 2 * bytes_before:
        reason = f"needs {2 * bytes_before // 2**20} MiB free, only {free // 2**20} are available"
        return ShardCompaction(
            folder.name, 0, 0, 0, bytes_before, bytes_before, 0.0, changed=False, skipped=reason
        )
    with _loaded(folder) as shard:
        before = shard.info()
        count = shard.count(edge.CountRequest(True, None))
        if missing := manifest.missing_records(folder.name, count):
            raise StartupError(missing_things(folder.parent, [missing]))
        manifest.forget(folder.name)
        changed = not erase and shard.optimize()
        shard.flush()
        after = shard.info()
    for _ in range(2 if erase else 0):
        close_log(folder)
        with rewriting_segments(folder), _loaded(folder) as shard:
            touch(shard)
            changed |= shard.optimize()
            shard.flush()
            after = shard.info()
    manifest.note(folder.name)
    manifest.save()
    return ShardCompaction(
        collection=folder.name,
        points=after.points_count,
        segments_before=before.segments_count,
        segments_after=after.segments_count,
        bytes_before=bytes_before,
        bytes_after=used_bytes(folder, without=LOG_FOLDER),
        seconds=round(time.monotonic() - started, 3),
        changed=changed,
    )


@contextmanager
def _loaded(folder: Path) -> Iterator[edge.EdgeShard]:
    shard = load(folder)
    with EDGE_ERRORS:
        try:
            yield shard
        finally:
            shard.close()


@dataclass(frozen=True, slots=True)
class _State:
    """A collection after its last compaction: its size, and its log if that was erased."""

    size: int
    log: dict[str, int]


def _read_state(folder: Path) -> dict[str, _State]:
    try:
        state = json.loads((folder / STATE_NAME).read_text())
        return {str(name): _State(int(one["size"]), one["log"]) for name, one in state.items()}
    except (OSError, ValueError, TypeError, KeyError):
        return {}  # nothing is lost: every collection is examined again


def _write_state(folder: Path, name: str, done: _State) -> None:
    state = {**_read_state(folder), name: done}
    new = folder / f".{STATE_NAME}"
    new.write_text(json.dumps({name: asdict(one) for name, one in state.items()}))
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
