"""Limits of one principal, over gRPC."""

from __future__ import annotations

import asyncio
import gc
import random
from dataclasses import dataclass, replace
from typing import Any

import grpc.aio
import pytest

from lot_grpc.domain.access import ANONYMOUS, Credentials, Principal
from lot_grpc.domain.errors import CredentialsRequiredError
from lot_grpc.domain.rate_limits import PrincipalLimits
from lot_grpc.pb.lot.v1 import episode_service_pb2
from lot_grpc.server.call import Call
from lot_grpc.server.guards import Guards
from tests.server.doubles import EVENTS, Patterns, Slow, get_pattern
from tests.server.wire import failure, failure_of, save, until, wire


@dataclass
class Clock:
    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


class Named:
    """Takes a caller's word for who it is; ``slow`` has limits of its own."""

    async def authenticate(self, credentials: Credentials) -> Principal:
        if not credentials.authorizations:
            raise CredentialsRequiredError
        name = credentials.authorizations[0]
        who = replace(ANONYMOUS, id=name, name=name)
        return replace(who, calls_per_second=0.5, concurrent_calls=1) if name == "slow" else who


def of(name: str) -> dict[str, Any]:
    return {"metadata": (("authorization", name),)}


def guards(clock: Clock | None = None, **limits: float) -> Guards:
    limited = PrincipalLimits(**limits)  # type: ignore[arg-type]
    return Guards(authenticator=Named(), principal_limits=limited, monotonic=clock or Clock())


async def test_refused_calls_are_not_left_to_the_garbage_collector():
    """Which would stop all other calls, for longer the more are refused."""

    def kept() -> set[Call]:
        return {one for one in gc.get_objects() if type(one) is Call}

    gc.collect()
    gc.disable()
    try:
        async with wire(Patterns(), guards=guards(calls_per_second=1, burst=1)) as it:
            await it.patterns.SavePattern(save(), **of("a"))
            before = kept()
            for _ in range(3):
                refused = await failure(it.patterns.SavePattern(save(), **of("a")))
                assert refused.reason == "RATE_LIMITED"
            await until(lambda: kept() <= before)
    finally:
        gc.enable()


async def test_a_call_over_the_rate_is_refused_before_its_request_is_read():
    clock, patterns = Clock(), Patterns()
    async with wire(patterns, guards=guards(clock, calls_per_second=2, burst=2)) as it:
        for _ in range(2):
            await it.patterns.SavePattern(save(), **of("a"))
        failed = await failure(it.raw()(b"\xff\xff", **of("a")))
        assert (failed.code, failed.reason) == ("RESOURCE_EXHAUSTED", "RATE_LIMITED")
        assert failed.metadata == {"limit": "2 calls per second", "retry_seconds": "0.5"}
        assert failed.details["RetryInfo"].retry_delay.ToMilliseconds() == 500
        assert len(patterns.seen) == 2
        await it.patterns.SavePattern(save(), **of("b"))
        clock.seconds = 0.5
        await it.patterns.SavePattern(save(), **of("a"))


async def test_a_principal_has_limits_of_its_own():
    async with wire(Patterns(), guards=guards()) as it:
        await it.patterns.GetPattern(get_pattern(), **of("slow"))
        failed = await failure(it.patterns.GetPattern(get_pattern(), **of("slow")))
        assert failed.metadata["retry_seconds"] == "2"
        for _ in range(20):
            await it.patterns.GetPattern(get_pattern(), **of("a"))


async def test_a_call_that_fits_once_it_was_held_back_is_not_refused(
    monkeypatch: pytest.MonkeyPatch,
):
    clock = Clock()

    def time_passes(*_: float) -> float:
        clock.seconds = 10
        return 0.0

    monkeypatch.setattr(random, "uniform", time_passes)
    async with wire(Patterns(), guards=guards(clock, calls_per_second=2, burst=1)) as it:
        await it.patterns.SavePattern(save(), **of("a"))
        assert not clock.seconds
        assert (await it.patterns.SavePattern(save(), **of("a"))).created
        assert clock.seconds


