"""Stopping: nothing new begins, what has begun is finished, and nobody is left without a word."""

# ruff: noqa: N802 - methods are named like their RPCs

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2

from lot_grpc.pb.lot.v1 import episode_service_pb2
from tests.server.test_layers import Episodes, Patterns, Slow, _await, _get, batch
from tests.server.wire import Wire, failure, save, until, wire

NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


def begin(call: Any) -> asyncio.Future[Any]:
    return asyncio.ensure_future(_await(call))


async def drain(it: Wire, grace_seconds: float = 60) -> asyncio.Task[None]:
    """A server that has begun to stop."""
    stopping = asyncio.create_task(it.server.stop(grace_seconds))
    await it.server.draining.wait()
    return stopping


async def test_a_running_call_finishes_while_new_ones_are_refused():
    servicer = Slow()
    async with wire(servicer) as it:
        running = begin(it.patterns.SavePattern(save()))
        await until(lambda: servicer.begun == 1)
        stopping = await drain(it)
        failed = await failure(it.patterns.SavePattern(save()))
        assert (failed.code, failed.reason) == ("UNAVAILABLE", "SHUTTING_DOWN")
        assert failed.details["RetryInfo"].retry_delay.seconds == 2
        for name in ("", "lot.v1.PatternService"):
            answer = await it.health.Check(health_pb2.HealthCheckRequest(service=name))
            assert answer.status == NOT_SERVING
        assert not stopping.done()
        servicer.go.set()
        assert (await running).created
        await stopping
        await it.server.wait()


async def test_a_write_without_a_caller_is_waited_for():
    servicer = Slow()
    async with wire(servicer) as it:
        call = it.patterns.SavePattern(save())
        await until(lambda: servicer.begun == 1)
        call.cancel()
        await until(lambda: it.log)
        stopping = await drain(it)
        await asyncio.sleep(0.05)
        assert not stopping.done()
        servicer.go.set()
        await stopping
        assert len(servicer.written) == 1


async def test_a_stream_that_waits_for_its_caller_is_told_at_once():
    servicer = Episodes()
    async with wire(episodes=servicer) as it:
        call = it.episodes.RecordEvents()
        await call.write(batch(1))
        assert (await call.read()).last_sequence == 1
        stopping = await drain(it)
        failed = await failure(call.read())
        assert (failed.code, failed.reason) == ("UNAVAILABLE", "SHUTTING_DOWN")
        await stopping
        assert servicer.ended == "ShuttingDownError"


async def test_a_stream_in_the_middle_of_a_batch_acknowledges_it_first():
    servicer = Episodes()
    servicer.go.clear()
    async with wire(episodes=servicer) as it:
        call = it.episodes.RecordEvents()
        await call.write(batch(1))
        await call.write(batch(2))
        await until(lambda: servicer.begun == [1])
        stopping = await drain(it)
        servicer.go.set()
        assert (await call.read()).last_sequence == 1
        assert (await failure(call.read())).reason == "SHUTTING_DOWN"
        await stopping
        assert servicer.stored == [1]


async def test_what_outlives_the_grace_is_cancelled_and_its_callers_are_told():
    patterns, episodes = Slow(), Episodes()
    async with wire(patterns, episodes) as it:
        reading = begin(it.patterns.GetPattern(_get()))
        writing = begin(it.patterns.SavePattern(save()))
        request = episode_service_pb2.ReplayEpisodeRequest(episode_id="e", follow=True)
        replay = it.episodes.ReplayEpisode(request)
        for _ in range(3):
            await replay.read()
        await until(lambda: patterns.begun == 2)
        await it.server.stop(grace_seconds=0.05)
        for call in (reading, writing, replay.read()):
            assert (await failure(call)).reason == "SHUTTING_DOWN"
        assert it.server.calls_in_flight == 0
        assert patterns.written == []
        assert episodes.ended == "closed"


async def test_a_servicer_may_end_its_stream_when_the_server_drains():
    class Follows(Episodes):
        draining: asyncio.Event

        async def ReplayEpisode(self, request, context):
            yield episode_service_pb2.ReplayEpisodeResponse()
            await self.draining.wait()

    servicer = Follows()
    async with wire(episodes=servicer) as it:
        servicer.draining = it.server.draining
        request = episode_service_pb2.ReplayEpisodeRequest(episode_id="e")
        replay = it.episodes.ReplayEpisode(request)
        await replay.read()
        stopping = await drain(it)
        assert await replay.read() is grpc.aio.EOF
        await stopping


async def test_stopping_twice_waits_for_the_same_end():
    async with wire(Patterns()) as it:
        assert await it.patterns.SavePattern(save())
        await asyncio.gather(it.server.stop(5), it.server.stop(1))
        await it.server.stop(0)
