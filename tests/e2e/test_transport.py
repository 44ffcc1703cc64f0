"""Hostile bytes against a real process: it serves on, in bounded memory."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from tests.e2e.process import Served
from tests.server.frames import Connection, Pour
from tests.server.service import reaching
from tests.server.wire import SAVE

MIB = 2**20


def memory(server: Served) -> int:
    """What the process has in memory, in bytes."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found
    return int(found[1]) * 1024


async def test_a_path_that_is_no_utf8_does_not_end_serving(running):
    async with reaching(running.address) as before:
        assert await before.patterns.SavePattern(pattern={"task": "before"}, pattern_id="p")
        for _ in range(3):
            with Connection(running.port) as out:
                out.call(b"/lot.\xb7/X")
                await asyncio.to_thread(out.read)
        assert (await before.patterns.GetPattern(pattern_id="p")).pattern.task == "before"
        async with reaching(running.address) as after:
            assert (await after.on(before.namespace).patterns.GetPattern(pattern_id="p")).pattern


@pytest.mark.parametrize("path", [SAVE, "/lot.v1.EpisodeService/RecordEvents"])
async def test_150_messages_that_stop_before_their_end_take_bounded_memory(running, path):
    """15 of 16 MiB each, 2.2 GB in all; what the documents allow is 256 MiB, and some more."""
    async with reaching(running.address) as lot:
        assert await lot.patterns.SavePattern(pattern={"task": "t"})
        start = most = memory(running)
        calls = [Pour(path.encode(), 16 * MIB - 5, 15 * MIB) for _ in range(150)]
        tasks = [asyncio.create_task(call.run(running.port)) for call in calls]
        try:
            async with asyncio.timeout(60):
                while sum(task.done() for task in tasks) < 120:
                    await lot.patterns.ListPatterns(timeout=10)
                    most = max(most, memory(running))
                    await asyncio.sleep(0.02)
        finally:
            for task in tasks:
                task.cancel()
        assert most - start < 900 * MIB
        assert await lot.patterns.SavePattern(pattern={"task": "after"})