async def test_calls_at_once_are_limited_by_principal():
    slow = Slow()
    async with wire(slow, guards=guards(concurrent_calls=2)) as it:
        running = [it.patterns.GetPattern(get_pattern(), **of("a")) for _ in range(2)]
        await until(lambda: slow.begun == 2)
        failed = await failure(it.patterns.GetPattern(get_pattern(), **of("a")))
        assert failed.reason == "RATE_LIMITED"
        assert failed.metadata["limit"] == "2 concurrent calls"
        assert "RetryInfo" in failed.details
        other = it.patterns.GetPattern(get_pattern(), **of("b"))
        await until(lambda: slow.begun == 3)
        slow.go.set()
        await asyncio.gather(*running, other)
        for _ in range(3):
            await it.patterns.GetPattern(get_pattern(), **of("a"))


class Streams:
    """Answers each message, and counts them."""

    def __init__(self) -> None:
        self.opened = 0
        self.read = 0

    async def RecordEvents(self, requests: Any, context: Any) -> Any:  # noqa: N802 - as the RPC
        self.opened += 1
        async for _ in requests:
            self.read += 1
            yield _answer()

    async def StartEpisode(self, request: Any, context: Any) -> Any:  # noqa: N802 - as the RPC
        return episode_service_pb2.StartEpisodeResponse()


def _answer() -> Any:
    from lot_grpc.pb.lot.v1 import episode_service_pb2

    return episode_service_pb2.RecordEventsResponse()


def _start() -> Any:
    return episode_service_pb2.StartEpisodeRequest()


def message() -> Any:
    request = EVENTS()
    request.episode_id = "e"
    return request


async def test_streams_at_once_are_limited_by_principal():
    streams = Streams()
    async with wire(None, streams, guards=guards(streams=1)) as it:
        first = it.episodes.RecordEvents(**of("a"))
        await first.write(message())
        await first.read()
        second = it.episodes.RecordEvents(**of("a"))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await second.read()
        assert failure_of(caught.value).metadata["limit"] == "1 open stream"
        other = it.episodes.RecordEvents(**of("b"))
        await other.write(message())
        await other.read()
        await first.done_writing()
        assert await first.read() is grpc.aio.EOF
        await until(lambda: it.server.calls_in_flight == 1)
        third = it.episodes.RecordEvents(**of("a"))
        await third.write(message())
        await third.read()


async def test_messages_of_a_stream_are_served_at_the_rate_and_none_is_lost():
    clock, streams = Clock(), Streams()
    limits = guards(clock, calls_per_second=20, burst=3)
    async with wire(None, streams, guards=limits) as it:
        stream = it.episodes.RecordEvents(**of("a"))  # opening it is a call, too
        for _ in range(6):
            await stream.write(message())
        for _ in range(6):
            await stream.read()
        await stream.done_writing()
        assert await stream.read() is grpc.aio.EOF
        assert streams.read == 6
        failed = await failure(it.episodes.StartEpisode(_start(), **of("a")))
        assert failed.metadata["retry_seconds"] == "0.25", "four more than the burst, and its own"


async def test_a_drain_ends_a_stream_whose_message_waits():
    streams = Streams()
    async with wire(None, streams, guards=guards(calls_per_second=0.001, burst=1)) as it:
        stream = it.episodes.RecordEvents(**of("a"))
        await stream.write(message())
        await until(lambda: streams.opened == 1)
        await asyncio.sleep(0.05)
        await it.server.stop(5)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stream.read()
        assert failure_of(caught.value).reason == "SHUTTING_DOWN"


async def test_one_principal_does_not_take_all_slots_over_many_connections():
    slow = Slow()
    async with wire(slow, guards=guards(), max_concurrent_calls=16) as it:
        channels = [
            grpc.aio.insecure_channel(f"127.0.0.1:{it.port}", options=[("lot.number", number)])
            for number in range(15)
        ]
        get: list[Any] = [one.unary_unary("/lot.v1.PatternService/GetPattern") for one in channels]
        raw = get_pattern().SerializeToString()
        running = [call(raw, **of("a")) for call in get[:14]]
        await until(lambda: slow.begun == 1 or len(it.log) > 0 or it.server.calls_in_flight == 14)
        await until(lambda: it.server.calls_in_flight == 14)
        failed = await failure(get[14](raw, **of("a")))
        assert failed.reason == "OVERLOADED"
        other = it.patterns.GetPattern(get_pattern(), **of("b"))
        await until(lambda: it.server.calls_in_flight == 15)
        slow.go.set()
        await asyncio.gather(*running, other)
        for channel in channels:
            await channel.close()
