"""Stopping: nothing new begins, what has begun is finished, and nobody is left without a word."""

# ruff: noqa: N802 - methods are named like their RPCs

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from grpc_health.v1 import health_pb2

from lot_grpc.pb.lot.v1 import episode_service_pb2
from lot_grpc.pb.lot.v1.episode_pb2 import EpisodeEvent
from tests.server.doubles import Episodes, Patterns, Slow, awaited, batch, get_pattern
from tests.server.wire import Wire, failure, save, until, wire

NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


def begin(call: Any) -> asyncio.Future[Any]:
    return asyncio.ensure_future(awaited(call))


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
        reading = begin(it.patterns.GetPattern(get_pattern()))
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


async def test_stopping_twice_waits_for_the_same_end():
    async with wire(Patterns()) as it:
        assert await it.patterns.SavePattern(save())
        await asyncio.gather(it.server.stop(5), it.server.stop(1))
        await it.server.stop(0)


class Endless:
    """A replay that never ends by itself."""

    def __init__(self, size: int = 0) -> None:
        self.on_begin: Callable[[], object] = lambda: None
        self.sent = 0
        self.size = size
        self.closed = False

    async def ReplayEpisode(self, request, context):
        self.on_begin()
        try:
            while True:
                event = EpisodeEvent(event_type="x" * self.size, sequence=self.sent + 1)
                yield episode_service_pb2.ReplayEpisodeResponse(events=[event])
                self.sent += 1
                if not self.size:
                    await asyncio.sleep(60)
        finally:
            self.closed = True


async def test_a_stream_that_only_answers_is_told_at_once():
    servicer = Endless()
    async with wire(episodes=servicer) as it:
        call = it.episodes.ReplayEpisode(episode_service_pb2.ReplayEpisodeRequest(episode_id="e"))
        assert (await call.read()).events
        stopping = await drain(it)
        failed = await failure(call.read())
        assert (failed.code, failed.reason) == ("UNAVAILABLE", "SHUTTING_DOWN")
        await stopping


async def test_a_stream_whose_caller_does_not_read_is_ended_with_a_reason():
    servicer = Endless(size=100_000)
    async with wire(episodes=servicer, max_send_seconds=0.2) as it:
        call = it.episodes.ReplayEpisode(episode_service_pb2.ReplayEpisodeRequest(episode_id="e"))
        await until(lambda: servicer.closed)  # before anything was read
        failed = await failure(_read_all(call))  # the reason comes behind what was sent
        assert (failed.code, failed.reason) == ("RESOURCE_EXHAUSTED", "OVERLOADED")
        assert failed.metadata == {"limit": "0.2 s", "limit_seconds": "0.2"}
        assert "reopen the stream after the last message you received" in failed.message


async def test_a_stream_is_told_while_its_first_message_is_sent():
    servicer = Endless()
    async with wire(episodes=servicer) as it:
        interrupt, loop = it.server._inflight.interrupt, asyncio.get_running_loop()
        servicer.on_begin = lambda: loop.call_soon(interrupt)  # as the write waits for gRPC
        request = episode_service_pb2.ReplayEpisodeRequest(episode_id="e")
        call = it.episodes.ReplayEpisode(request, timeout=20)
        failed = await failure(_read_all(call))
        assert (failed.code, failed.reason) == ("UNAVAILABLE", "SHUTTING_DOWN")
        assert servicer.sent == 0


async def _read_all(call: Any) -> None:
    async for _ in call:
        pass
