"""Health and CheckReady while the store, its folder or its server goes away and comes back."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from lot_grpc.domain.errors import LotError, StorageFullError, StoreUnavailableError
from lot_grpc.server.limits import Limits
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.server.doubles import Patterns
from tests.server.service import Lot, serving
from tests.server.wire import SAVE, failure, failure_of, save, until, wire


class Store(InMemoryStore):
    """One that meets what the test says."""

    met: LotError | None = None

    async def check(self) -> None:
        if self.met is not None:
            raise self.met


@asynccontextmanager
async def watched(store: Any) -> AsyncIterator[tuple[Lot, list[str], list[str]]]:
    """The service, what watchers of its health see, and what is reported to the operator."""
    reports: list[str] = []
    async with serving(store, clock=FixedClock(), probe=reports.append) as lot:
        stub: Any = health_pb2_grpc.HealthStub(lot.channel)
        seen: list[str] = []
        name = health_pb2.HealthCheckResponse.ServingStatus.Name

        async def watch() -> None:
            async for state in stub.Watch(health_pb2.HealthCheckRequest()):
                seen.append(name(state.status))  # noqa: PERF401 - it is looked at meanwhile

        change_watcher = asyncio.create_task(watch())
        await until(lambda: seen == ["SERVING"])
        try:
            yield lot, seen, reports
        finally:
            change_watcher.cancel()
            await asyncio.gather(change_watcher, return_exceptions=True)


async def test_health_follows_the_store_and_comes_back_by_itself():
    store = Store(FixedClock())
    async with watched(store) as (lot, seen, reports):
        store.met = StoreUnavailableError("the server does not answer; start it")
        await until(lambda: seen == ["SERVING", "NOT_SERVING"])
        stub: Any = health_pb2_grpc.HealthStub(lot.channel)
        for service in ("", "lot.v1.MemoryService"):
            state = await stub.Check(health_pb2.HealthCheckRequest(service=service))
            assert state.status == health_pb2.HealthCheckResponse.NOT_SERVING
        ready = await lot.admin.CheckReady()
        assert not ready.ready
        assert "does not answer" in str(ready)
        store.met = None
        await until(lambda: seen == ["SERVING", "NOT_SERVING", "SERVING"])
        assert (await lot.admin.CheckReady()).ready
        assert reports == ["the server does not answer; start it", ""]


async def test_a_full_disk_is_served_from_and_not_ready():
    store = Store(FixedClock())
    async with watched(store) as (lot, seen, reports):
        store.met = StorageFullError(1, 2, "/data")
        ready = await lot.admin.CheckReady()
        assert not ready.ready
        assert "free some space" in str(ready)
        assert (seen, reports) == (["SERVING"], [])


async def test_a_store_that_is_away_is_not_shown_as_serving_once_the_server_drains():
    store = Store(FixedClock())
    async with watched(store) as (lot, seen, _):
        store.met = StoreUnavailableError("gone")
        await until(lambda: seen[-1] == "NOT_SERVING")
        assert lot.server is not None
        await lot.server._health.draining()
        store.met = None
        await lot.server._health.set("", health_pb2.HealthCheckResponse.SERVING)
        assert lot.server._health._server_status[""] == health_pb2.HealthCheckResponse.NOT_SERVING


async def refused(lot: Lot, name: str) -> None:
    """Writes are refused, each with the folder and what to do; reads and CheckReady answer."""
    for write in (
        lot.patterns.SavePattern(pattern={"task": "lost"}),
        lot.memories.CreateMemory(memory={"content": "lost"}),
        lot.patterns.RecordOutcome(pattern_ids=["p"], outcome=1),
        lot.patterns.DeletePattern(pattern_id="p"),
        lot.episodes.StartEpisode(episode={"task": "lost"}),
        lot.memories.PutPreference(key="k", value={"bool_value": True}),
    ):
        failed = await failure(write)
        assert (failed.code, failed.reason) == ("UNAVAILABLE", "STORE_UNAVAILABLE")
        assert name in failed.message
        assert "move the original folder back, or stop the server" in failed.message
    assert (await lot.patterns.GetPattern(pattern_id="p")).pattern.task == "kept"
    ready = await lot.admin.CheckReady()
    assert not ready.ready
    assert name in str(ready)


async def _goes_away(
    lot: Lot, seen: list[str], reports: list[str], folder: Path, aside: Path
) -> None:
    await lot.patterns.SavePattern(pattern={"task": "kept"}, pattern_id="p")
    folder.rename(aside)
    await until(lambda: seen[-1] == "NOT_SERVING")
    await refused(lot, str(folder))
    assert (await failure(lot.admin.GetServerInfo())).reason == "STORE_UNAVAILABLE"
    aside.rename(folder)
    await until(lambda: seen[-1] == "SERVING")
    assert reports[-1] == ""
    await lot.patterns.SavePattern(pattern={"task": "kept too"}, pattern_id="p2")
    shutil.rmtree(folder)
    await until(lambda: seen[-1] == "NOT_SERVING")
    await refused(lot, str(folder))


@pytest.mark.timeout(240)
async def test_a_data_folder_that_goes_away_takes_no_write_and_is_not_serving(tmp_path: Path):
    """Moved and put back, then deleted: no write is acknowledged into nowhere."""
    folder, aside = tmp_path / "data", tmp_path / "aside"
    store = EdgeStore(folder, FixedClock(), min_free_bytes=0)
    gone = False
    stopping = pytest.raises(StoreUnavailableError, match="is gone")  # it cannot flush
    with stopping:
        async with watched(store) as (lot, seen, reports):
            await _goes_away(lot, seen, reports, folder, aside)
            gone = True
    assert gone
    assert not folder.exists(), "what was deleted is not made again by stopping"


async def test_a_folder_that_cannot_be_written_is_not_ready(tmp_path: Path, monkeypatch):
    store = EdgeStore(tmp_path, FixedClock(), min_free_bytes=0)
    try:
        await store.check()
        monkeypatch.setattr(os, "access", lambda *_: False)
        with pytest.raises(StoreUnavailableError, match="is no longer writable"):
            await store.check()
    finally:
        await store.close()


# --- callers without credentials ------------------------------------------------------------------


async def test_calls_of_health_without_a_message_take_no_memory_from_others():
    async with wire(Patterns(), max_request_bytes=Limits().max_message_bytes) as it:
        held: Any = [it.channel.stream_stream("/grpc.health.v1.Health/Watch")() for _ in range(40)]
        await asyncio.sleep(0.2)  # one waits for its message, and has reserved memory
        slow: Any = it.channel.stream_unary(SAVE)()
        await asyncio.sleep(0.2)
        await slow.write(save().SerializeToString())
        await slow.done_writing()
        assert await slow.code() is grpc.StatusCode.OK
        for call in held:
            call.cancel()


async def test_watchers_of_health_are_limited_and_hinder_no_other_connection():
    async with wire(Patterns(), max_streams=16) as it:
        request = health_pb2.HealthCheckRequest()
        watches = [it.health.Watch(request) for _ in range(20)]
        answers = await asyncio.gather(*(one.read() for one in watches), return_exceptions=True)
        refused = [failure_of(one) for one in answers if isinstance(one, grpc.aio.AioRpcError)]
        assert [one.reason for one in refused] == ["OVERLOADED"] * 6
        assert (await it.health.Check(request)).status == health_pb2.HealthCheckResponse.SERVING
        options = [("grpc.use_local_subchannel_pool", 1)]
        address = f"127.0.0.1:{it.port}"
        async with grpc.aio.insecure_channel(address, options=options) as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            watched = await stub.Watch(request).read()
            assert watched.status == health_pb2.HealthCheckResponse.SERVING
