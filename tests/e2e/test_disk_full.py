"""A real file system that fills up: writes are refused, reads go on, writes come back."""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lot_grpc.pb.lot.v1 import memory_pb2
from tests.e2e.process import PATIENCE, run, wait_for
from tests.e2e.test_indexing import COMPLETE, long_content
from tests.server.service import Lot, reaching
from tests.server.test_episodes_stream import Stream, events
from tests.server.wire import failure

MIB = 2**20
SIZE = int(os.environ.get("LOT_TEST_DISK_MIB", "2048"))
"""Size of the file system. 2 GB is enough for the watermark as it is by default."""


def available_memory() -> int:
    """Bytes that may be had, the kernel's caches included; 0 where it does not say."""
    try:
        told = re.search(
            r"^MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE
        )
    except OSError:
        return 0
    return int(told[1]) * 1024 if told else 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of its own, which takes memory only for what is written."""
    if available_memory() < 2 * SIZE * MIB:
        pytest.skip(f"needs {2 * SIZE} MiB of free memory for a tmpfs (LOT_TEST_DISK_MIB)")
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}m", "lot-test", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("needs `mount`")
    if mounted.returncode != 0:
        pytest.skip(f"may not mount a tmpfs here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path, leave: int) -> Path:
    """Another file takes all but ``leave`` bytes, at once."""
    file = disk / "another-file"
    while True:  # a server that writes may take some of the room meanwhile
        stat = os.statvfs(disk)
        try:
            with file.open("wb") as opened:
                os.posix_fallocate(opened.fileno(), 0, stat.f_bavail * stat.f_frsize - leave)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
        else:
            return file


async def refused(lot: Lot) -> None:
    """Each kind of write is, with the reason."""
    for call in (
        lot.patterns.SavePattern(pattern={"task": "new"}),
        lot.patterns.BatchSavePatterns(items=[{"pattern": {"task": "new"}}]),
        lot.patterns.RecordOutcome(pattern_ids=["p"], outcome=1),
        lot.memories.CreateMemory(memory={"content": "new"}),
        lot.episodes.StartEpisode(episode={"task": "new"}),
        lot.episodes.RecordEvent(episode_id="e2", event={"event_type": "x"}),
        lot.episodes.EndEpisode(episode_id="e2", status=2),
    ):
        failed = await failure(call)
        assert (failed.code, failed.reason) == ("RESOURCE_EXHAUSTED", "STORAGE_FULL")
        assert int(failed.metadata["free_bytes"]) < int(failed.metadata["min_free_bytes"])
        assert "free some space" in failed.message


async def test_a_full_disk_refuses_writes_and_with_room_again_takes_them(serve, disk):
    server = serve(disk / "data")
    async with reaching(server.address) as lot:
        await lot.patterns.SavePattern(pattern={"task": "before"}, pattern_id="p")
        for name in ("e", "e2"):
            await lot.episodes.StartEpisode(episode={"task": "t"}, episode_id=name)
        stream = Stream(lot)
        await stream.open(events=events([1]))
        needed = (await lot.admin.GetServerInfo()).store.min_free_bytes
        assert needed == 400 * MIB
        filling = fill(disk, 0)
        await _until_refused(lot)
        await refused(lot)
        assert (await failure(stream.send([2]))).reason == "STORAGE_FULL"
        await _reads_go_on(lot)
        await asyncio.to_thread(wait_for, lambda: "housekeeping failed" in server.logged())
        assert "Traceback" not in server.logged(), "a full disk is no bug"
        filling.unlink()
        await _until_taken(lot)
        again = Stream(lot)
        assert (await again.open()).last_sequence == 1
        assert (await again.send([2])).last_sequence == 2
        assert (await lot.admin.CheckReady()).ready
    assert server.stop() == 0


async def test_a_memory_that_a_full_disk_keeps_from_being_indexed_says_so(serve, disk):
    server = serve(disk / "data")
    async with reaching(server.address) as lot:
        async with asyncio.timeout(PATIENCE):
            memory, filling = await _kept_from_being_indexed(lot, disk)
        assert "free some space" in memory.indexing_problem
        checks = {one.name: one.detail for one in (await lot.admin.CheckReady()).checks}
        assert "free some space" in checks["indexing"]
        filling.unlink()
        async with asyncio.timeout(PATIENCE):
            while memory.indexing != COMPLETE:
                await asyncio.sleep(0.1)
                memory = await _memory(lot, memory.memory_id)
        assert not memory.indexing_problem
    assert server.stop() == 0


async def _kept_from_being_indexed(lot: Lot, disk: Path) -> tuple[memory_pb2.Memory, Path]:
    """A memory, and the file that fills the disk."""
    for number in itertools.count():
        content = {"content": long_content(number)}
        memory = (await lot.memories.CreateMemory(memory=content)).memory
        assert memory.indexing == memory_pb2.INDEXING_STATE_PENDING
        filling = fill(disk, 0)
        while memory.indexing != COMPLETE:
            if memory.indexing_problem:
                return memory, filling
            await asyncio.sleep(0.1)
            memory = await _memory(lot, memory.memory_id)
        filling.unlink()  # it was indexed before the disk was full
        while not (await lot.admin.GetServerInfo()).store.writable:
            await asyncio.sleep(0.1)
    raise AssertionError


async def _memory(lot: Lot, memory_id: str) -> memory_pb2.Memory:
    memory: memory_pb2.Memory = (await lot.memories.GetMemory(memory_id=memory_id)).memory
    return memory


async def _until_refused(lot: Lot) -> None:
    """A reading of the free space is good for a quarter of a second."""
    for number in range(1000):
        answer = await lot.memories.DeleteMemory(memory_id="none", allow_missing=True)
        assert not answer.deleted
        if not (await lot.admin.GetServerInfo()).store.writable:
            return
        assert number < 999, "it never noticed that the disk is full"


async def _reads_go_on(lot: Lot) -> None:
    assert (await lot.patterns.GetPattern(pattern_id="p")).pattern.task == "before"
    assert (await lot.patterns.RecallPatterns(query="before")).hits
    assert (await lot.episodes.ListEpisodeEvents(episode_id="e")).events[0].sequence == 1
    told = await lot.admin.CheckReady()
    assert not told.ready
    assert [check.name for check in told.checks if not check.ok] == ["store"]
    assert "rejected" in (await lot.admin.GetServerInfo()).store.detail


async def _until_taken(lot: Lot) -> None:
    for _ in range(1000):
        if (await lot.admin.GetServerInfo()).store.writable:
            break
    assert (await lot.patterns.SavePattern(pattern={"task": "new"})).created


async def test_a_store_on_a_full_disk_is_not_opened_and_whole_with_room_again(serve, disk):
    server = serve(disk / "data")
    async with reaching(server.address) as lot:
        await lot.patterns.SavePattern(pattern={"task": "before"}, pattern_id="p")
        filling = fill(disk, 0)
        assert (await lot.patterns.RecallPatterns(query="before")).hits
    if server.stop() != 0:  # what could not be flushed is in the write-ahead log
        last = server.logged().splitlines()[-2]
        assert last.startswith("error: the embedded store failed")
        assert "a restart reopens the store" in last
    ran = run(disk / "data", "serve")
    assert ran.code == 1, ran
    assert "MiB free" in ran.errors
    assert "nothing is lost" in ran.errors
    assert "Traceback" not in ran.stderr
    assert run(disk / "data", "check").code == 1
    filling.unlink()
    again = serve(disk / "data")
    async with reaching(again.address) as lot_again:
        found = await lot_again.on(lot.namespace).patterns.GetPattern(pattern_id="p")
        assert found.pattern.task == "before"
