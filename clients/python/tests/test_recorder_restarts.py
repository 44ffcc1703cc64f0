"""Recorders and callers while their server is stopped, killed and started again."""

import asyncio
import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cutting import Cutter
from either import of_tasks, of_threads, until
from lot_client import AsyncLotClient
from lot_client.pb.lot.v1.error_reason_pb2 import ErrorReason

CLIENTS = Path(__file__).parents[2]


def load_with_server() -> Any:
    spec = importlib.util.spec_from_file_location("with_server", CLIENTS / "with_server.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Restarting:
    """A server of this test's own, that can be ended and started again over the same data."""

    def __init__(self, folder: Path) -> None:
        self._with_server = load_with_server()
        self._folder = folder
        self.process: subprocess.Popen[str] | None = None

    def start(self, **settings: str) -> str:
        """Its address."""
        log = self._folder / "server.log"
        with log.open("ab") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "lot_grpc", "serve"],
                env=self._with_server.server_environment(self._folder / "data") | settings,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        return self._with_server.wait_until_ready(self.process, log)[0]

    def end(self, how: Callable[[subprocess.Popen[str]], None]) -> None:
        """By ``how``, and wait."""
        if self.process is not None:
            how(self.process)
            self.process.wait(60)
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None


@pytest.fixture
def server(address: str, tmp_path: Path) -> Iterator[Restarting]:
    made = Restarting(tmp_path)
    yield made
    made.end(subprocess.Popen.kill)


class Savers:
    """Callers that save one pattern after the other, each with a task of its own."""

    def __init__(self, client: Any, name: str, over: asyncio.Event) -> None:
        self._client = client
        self._name = name
        self._over = over
        self.saved: list[str] = []
        self.work = [asyncio.create_task(self._save(number)) for number in range(4)]

    async def _save(self, number: int) -> None:
        n = 0
        while not self._over.is_set():
            task = f"Task {n} of the {self._name} {number}"
            assert (await self._client.save_pattern(task, dedupe="NONE")).created
            self.saved.append(task)
            n += 1
            await asyncio.sleep(0.02)


@pytest.mark.timeout(400)  # three starts of a server, on a busy machine
async def test_a_server_that_is_stopped_and_killed_costs_no_event_and_no_save(server: Restarting):
    async def work(recorder: Any) -> None:
        n = 0
        while not over.is_set():
            await recorder.record("step", {"n": n})
            n += 1
            await asyncio.sleep(0.002)
        counts.append(n)

    counts: list[int] = []
    over = asyncio.Event()
    options = {"max_delay": 0.01, "exit_timeout": 60.0}
    with Cutter(await asyncio.to_thread(server.start)) as way:
        async with (
            of_tasks(way.address) as tasks,
            of_threads(way.address) as threads,
            of_tasks(way.address, deadline=300.0) as saving_tasks,
            of_threads(way.address, deadline=300.0) as saving_threads,
            tasks.recorder("A task", **options) as first,
            threads.recorder("A task", **options) as second,
        ):
            working = [asyncio.create_task(work(recorder)) for recorder in (first, second)]
            savers = [
                Savers(saving_tasks, "tasks", over),
                Savers(saving_threads, "threads", over),
            ]
            working += [each for saver in savers for each in saver.work]
            for how in (subprocess.Popen.terminate, subprocess.Popen.kill):
                before = [recorder.last_sequence for recorder in (first, second)]
                await until(lambda last=before[0]: first.last_sequence > last + 50)
                await until(lambda last=before[1]: second.last_sequence > last + 50)
                for saver in savers:
                    last = len(saver.saved)
                    await until(lambda saver=saver, last=last: len(saver.saved) > last + 4)
                await asyncio.to_thread(server.end, how)
                way.aim(await asyncio.to_thread(server.start))
            over.set()
            await asyncio.gather(*working)

        async with AsyncLotClient(way.address) as client:
            stored = [pattern.task async for pattern in client.list_patterns(page_size=1000)]
            saved = [task for saver in savers for task in saver.saved]
            assert sorted(stored) == sorted(saved)
            for recorder in (first, second):
                found = [
                    event
                    async for event in client.list_episode_events(
                        recorder.episode_id, page_size=1000
                    )
                ]
                numbers = [event.data["n"] for event in found]
                assert numbers == list(range(len(numbers)))
                assert len(numbers) == recorder.stats.recorded == recorder.stats.acknowledged
                assert len(numbers) in counts
                assert recorder.stats.reconnects >= 2
                assert recorder.episode.event_count == len(numbers)


@pytest.mark.skipif(
    "ERROR_REASON_STREAM_IDLE" not in ErrorReason.keys(),  # noqa: SIM118 - no dict
    reason="this contract closes no idle streams: it has no STREAM_IDLE",
)
async def test_a_stream_that_is_closed_as_idle_is_opened_again(server: Restarting):
    address = await asyncio.to_thread(server.start, LOT_STREAMS_IDLE_SECONDS="1")
    async with (
        of_tasks(address) as tasks,
        of_threads(address) as threads,
        tasks.recorder("A task") as first,
        threads.recorder("A task") as second,
        tasks.recorder("A task", heartbeat=0.2) as kept,
    ):
        for recorder in (first, second):
            await recorder.record("step", {"n": 0})
            await until(lambda recorder=recorder: recorder.stats.reconnects > 0)
            await recorder.record("step", {"n": 1})

    for recorder in (first, second):
        assert recorder.stats.last_error is None
        assert recorder.episode.event_count == 2
    assert kept.stats.reconnects == 0
