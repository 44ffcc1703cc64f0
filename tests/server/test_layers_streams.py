"""Streams, as they pass the layers of the server."""

# ruff: noqa: N802 - methods are named like their RPCs

from __future__ import annotations

import asyncio
import math
from typing import Any

import grpc
import grpc.aio

from lot_grpc.pb.lot.v1 import episode_service_pb2
from tests.server.doubles import Episodes, Patterns, batch
from tests.server.wire import failure, save, until, wire


async def test_a_stream_carries_batches_both_ways():
    servicer = Episodes()
    async with wire(episodes=servicer) as it:
        call = it.episodes.RecordEvents(iter([batch(), batch(1, 2), batch(3)]))
        assert [answer.last_sequence async for answer in call] == [0, 2, 3]
        assert servicer.ended == "half-closed"
        assert await call.code() is grpc.StatusCode.OK
        await until(lambda: it.server.calls_in_flight == 0)
        assert (await it.logged())["method"] == "EpisodeService.RecordEvents"


async def test_a_wrong_message_ends_the_stream_with_its_violations():
    servicer = Episodes()
    async with wire(episodes=servicer) as it:
        call = it.episodes.RecordEvents()
        await call.write(batch(1))
        assert (await call.read()).last_sequence == 1
        bad = batch(2, -1)
        bad.events[0].data["n"] = math.inf
        await call.write(bad)
        failed = await failure(call.read())
        assert failed.reason == "REQUEST_INVALID"
        assert failed.fields == {
            "events[0].data.n": "number.finite",
            "events[1].sequence": "int64.gte",
        }
        assert servicer.stored == [1]
        assert servicer.ended == "RequestInvalidError"


async def test_malformed_bytes_in_a_stream_get_a_reason():
    async with wire(episodes=Episodes()) as it:
        call: Any = it.channel.stream_stream("/lot.v1.EpisodeService/RecordEvents")()
        await call.write(b"\x0a\x01\xff")
        assert (await failure(call.read())).reason == "REQUEST_MALFORMED"


async def test_errors_in_streams_are_told_like_others():
    async with wire(episodes=Episodes(fails_at=2)) as it:
        call = it.episodes.RecordEvents()
        await call.write(batch(1))
        await call.write(batch(2))
        assert (await call.read()).last_sequence == 1
        failed = await failure(call.read())
        assert (failed.code, failed.reason) == ("FAILED_PRECONDITION", "EPISODE_ENDED")
        request = episode_service_pb2.ReplayEpisodeRequest(episode_id="e", speed=9)
        replay = it.episodes.ReplayEpisode(request)
        for _ in range(3):
            await replay.read()
        failed = await failure(replay.read())
        assert failed.reason == "INTERNAL"
        assert "secret" not in str(failed)


async def test_a_cancelled_reading_stream_closes_its_servicer():
    servicer = Episodes()
    async with wire(episodes=servicer) as it:
        request = episode_service_pb2.ReplayEpisodeRequest(episode_id="e", follow=True)
        call = it.episodes.ReplayEpisode(request)
        for _ in range(3):
            await call.read()
        call.cancel()
        await until(lambda: servicer.ended == "closed")
        await until(lambda: it.server.calls_in_flight == 0)
        assert (await it.logged())["code"] == "CANCELLED"


async def test_a_stream_of_writes_finishes_the_batch_it_is_in_when_its_caller_leaves():
    servicer = Episodes()
    servicer.go.clear()
    async with wire(episodes=servicer) as it:
        call = it.episodes.RecordEvents()
        await call.write(batch(1))
        await call.write(batch(2))
        await until(lambda: servicer.begun == [1])
        call.cancel()
        await until(lambda: it.log)
        servicer.go.set()
        await until(lambda: it.server.calls_in_flight == 0)
        assert servicer.stored == [1], "the batch after it is not begun"
        assert servicer.ended in {"GeneratorExit", "CancelledError"}
        late = await it.logged(2)
        assert (late["code"], late["late"]) == ("CANCELLED", True)


async def test_a_caller_that_leaves_in_the_middle_of_answers_is_no_fault_of_the_server():
    class Talks:
        async def RecordEvents(self, request_iterator, context):
            async for _ in request_iterator:
                while True:
                    yield episode_service_pb2.RecordEventsResponse()

        async def ReplayEpisode(self, request, context):
            while True:
                yield episode_service_pb2.ReplayEpisodeResponse()

    async with wire(episodes=Talks()) as it:
        for _ in range(30):
            calls = [
                it.episodes.RecordEvents(iter([batch(1)])),
                it.episodes.ReplayEpisode(episode_service_pb2.ReplayEpisodeRequest(episode_id="e")),
            ]
            for call in calls:
                await call.read()
                call.cancel()
        await until(lambda: it.server.calls_in_flight == 0)
        assert {record["code"] for record in it.log} == {"CANCELLED"}


async def test_a_stream_that_waits_for_its_caller_ends_when_the_caller_leaves():
    servicer = Episodes()
    async with wire(episodes=servicer) as it:
        call = it.episodes.RecordEvents()
        await call.write(batch(1))
        assert (await call.read()).last_sequence == 1
        call.cancel()
        await until(lambda: it.server.calls_in_flight == 0)
        assert servicer.stored == [1]
        assert servicer.ended == "CancelledError", "not taken for the end of the stream"


async def test_one_stream_too_many_is_refused():
    async with wire(Patterns(), Episodes(), max_streams=1) as it:
        call = it.episodes.RecordEvents()
        await call.write(batch(1))
        await call.read()
        failed = await failure(it.episodes.RecordEvents().read())
        assert (failed.code, failed.reason) == ("RESOURCE_EXHAUSTED", "OVERLOADED")
        assert await it.patterns.SavePattern(save()), "unary calls have a limit of their own"
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF
        again = it.episodes.RecordEvents()
        await again.write(batch(1))
        assert (await again.read()).last_sequence == 1


async def test_no_reading_task_is_left_when_streams_are_over():
    from lot_grpc.server import streams

    servicer = Episodes(fails_at=1)
    async with wire(episodes=servicer) as it:
        for _ in range(3):
            servicer.go.clear()
            servicer.begun.clear()
            call = it.episodes.RecordEvents()
            for sequence in (1, 2, 3):
                await call.write(batch(sequence))
            await until(lambda: servicer.begun)
            await asyncio.sleep(0.02)  # the second message is read ahead meanwhile
            servicer.go.set()
            await failure(call.read())
        await until(lambda: not streams._pumps)
