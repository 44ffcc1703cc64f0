"""What no handler sees: bytes that are no gRPC, overload, and bytes on their way."""

from __future__ import annotations

import asyncio
import random
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import grpc
import grpc.aio
import pytest

from lot_grpc import app
from lot_grpc.bootstrap import Opened
from lot_grpc.domain.errors import ServingEndedError
from lot_grpc.pb.lot.v1 import pattern_service_pb2_grpc
from lot_grpc.server import serving_loop
from lot_grpc.server.serving_loop import _Port, _Taker, watch_port
from lot_grpc.services.build import Services
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.runtime import open_runtime
from lot_grpc.services.store_metadata import open_store
from lot_grpc.settings import ServerSettings, Settings
from lot_grpc.testing.hashing import HashingEmbedder, OverlapReranker
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.server.doubles import Episodes, Patterns, Slow, awaited, batch, get_pattern
from tests.server.frames import Connection, Pour
from tests.server.test_drain import Endless
from tests.server.wire import SAVE, Wire, failure, failure_of, save, until, wire

GET = SAVE.encode()
CHECK = "/grpc.health.v1.Health/Check"
WATCH = "/grpc.health.v1.Health/Watch"
ODD = {
    "path": lambda out: out.call(b"/lot.\xb7/X"),
    "path of zeros": lambda out: out.call(b"/\0\0"),
    "no path": lambda out: out.call(b""),
    "long path": lambda out: out.call(b"/" + b"\xff" * 6000),
    "method": lambda out: out.call(GET, method=b"G\xb7T"),
    "authority": lambda out: out.call(GET, [(b":authority", b"\xff\xfe")]),
    "scheme": lambda out: out.call(GET, [(b":scheme", b"\xff")]),
    "metadata key": lambda out: out.call(GET, [(b"\xb7key", b"v")]),
    "metadata value": lambda out: out.call(GET, [(b"key", b"\xff\xfe\0")]),
    "binary metadata": lambda out: out.call(GET, [(b"x-bin", b"!\xff!")]),
    "long metadata": lambda out: out.call(GET, [(b"key", b"\xff" * 60_000)]),
    "user agent": lambda out: out.call(GET, [(b"user-agent", b"\xff")]),
    "deadline": lambda out: out.call(GET, [(b"grpc-timeout", b"\xff99X")]),
    "encoding": lambda out: out.call(GET, [(b"grpc-encoding", b"\xff")]),
    "content type": lambda out: out.call(GET, [(b"content-type", b"\xff")]),
    "noise": lambda out: out.send(random.Random(7).randbytes(4000)),
}
"""Calls that no library would send, by what is odd about them."""


@pytest.mark.parametrize("odd", ODD)
async def test_no_call_ends_serving(odd):
    async with wire(Patterns()) as it:
        assert await it.patterns.SavePattern(save())
        for _ in range(3):
            with Connection(it.port) as out, suppress(ConnectionError):
                ODD[odd](out)
                ODD[odd](out)
            assert await it.patterns.SavePattern(save())
        assert not it.server.failed.done()


async def test_a_call_without_a_request_is_refused():
    async with wire(Patterns()) as it:
        options = [("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{it.port}", options=options) as channel:
            call: Any = channel.stream_stream(SAVE)()
            await call.done_writing()
            failed = await failure(call.read())
        assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "REQUEST_MALFORMED")
        assert failed.metadata == {"type": "lot.v1.SavePatternRequest"}
        assert failed.message == "the call ended without a request; send one message"


# --- overload -----------------------------------------------------------------------------------


class Busy(Slow):
    """Saves that take until ``go``; reads are answered at once."""

    GetPattern = Patterns.GetPattern


