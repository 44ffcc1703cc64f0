"""Callers that leave early, and calls that take too long."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import grpc.aio
import pytest

from tests.server.doubles import Patterns, Slow, awaited, get_pattern
from tests.server.wire import failure, save, until, wire


async def _leave(it: Any, method: str, request: Any, how: str, servicer: Slow) -> None:
    if how == "deadline":
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await getattr(it.patterns, method)(request, timeout=0.1)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    else:
        call = getattr(it.patterns, method)(request)
        await until(lambda: servicer.begun == 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call


@pytest.mark.parametrize("how", ["deadline", "cancel"])
@pytest.mark.parametrize("pattern_id", ["p-1", "boom"])
async def test_a_write_is_finished_though_its_caller_has_left(how, pattern_id):
    servicer = Slow()
    async with wire(servicer) as it:
        request = save()
        request.pattern_id = pattern_id
        await _leave(it, "SavePattern", request, how, servicer)
        await until(lambda: it.log)
        # At its deadline a client cancels too, and that may come before the server's timer.
        left = {"CANCELLED"} if how == "cancel" else {"CANCELLED", "DEADLINE_EXCEEDED"}
        assert it.log[0]["code"] in left
        assert it.server.calls_in_flight == 1
        servicer.go.set()
        await until(lambda: it.server.calls_in_flight == 0)
        assert servicer.written == [pattern_id]
        late = await it.logged(2)
        assert late["late"] is True
        assert late["call_id"] == it.log[0]["call_id"]
        assert (late["code"], "error" in late) == (
            ("INTERNAL", True) if pattern_id == "boom" else ("OK", False)
        )


@pytest.mark.parametrize("how", ["deadline", "cancel"])
async def test_a_read_ends_when_its_caller_leaves(how):
    servicer = Slow()
    async with wire(servicer) as it:
        await _leave(it, "GetPattern", get_pattern(), how, servicer)
        await until(lambda: it.server.calls_in_flight == 0)
        assert servicer.cancelled == 1
        await until(lambda: it.log)
        assert it.log[0]["code"] in {"CANCELLED", "DEADLINE_EXCEEDED"}


async def test_a_call_over_the_servers_time_is_told_so_and_its_write_goes_on():
    servicer = Slow()
    async with wire(servicer, max_call_seconds=0.05) as it:
        failed = await failure(it.patterns.SavePattern(save()))
        assert (failed.code, failed.reason) == ("DEADLINE_EXCEEDED", "CALL_TIMEOUT")
        assert failed.metadata == {"limit_seconds": "0.05"}
        assert "may have been applied" in failed.message
        failed = await failure(it.patterns.GetPattern(get_pattern()))
        assert failed.reason == "CALL_TIMEOUT"
        assert servicer.cancelled == 1
        assert it.server.calls_in_flight == 1
        servicer.go.set()
        await until(lambda: servicer.written)


async def test_a_servicers_own_timeout_is_not_taken_for_the_servers():
    async with wire(Patterns(TimeoutError("of the store"))) as it:
        assert (await failure(it.patterns.SavePattern(save()))).reason == "INTERNAL"


async def test_one_call_too_many_is_refused_and_the_next_is_taken():
    servicer = Slow()
    async with wire(servicer, max_concurrent_calls=2) as it:
        running = [asyncio.ensure_future(awaited(it.patterns.SavePattern(save()))) for _ in "ab"]
        await until(lambda: servicer.begun == 2)
        failed = await failure(it.patterns.GetPattern(get_pattern()))
        assert (failed.code, failed.reason) == ("RESOURCE_EXHAUSTED", "OVERLOADED")
        assert failed.metadata == {"limit": "2"}
        assert failed.details["RetryInfo"].retry_delay.seconds == 1
        servicer.go.set()
        await asyncio.gather(*running)
        assert await it.patterns.GetPattern(get_pattern())


async def test_writes_without_a_caller_count_as_running():
    servicer = Slow()
    async with wire(servicer, max_concurrent_calls=1) as it:
        await _leave(it, "SavePattern", save(), "cancel", servicer)
        await until(lambda: it.log)
        assert (await failure(it.patterns.SavePattern(save()))).reason == "OVERLOADED"
        servicer.go.set()
        await until(lambda: it.server.calls_in_flight == 0)
        assert await it.patterns.SavePattern(save())
