"""What happens to events that find no room, by policy, and to those that a process left behind."""

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from cutting import Cutter
from either import Either
from lot_client import LotClient, LotError, RetryPolicy
from lot_client.pb.lot.v1.episode_pb2 import EpisodeEvent
from lot_client.recorder_spill import Spill, SpillOwner
from scripted import Scripted, ends

RETRY = RetryPolicy(first_delay=0.01, max_delay=0.05)


@pytest.fixture
def way(server: Scripted) -> Iterator[Cutter]:
    with Cutter(server.address) as made:
        yield made


@asynccontextmanager
async def recording_cut(either: Either, way: Cutter, **options: Any) -> AsyncIterator[Any]:
    """A recorder whose server has just gone away."""
    async with (
        either(way.address, retry=RETRY) as client,
        client.recorder("A task", max_delay=0.0, **options) as recorder,
    ):
        way.go_away()
        yield recorder


def numbers(server: Scripted) -> list[float]:
    return [event.data["n"] for event in server.stored if event.event_type == "step"]


async def test_block_waits_for_room(either: Either, server: Scripted, way: Cutter):
    async with recording_cut(either, way, max_buffer_events=10) as recorder:
        for n in range(10):
            await recorder.record("step", {"n": n})
        waiting = asyncio.create_task(recorder.record("step", {"n": 10}))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        assert recorder.stats.buffered == recorder.stats.recorded == 10
        way.come_back()
        await waiting

    assert numbers(server) == list(range(11))


async def test_block_may_have_an_end(either: Either, server: Scripted, way: Cutter):
    options = {"max_buffer_events": 3, "block_timeout": 0.02}
    async with recording_cut(either, way, **options) as recorder:
        for n in range(3):
            await recorder.record("step", {"n": n})
        with pytest.raises(LotError, match="stayed full for") as full:
            await recorder.record("step", {"n": 99})
        way.come_back()
        await recorder.flush()
        await recorder.record("step", {"n": 3})

    assert full.value.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert numbers(server) == list(range(4))


async def test_bytes_are_bounded_too_and_a_large_event_still_fits(
    either: Either, server: Scripted, way: Cutter
):
    options = {"max_buffer_bytes": 1000, "block_timeout": 0.0}
    async with recording_cut(either, way, **options) as recorder:
        await recorder.record("step", {"n": 0, "text": "x" * 5000})
        with pytest.raises(LotError, match="full"):
            await recorder.record("step", {"n": 1})
        way.come_back()

    assert numbers(server) == [0]


async def test_drop_leaves_no_gap_and_the_log_says_so(
    either: Either, server: Scripted, way: Cutter
):
    options = {"max_buffer_events": 5, "when_full": "DROP"}
    async with recording_cut(either, way, **options) as recorder:
        for n in range(12):
            await recorder.record("step", {"n": n})
        away = recorder.stats
        way.come_back()
        await recorder.flush()
        await recorder.record("step", {"n": 12})

    marker = server.stored[5]
    assert (away.recorded, away.dropped) == (5, 7)
    assert numbers(server) == [0, 1, 2, 3, 4, 12]
    assert (marker.event_type, marker.data["count"]) == ("recorder.dropped", 7)
    assert [event.sequence for event in server.stored] == list(range(1, 8))
    assert recorder.stats.dropped == 7
    assert recorder.stats.recorded == recorder.stats.acknowledged == 7


async def test_drops_at_the_very_end_are_told_too(either: Either, server: Scripted, way: Cutter):
    options = {"max_buffer_events": 1, "when_full": "DROP"}
    async with recording_cut(either, way, **options) as recorder:
        for n in range(3):
            await recorder.record("step", {"n": n})
        way.come_back()

    assert [event.event_type for event in server.stored] == ["step", "recorder.dropped"]


async def test_spill_takes_what_memory_cannot(
    either: Either, server: Scripted, way: Cutter, tmp_path: Path
):
    path = tmp_path / "spill"
    options = {"max_buffer_events": 10, "when_full": "SPILL", "spill_path": path}
    async with recording_cut(either, way, **options) as recorder:
        for n in range(500):
            await recorder.record("step", {"n": n})
        away = recorder.stats
        assert path.stat().st_size > 500 * 20
        way.come_back()
        await recorder.flush()
        assert path.stat().st_size < 100

    assert (away.recorded, away.buffered, away.spilled) == (500, 10, 490)
    assert numbers(server) == list(range(500))
    assert path.stat().st_size == 0


async def test_a_full_spill_file_blocks(
    either: Either, server: Scripted, way: Cutter, tmp_path: Path
):
    path = tmp_path / "spill"
    options = {
        "max_buffer_events": 2,
        "when_full": "SPILL",
        "spill_path": path,
        "max_spill_bytes": 2000,
        "block_timeout": 0.0,
    }
    async with recording_cut(either, way, **options) as recorder:
        with pytest.raises(LotError, match="full"):
            await record_for_ever(recorder)
        taken = recorder.stats.recorded
        assert path.stat().st_size <= 2000
        way.come_back()
        await recorder.flush()
        await recorder.record("step", {"n": taken})

    assert taken > 10
    assert numbers(server) == list(range(taken + 1))


