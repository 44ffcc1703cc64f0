"""With ``sync_always``, what was acknowledged survives a power loss."""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lot_grpc.domain.errors import StoreUnavailableError
from lot_grpc.ports import (
    CollectionSpec,
    IdIn,
    Index,
    MultiVector,
    Record,
    SparseVector,
    Update,
    Vector,
)
from lot_grpc.storage import durable
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.storage.edge_sync import ShardSync
from tests.contract.clock import FixedClock
from tests.storage.power_loss import PowerLoss
from tests.storage.samples import sample_id

SPEC = CollectionSpec(
    "samples",
    dense={"text": 8},
    sparse=("terms",),
    multi={"parts": 4},
    indexes={"n": Index.INTEGER, "word": Index.KEYWORD},
)
OTHER = CollectionSpec("other", indexes={"n": Index.FACETED_INTEGER})
SEEDS = (None, 1, 2)
"""Of what is lost: None is all that was not synced."""


def made(n: int, text: str = "") -> Record:
    rng = random.Random(n)
    vector = [rng.uniform(-1, 1) for _ in range(8)]
    vectors: dict[str, Vector] = {
        "text": vector,
        "terms": SparseVector([n % 50, 60 + n % 7], [1.0, 0.5]),
        "parts": MultiVector([vector[:4], vector[4:]]),
    }
    payload = {"n": n, "word": f"w{n % 9}", "text": text or f"text {n}"}
    return Record(sample_id(n), "a", payload, vectors)


@pytest.fixture
def disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> PowerLoss:
    return PowerLoss(folder, monkeypatch)


async def opened(folder: Path, *specs: CollectionSpec, always: bool = True) -> EdgeStore:
    store = EdgeStore(folder, FixedClock(), min_free_bytes=0, sync_always=always)
    await store.ensure_collections(specs or (SPEC, OTHER))
    return store


async def contents(store: EdgeStore, *names: str) -> dict[str, dict[str, object]]:
    return {
        name: {
            one.id: (one.payload, sorted(one.vectors.items(), key=lambda item: item[0]))
            for one in await store.scroll(name, "a", (), limit=10_000, vectors=True)
        }
        for name in names or (SPEC.name, OTHER.name)
    }


class Check:
    """Compares a store with what a power loss now would leave of it."""

    def __init__(self, disk: PowerLoss, tmp_path: Path) -> None:
        self._disk = disk
        self._folders = (tmp_path / f"after-{n}" for n in itertools.count())

    async def __call__(self, store: EdgeStore, *specs: CollectionSpec) -> None:
        names = [spec.name for spec in specs or (SPEC, OTHER)]
        expected = await contents(store, *names)
        for seed in SEEDS:
            left = await opened(self._disk.after(next(self._folders), seed), *specs, always=False)
            assert await contents(left, *names) == expected, f"seed {seed}"
            await left.close()


@pytest.fixture
def check(disk: PowerLoss, tmp_path: Path) -> Check:
    return Check(disk, tmp_path)


async def test_each_kind_of_write_survives(folder, disk, check):
    store = await opened(folder)
    await store.insert("samples", [made(0)])
    await check(store)
    assert disk.flushes == 1, "a new shard is flushed"
    await store.insert("samples", [made(n) for n in range(1, 20)])
    await check(store)
    await store.put("samples", [made(n, "put") for n in range(10, 30)])
    await check(store)
    assert await store.update("samples", "a", sample_id(3), set={"n": 300}, unset=("word",))
    await check(store)
    assert await store.update("samples", "a", sample_id(4), set={"word": "changed"})
    await check(store)
    assert await store.replace("samples", replace(made(5, "replaced"), vectors={}), ())
    await check(store)
    await store.set_vectors("samples", [replace(made(6), vectors=made(60).vectors)])
    await check(store)
    updates = [Update("a", sample_id(n), {"n": 1000 + n}) for n in (7, 8)]
    assert len(await store.update_many("samples", updates)) == 2
    await check(store)
    assert await store.delete("samples", "a", [IdIn((sample_id(9), sample_id(0)))]) == 2
    await check(store)
    await store.insert("samples", [made(9, "again")])
    await check(store)
    assert disk.flushes == 1, "the log was enough for all but the first"
    await store.insert("other", [Record(sample_id(1), "a", {"n": 1})])
    await check(store)
    assert disk.flushes == 2
    await store.close()