@asynccontextmanager
async def connection(it: Wire) -> AsyncIterator[Any]:
    """Stubs on a connection of their own."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{it.port}", options=options) as channel:
        yield pattern_service_pb2_grpc.PatternServiceStub(channel)


async def test_however_many_calls_wait_they_are_refused_with_a_reason():
    servicer = Busy()
    async with wire(servicer, max_concurrent_calls=16, max_streams=5000) as it:
        calls = [asyncio.ensure_future(_end(it.patterns.SavePattern(save()))) for _ in range(2500)]
        await until(lambda: sum(call.done() for call in calls) >= 2500 - 14, seconds=60)
        ends = Counter(call.result() for call in calls if call.done())
        assert set(ends) == {"RESOURCE_EXHAUSTED OVERLOADED 1 s"}
        async with connection(it) as innocent:
            assert await innocent.GetPattern(get_pattern())
        servicer.go.set()
        assert {await call for call in calls} == {"OK", *ends}
        assert sum(record["reason"] == "OVERLOADED" for record in it.log) == ends.total()


async def _end(call: Any) -> str:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        failed = failure_of(error)
        return f"{failed.code} {failed.reason} {failed.details['RetryInfo'].retry_delay.seconds} s"
    return "OK"


async def test_one_connection_does_not_take_the_last_places():
    servicer = Busy()
    async with wire(servicer, max_concurrent_calls=16, max_streams=16) as it:
        calls = [asyncio.ensure_future(awaited(it.patterns.SavePattern(save()))) for _ in range(14)]
        await until(lambda: servicer.begun == 14)
        failed = await failure(it.patterns.SavePattern(save()))
        assert (failed.reason, failed.metadata) == ("OVERLOADED", {"limit": "16"})
        assert "the last 2 reserved for callers that have few" in failed.message
        async with connection(it) as other, connection(it) as third:
            calls.append(asyncio.ensure_future(awaited(other.SavePattern(save()))))
            await until(lambda: servicer.begun == 15)
            assert (await failure(other.SavePattern(save()))).reason == "OVERLOADED"
            assert await third.GetPattern(get_pattern())
            servicer.go.set()
            await asyncio.gather(*calls)


# --- bytes on their way -------------------------------------------------------------------------

MIB = 2**20


def pours(count: int, path: str = SAVE, size: int = MIB) -> list[Pour]:
    """Calls that stop short of the end of their message."""
    return [Pour(path.encode(), size, size - 1000) for _ in range(count)]


@asynccontextmanager
async def poured(it: Wire, calls: list[Pour]) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Them, under way at a server."""
    tasks = [asyncio.create_task(call.run(it.port)) for call in calls]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("path", [SAVE, "/lot.v1.EpisodeService/ReplayEpisode", CHECK, WATCH])
async def test_a_request_that_does_not_arrive_is_dropped(path):
    async with (
        wire(Patterns(), Endless(), max_receive_seconds=0.1) as it,
        poured(it, pours(3, path)) as tasks,
    ):
        assert await it.patterns.SavePattern(save())
        await asyncio.wait_for(asyncio.gather(*tasks), 10)


async def test_while_requests_hang_small_ones_are_served_and_large_ones_refused():
    async with (
        wire(Patterns(), max_message_bytes=MIB, max_request_bytes=2 * MIB) as it,
        poured(it, pours(2)) as first,
    ):
        await until(lambda: not it.server._inflight.incoming.has_capacity)
        assert await it.patterns.SavePattern(save())
        async with poured(it, pours(10)) as more:
            await asyncio.wait_for(asyncio.gather(*more), 10)
            await until(lambda: sum(one["reason"] == "OVERLOADED" for one in it.log) >= 10)
            assert await it.patterns.SavePattern(save())
            await asyncio.wait_for(asyncio.gather(*first), 10)  # others had no room for a second
        large = save("x" * (MIB - 1000))
        assert (await failure(it.patterns.SavePattern(large))).reason == "REQUEST_INVALID"
        assert it.server._inflight.incoming.has_capacity


RECORD = "/lot.v1.EpisodeService/RecordEvents"


async def test_streams_that_stop_in_messages_are_ended_and_idle_ones_are_not():
    servicer = Episodes()
    async with (
        wire(Patterns(), servicer, max_request_bytes=800_000, max_message_bytes=500_000) as it,
        connection(it) as other,
    ):
        call = it.episodes.RecordEvents()
        for number in range(1, 6):  # more in all than may be on its way, but whole
            request = batch(number)
            request.events[0].data["output"] = "x" * 200_000
            await call.write(request)
            assert (await call.read()).last_sequence == number
        async with poured(it, pours(8, RECORD, 400_000)) as tasks:
            await until(lambda: sum(task.done() for task in tasks) >= 3)
            await until(lambda: len(it.log) >= 3)
            assert {record["reason"] for record in it.log} == {"OVERLOADED"}
            assert not all(task.done() for task in tasks)
            assert await other.GetPattern(get_pattern())
            await call.write(batch(6))
            assert (await call.read()).last_sequence == 6
        call.cancel()


