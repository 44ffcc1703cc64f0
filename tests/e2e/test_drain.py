"""SIGTERM: what runs is finished, streams are told, the store is whole, and the exit code is 0."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import grpc
import grpc.aio

from tests.e2e.process import PATIENCE, Served
from tests.server.service import Lot, reaching
from tests.server.test_episodes_stream import Stream, events
from tests.server.wire import failure

LONG = "a long text about the deployment of services in clusters of machines " * 30
"""What the model needs some time for."""


def long_batch(lot: Lot, count: int) -> asyncio.Future[Any]:
    """A call that takes a second or more: a batch of texts as long as the model reads."""

    async def call() -> Any:
        items = [{"pattern": {"task": f"{n} {LONG}"}, "request_id": f"r{n}"} for n in range(count)]
        return await lot.patterns.BatchSavePatterns(items=items, timeout=PATIENCE)

    return asyncio.ensure_future(call())


async def under_way(lot: Lot, call: asyncio.Future[Any]) -> None:
    """Until the server has surely taken the call in."""
    await lot.admin.CheckReady()
    await asyncio.sleep(0.3)
    assert not call.done(), "the call was too short for the test; make the batch larger"


async def gone(server: Served) -> int:
    return await asyncio.to_thread(server.process.wait, 60)


async def test_running_calls_are_finished_and_streams_told(serve, data):
    server = serve(data, {"LOT_DRAIN_SECONDS": "60"})
    async with reaching(server.address) as lot:
        await lot.episodes.StartEpisode(episode={"task": "t"}, episode_id="e")
        stream = Stream(lot)
        await stream.open(events=events([1, 2]))
        call = long_batch(lot, 40)
        await under_way(lot, call)
        server.send(signal.SIGTERM)
        failed = await stream.ended()
        assert (failed.code, failed.reason) == ("UNAVAILABLE", "SHUTTING_DOWN")
        assert "RetryInfo" in failed.details
        refused = await failure(lot.patterns.SavePattern(pattern={"task": "late"}))
        assert (refused.code, refused.reason) == ("UNAVAILABLE", "SHUTTING_DOWN")
        assert not call.done()
        answer = await call
        assert answer.created_count == 40
        assert await gone(server) == 0
    again = serve(data)
    async with reaching(again.address) as lot_again:
        lot = lot_again.on(lot.namespace)
        stored = await lot.patterns.ListPatterns(page_size=100)
        assert len(stored.patterns) == 40
        episode = (await lot.episodes.GetEpisode(episode_id="e")).episode
        assert episode.event_count == 2
        resumed = Stream(lot)
        assert (await resumed.open()).last_sequence == 2


async def test_an_idle_server_with_open_streams_stops_at_once(serve, data):
    server = serve(data, {"LOT_DRAIN_SECONDS": "600"})
    async with reaching(server.address) as lot:
        await lot.episodes.StartEpisode(episode={"task": "t"}, episode_id="e")
        stream = Stream(lot)
        await stream.open()
        server.send(signal.SIGINT)
        assert (await stream.ended()).reason == "SHUTTING_DOWN"
        assert await gone(server) == 0


async def test_what_is_not_done_in_time_is_cancelled_and_told(serve, data):
    server = serve(data, {"LOT_DRAIN_SECONDS": "0.2"})
    async with reaching(server.address) as lot:
        call = long_batch(lot, 500)
        await under_way(lot, call)
        server.send(signal.SIGTERM)
        failed = await failure(call)
        assert (failed.code, failed.reason) == ("UNAVAILABLE", "SHUTTING_DOWN")
        assert await gone(server) == 0
    assert "Traceback" not in server.logged()


async def test_a_second_signal_ends_it_at_once_and_loses_nothing(serve, data):
    server = serve(data, {"LOT_DRAIN_SECONDS": "60"})
    async with reaching(server.address) as lot:
        await lot.patterns.SavePattern(pattern={"task": "acknowledged"}, pattern_id="p")
        call = long_batch(lot, 500)
        await under_way(lot, call)
        server.send(signal.SIGTERM)
        await asyncio.sleep(0.2)
        server.send(signal.SIGTERM)
        assert await gone(server) == 128 + signal.SIGTERM
        try:
            await call
        except grpc.aio.AioRpcError as error:
            code = error.code()
        assert code is grpc.StatusCode.UNAVAILABLE
    assert "stopped at once" in server.logged()
    again = serve(data)
    async with reaching(again.address) as lot_again:
        lot = lot_again.on(lot.namespace)
        found = await lot.patterns.GetPattern(pattern_id="p")
        assert found.pattern.task == "acknowledged"
        items = [{"pattern": {"task": f"{n} {LONG}"}, "request_id": f"r{n}"} for n in range(2)]
        answer = await lot.patterns.BatchSavePatterns(items=items)
        assert answer.failed_count == 0
        stored = await lot.patterns.ListPatterns(page_size=1000)
        assert len({p.task for p in stored.patterns}) == len(stored.patterns)