async def test_concurrent_writes_survive(folder, disk, check):
    store = await opened(folder)
    await store.insert("samples", [made(0)])
    await asyncio.gather(
        *(store.insert("samples", [made(n)]) for n in range(1, 20)),
        *(store.insert("other", [Record(sample_id(n), "a", {"n": n})]) for n in range(20)),
    )
    await check(store)
    assert disk.flushes == 2
    await store.close()


async def test_writes_after_a_flush_and_after_a_restart_survive(folder, disk, check):
    store = await opened(folder)
    await store.insert("samples", [made(n) for n in range(10)])
    await store.flush()
    await store.insert("samples", [made(n) for n in range(10, 20)])
    await check(store)
    await store.close()
    store = await opened(folder)
    await store.delete("samples", "a", [IdIn((sample_id(3),))])
    await check(store)
    await store.insert("samples", [made(30)])
    await check(store)
    await store.close()


async def test_writes_to_new_segments_of_the_log_and_new_pages_survive(folder, disk, check):
    """The log has segments of 32 MiB, and so have the pages of the payloads."""
    store = await opened(folder)
    await store.insert("samples", [made(0)])
    noise = random.Random(0)
    for n in range(1, 8):
        await store.insert("samples", [made(n, noise.randbytes(5 * 2**20).hex())])
        await check(store)
    assert list((folder / "samples/wal").glob("closed-*"))
    assert len(list((folder / "samples").glob("segments/*/payload_storage/page_*.dat"))) > 1
    await store.close()


async def test_new_indexes_and_vectors_survive(folder, disk, check):
    old = replace(SPEC, sparse=(), indexes={"n": Index.INTEGER})
    store = await opened(folder, old)
    await store.insert("samples", [replace(made(n), vectors={}) for n in range(9)])
    await store.close()
    store = await opened(folder, replace(SPEC, sparse=()))
    await store.insert("samples", [replace(made(10), vectors={})])
    await check(store, replace(SPEC, sparse=()))
    await store.extend(SPEC)
    await store.insert("samples", [made(11)])
    await check(store, SPEC)
    await store.drop_vectors("samples", ["parts"])
    await store.insert("samples", [replace(made(12), vectors={})])
    await check(store, replace(SPEC, multi={}))
    await store.close()


async def test_after_a_failed_sync_the_whole_shard_is_flushed(folder, disk, check, monkeypatch):
    """The kernel reports a failed write-back once, so the next sync of the log proves nothing."""
    store = await opened(folder)
    await store.insert("samples", [made(0)])
    await store.insert("samples", [made(1)])
    assert disk.flushes == 1

    def fail(file: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as failing:
        failing.setattr(durable, "sync_data", fail)
        with pytest.raises(StoreUnavailableError, match="Input/output error"):
            await store.insert("samples", [made(2)])
    await store.insert("samples", [made(3)])
    assert disk.flushes == 2
    await check(store)
    await store.close()


async def test_a_folder_that_cannot_be_listed_fails_the_write(folder, disk, check, monkeypatch):
    store = await opened(folder)
    scandir, failures = os.scandir, [1]

    def fail(path: str) -> Any:
        if Path(path).name == "segments" and failures:
            failures.pop()
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return scandir(path)

    sync_files = ShardSync.sync_files

    def failing(self: ShardSync) -> None:
        with monkeypatch.context() as inside:
            inside.setattr(os, "scandir", fail)
            sync_files(self)

    with monkeypatch.context() as once:
        once.setattr(ShardSync, "sync_files", failing)
        with pytest.raises(StoreUnavailableError, match="Too many open files"):
            await store.insert("samples", [made(0)])
    await store.insert("samples", [made(1)])
    assert disk.flushes == 2
    await check(store)
    await store.close()