async def test_what_is_worked_on_counts_until_it_is_done():
    servicer = Busy()
    request = save()
    request.pattern.code = "x" * 200_000
    async with wire(servicer, max_message_bytes=300_000, max_request_bytes=500_000) as it:
        calls = [asyncio.ensure_future(awaited(it.patterns.SavePattern(request))) for _ in range(2)]
        await until(lambda: servicer.begun == 2)
        failed = await failure(it.patterns.SavePattern(request))
        assert (failed.reason, failed.metadata) == ("OVERLOADED", {"limit": "500000"})
        assert await it.patterns.GetPattern(get_pattern())
        calls.pop().cancel()
        await until(lambda: any(record["code"] == "CANCELLED" for record in it.log))
        assert (await failure(it.patterns.SavePattern(request))).reason == "OVERLOADED"
        servicer.go.set()
        await asyncio.gather(*calls)
        await until(lambda: it.server.calls_in_flight == 0)
        assert await it.patterns.SavePattern(request)


async def test_a_call_without_a_request_gets_a_reason_and_a_second_request_is_ignored():
    async with wire(Patterns()) as it:
        call: Any = it.channel.stream_unary(SAVE)
        failed = await failure(call(iter(())))
        assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "REQUEST_MALFORMED")
        assert "without a request" in failed.message
        raw = save().SerializeToString()
        assert await call(iter((raw, raw)))


async def test_a_stop_does_not_wait_for_requests_that_do_not_arrive():
    async with (
        wire(Patterns(), max_receive_seconds=60) as it,
        poured(it, pours(1)) as tasks,
    ):
        await until(lambda: it.server.calls_in_flight == 1)
        async with asyncio.timeout(10):
            await it.server.stop(60)
            await asyncio.gather(*tasks)


async def test_one_connection_too_many_is_closed_and_the_others_live():
    async with wire(Patterns(), max_connections=3) as it:
        assert await it.patterns.SavePattern(save())
        with Connection(it.port), Connection(it.port):
            one_more = Connection(it.port)
            assert await asyncio.to_thread(one_more.read) == b""
            assert await it.patterns.SavePattern(save())
        one_more.close()


async def test_calls_are_accepted_several_at_once(monkeypatch):
    """One after the other, each would wait for those of a flood that came before it."""
    waiting: list[asyncio.Task[Any]] = []

    class Counting(_Port):
        def take(self) -> asyncio.Task[Any]:
            waiting.append(super().take())
            return waiting[-1]

    monkeypatch.setattr(serving_loop, "_Port", Counting)
    async with wire(Patterns()) as it:
        for _ in range(3):
            await until(lambda: sum(not one.done() for one in waiting) == 8)
            assert await it.patterns.SavePattern(save())


# --- the end of serving -------------------------------------------------------------------------


async def test_what_ends_the_loop_is_told():
    async with wire(Patterns()) as it:
        for taker in it.server._server._server._takers:
            taker._make_request_call_future = lambda _: 1 / 0
        assert await it.patterns.SavePattern(save())
        error = await asyncio.wait_for(asyncio.shield(it.server.failed), 10)
        assert "no longer accepts calls: ZeroDivisionError" in error.message


async def test_a_closed_port_is_told():
    failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        watch = asyncio.create_task(watch_port("0.0.0.0", port, failed.set_result, 0.01))
        await asyncio.sleep(0.05)
        assert not watch.done()
    error = await asyncio.wait_for(failed, 10)
    assert isinstance(error, ConnectionRefusedError)


async def test_the_end_of_the_loop_ends_the_service(monkeypatch):
    clock = FixedClock()
    store, embedder = InMemoryStore(clock), HashingEmbedder()
    await open_store(store, REGISTRY, embedder.contract)
    services = Services(open_runtime(store, REGISTRY, embedder, OverlapReranker(), clock))

    @asynccontextmanager
    async def opened(*_: object, **__: object) -> AsyncIterator[Opened]:
        yield Opened(store, embedder, services)

    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(app, "open_all", opened)
    monkeypatch.setattr(_Taker, "_make_request_call_future", broken)
    settings = Settings(server=ServerSettings(address="127.0.0.1:0"))
    with pytest.raises(ServingEndedError, match="no longer accepts calls: RuntimeError"):
        await app.serve(settings, ready=lambda _: None, stop=asyncio.Event())
