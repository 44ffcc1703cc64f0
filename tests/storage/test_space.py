from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from lot_grpc.domain.errors import StartupError, StorageFullError, StoreLockedError
from lot_grpc.ports import Range
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.storage.space import SpaceGuard, used_bytes
from tests.contract.clock import FixedClock
from tests.storage.samples import SPEC, sample, sample_id

MIB = 2**20


@dataclass
class Disk:
    """A disk whose free space the test sets."""

    free: int
    looks: int = 0
    f_frsize: int = 4096

    @property
    def f_bavail(self) -> int:
        return self.free // self.f_frsize

    def statvfs(self, _: Path) -> Disk:
        self.looks += 1
        return self

    def guard(self, folder: Path) -> SpaceGuard:
        return SpaceGuard(folder, 400 * MIB, statvfs=self.statvfs)


async def test_writes_stop_below_the_watermark_and_resume_by_themselves(folder: Path) -> None:
    disk = Disk(free=401 * MIB)
    store = EdgeStore(folder, FixedClock(), space=disk.guard(folder))
    await store.ensure_collections([SPEC])
    await store.insert(SPEC.name, [sample(1), sample(2)])
    disk.free = 399 * MIB
    with pytest.raises(StorageFullError, match=r"399 MiB free .* need 400 MiB"):
        await store.insert(SPEC.name, [sample(3)])
    for write in (
        store.put(SPEC.name, [sample(1)]),
        store.replace(SPEC.name, sample(1), ()),
        store.update(SPEC.name, "a", sample_id(1), set={"n": 9}),
        store.check(),
    ):
        with pytest.raises(StorageFullError):
            await write
    assert not (await store.info()).writable
    assert set(await store.get(SPEC.name, "a", [sample_id(1)])) == {sample_id(1)}
    assert await store.count(SPEC.name, "a", [Range("n", lt=9)]) == 2
    disk.free = 500 * MIB
    assert await store.insert(SPEC.name, [sample(3)]) == {sample_id(3)}
    await store.check()
    await store.close()


async def test_deletes_go_on_down_to_the_emergency_margin(folder: Path) -> None:
    disk = Disk(free=500 * MIB)
    store = EdgeStore(folder, FixedClock(), space=disk.guard(folder))
    await store.ensure_collections([SPEC])
    await store.insert(SPEC.name, [sample(1), sample(2)])
    disk.free = 101 * MIB
    assert await store.delete(SPEC.name, "a", [Range("n", lt=2)]) == 1
    disk.free = 99 * MIB
    with pytest.raises(StorageFullError):
        await store.delete(SPEC.name, "a", ())
    assert await store.count(SPEC.name, "a") == 1
    await store.close()


def test_a_store_is_not_opened_on_a_full_disk_and_gives_the_folder_up(folder: Path) -> None:
    disk = Disk(free=99 * MIB)
    for _ in range(2):
        with pytest.raises(StartupError, match="free some space and start again") as caught:
            EdgeStore(folder, FixedClock(), space=disk.guard(folder))
        assert not isinstance(caught.value, StoreLockedError)


def test_the_disk_is_looked_at_before_each_write(tmp_path: Path) -> None:
    disk = Disk(free=500 * MIB)
    guard = disk.guard(tmp_path)
    guard.require_write()
    disk.free = 0  # at once, as by a file that is allocated whole
    with pytest.raises(StorageFullError):
        guard.require_write()
    assert disk.looks == 2


def test_without_a_watermark_nothing_is_refused(tmp_path: Path) -> None:
    guard = SpaceGuard(tmp_path, 0, statvfs=Disk(free=0).statvfs)
    guard.require_open()
    guard.require_write()
    guard.require_delete()


def test_sparse_files_count_by_what_they_occupy(tmp_path: Path) -> None:
    (tmp_path / "wal").mkdir()
    with (tmp_path / "wal" / "open-1").open("wb") as file:
        file.truncate(32 * MIB)
        file.write(b"x")
    (tmp_path / "data").write_bytes(b"x" * 8192)
    assert 0 < used_bytes(tmp_path) < MIB
    assert 8192 <= used_bytes(tmp_path, without="wal") <= 16384