async def record_for_ever(recorder: Any) -> None:
    for n in itertools.count():
        await recorder.record("step", {"n": n})


async def test_a_disk_that_takes_no_more_refuses_the_event(
    either: Either, server: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    options = {"when_full": "SPILL", "spill_path": tmp_path / "spill"}
    async with either(server.address) as client, client.recorder("A task", **options) as recorder:
        await recorder.record("step", {"n": 0})
        with monkeypatch.context() as full:
            full.setattr(os, "pwrite", lambda file, data, place: len(data) - 1)
            with pytest.raises(LotError, match="spill file cannot be written"):
                await recorder.record("step", {"n": 99})
        await recorder.record("step", {"n": 1})

    assert numbers(server) == [0, 1]


def leave(path: Path, owner: SpillOwner, count: int) -> None:
    """What a recorder that dies leaves in its file."""
    spill = Spill(path, 10**6)
    spill.begin(owner)
    for n in range(count):
        event = EpisodeEvent(sequence=n + 1, event_type="step")
        event.event_time.FromSeconds(1_800_000_000 + n)
        event.data["n"] = n
        spill.append(event.SerializeToString())
    spill.close()


def die_recording(address: str, path: Path, episode_id: str = "") -> None:
    """Another process records 300 events that no server acknowledges, and is killed."""
    code = """
        import os, signal, sys
        from lot_client import LotClient
        address, path, episode_id = sys.argv[1:]
        recorder = LotClient(address).recorder(
            "" if episode_id else "A task", episode_id=episode_id, max_delay=0.0,
            when_full="SPILL", spill_path=path, max_buffer_events=5,
        )
        recorder.__enter__()
        for n in range(300):
            recorder.record("step", {"n": n})
        os.kill(os.getpid(), signal.SIGKILL)
    """
    command = [sys.executable, "-c", textwrap.dedent(code), address, str(path), episode_id]
    done = subprocess.run(command, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL


async def test_what_a_killed_process_left_is_sent_by_the_next(
    either: Either, server: Scripted, tmp_path: Path
):
    path = tmp_path / "spill"
    unanswered = ends(grpc.StatusCode.UNAVAILABLE)
    server.answering += [unanswered] * 2
    server.opening += [lambda _: None] + [unanswered] * 3
    die_recording(server.address, path)
    before = len(server.stored)
    server.opening.clear()
    server.answering.clear()
    options = {"when_full": "SPILL", "spill_path": path, "end": False}
    async with (
        either(server.address) as client,
        client.recorder(episode_id="e-1", **options) as recorder,
    ):
        await recorder.record("step", {"n": 300})

    assert before < 300
    assert numbers(server) == list(range(301))
    assert recorder.recovered is None
    assert path.stat().st_size == 0


async def test_what_was_left_of_another_episode_goes_there_first(
    either: Either, address: str, namespace: str, tmp_path: Path
):
    path = tmp_path / "spill"
    with LotClient(address, namespace=namespace) as client:
        first = client.start_episode("A task").episode_id
        leave(path, SpillOwner(namespace, first), 40)
        async with (
            either(address, namespace=namespace) as recording,
            recording.recorder("Another", when_full="SPILL", spill_path=path) as recorder,
        ):
            await recorder.record("step", {"n": 0})
        left = [event.data["n"] for event in client.list_episode_events(first)]
        own = [event.data["n"] for event in client.list_episode_events(recorder.episode_id)]
        status = client.get_episode(first).status

    assert recorder.recovered == (first, 40)
    assert left == list(range(40))
    assert own == [0]
    assert status == 1
    assert recorder.stats.recorded == 1


async def test_what_cannot_be_sent_any_more_stays_in_the_file(
    either: Either, address: str, namespace: str, tmp_path: Path
):
    path = tmp_path / "spill"
    leave(path, SpillOwner(namespace, "gone"), 3)
    size = path.stat().st_size
    async with either(address, namespace=namespace) as client:
        recorder = client.recorder("Another", when_full="SPILL", spill_path=path)
        with pytest.raises(LotError, match="move the file away") as caught:
            await recorder.__aenter__()

    assert caught.value.reason == "EPISODE_NOT_FOUND"
    assert path.stat().st_size == size


async def test_two_recorders_do_not_share_a_file(either: Either, server: Scripted, tmp_path: Path):
    options = {"when_full": "SPILL", "spill_path": tmp_path / "spill"}
    async with either(server.address) as client, client.recorder("A task", **options):
        with pytest.raises(ValueError, match="in use by another recorder"):
            await client.recorder("Another", **options).__aenter__()
        assert len(server.starts) == 1
