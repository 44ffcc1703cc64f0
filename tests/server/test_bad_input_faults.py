"""Stores that fail, and too much at once: nothing acknowledged is lost, no half is done."""

from __future__ import annotations

import asyncio

import pytest

from lot_grpc.domain.errors import StorageFullError, StoreUnavailableError
from lot_grpc.server.limits import Limits
from tests.server.examples import prepare
from tests.server.held_writes import (
    NEW,
    WRITING,
    _new_patterns,
    ask,
    awaited,
    code_of,
    held_service,
    prepared,
    settled,
)
from tests.server.service import serving
from tests.server.test_episodes_stream import Stream, events
from tests.server.wire import failure, until


@pytest.mark.parametrize("method", sorted(WRITING))
async def test_a_full_disk_refuses_writes_with_a_reason_while_reads_go_on(method):
    store, service = held_service()
    async with service as lot:
        await prepared(lot, method)
        look, nothing, all_of_it = WRITING[method]
        store.error = StorageFullError(100 * 2**20, 400 * 2**20, "/data")
        failed = await failure(ask(lot, method))
        assert (failed.code, failed.reason) == ("RESOURCE_EXHAUSTED", "STORAGE_FULL")
        assert failed.metadata == {"free_bytes": "104857600", "min_free_bytes": "419430400"}
        assert "/data" not in failed.message
        assert await look(lot) == nothing
        assert (await lot.patterns.RecallPatterns(query="t")).hits
        store.error = None
        await ask(lot, method)
        assert await look(lot) == all_of_it


async def test_a_stream_on_a_full_disk_is_told_and_can_go_on_later():
    store, service = held_service()
    async with service as lot:
        await prepare(lot)
        stream = Stream(lot)
        await stream.open(events=events([1]))
        store.error = StorageFullError(1, 2, "/data")
        failed = await failure(stream.send([2]))
        assert failed.reason == "STORAGE_FULL"
        store.error = None
        again = Stream(lot)
        assert (await again.open()).last_sequence == 1
        assert (await again.send([2])).last_sequence == 2


async def test_a_store_that_is_away_is_told_without_its_cause():
    store, service = held_service()
    async with service as lot:
        await prepare(lot)
        error = StoreUnavailableError("the store did not answer; try again in a moment")
        error.__cause__ = OSError("secret-host:6333 refused")
        store.error = error
        failed = await failure(lot.patterns.SavePattern(pattern={"task": "new"}))
        assert (failed.code, failed.reason) == ("UNAVAILABLE", "STORE_UNAVAILABLE")
        assert failed.details["RetryInfo"].retry_delay.seconds == 1
        assert "secret-host" not in str(failed)


async def test_a_bug_shows_a_call_id_and_the_server_lives_on():
    store, service = held_service()
    async with service as lot:
        store.error = KeyError("secret")
        failed = await failure(lot.patterns.SavePattern(pattern={"task": "new"}))
        assert (failed.code, failed.reason) == ("INTERNAL", "INTERNAL")
        assert failed.metadata == {"call_id": failed.call_id}
        assert "secret" not in str(failed)
        store.error = None
        assert (await lot.patterns.SavePattern(pattern={"task": "new"})).created


async def test_one_call_too_many_is_refused_and_nothing_of_it_done():
    store, service = held_service(max_concurrent_calls=2)
    async with service as lot:
        await prepare(lot)
        store.hold()
        running = [
            asyncio.ensure_future(awaited(lot.patterns.SavePattern(pattern={"task": f"t{n}"})))
            for n in range(2)
        ]
        await until(lambda: store.held == 2)
        failed = await failure(lot.patterns.SavePattern(pattern={"task": "too much"}))
        assert (failed.code, failed.reason) == ("RESOURCE_EXHAUSTED", "OVERLOADED")
        assert failed.metadata == {"limit": "2"}
        assert "RetryInfo" in failed.details
        store.gate.set()
        assert [(await call).created for call in running] == [True, True]
        assert (await lot.patterns.SavePattern(pattern={"task": "too much"})).created


async def test_one_stream_too_many_is_refused():
    async with serving(limits=Limits(max_streams=1)) as lot:
        await prepare(lot)
        first = Stream(lot)
        await first.open()
        failed = await Stream(lot).ended()  # a write on its way may hide the status (grpc#36066)
        assert (failed.reason, failed.metadata) == ("OVERLOADED", {"limit": "1"})
        assert (await first.send([1])).last_sequence == 1


async def test_a_call_over_the_servers_time_may_be_repeated_with_its_request_id():
    store, service = held_service(max_call_seconds=0.1)
    async with service as lot:
        await prepare(lot)
        store.hold(after=1)
        failed = await failure(lot.patterns.SavePattern(pattern=NEW, request_id="r"))
        assert (failed.code, failed.reason) == ("DEADLINE_EXCEEDED", "CALL_TIMEOUT")
        assert failed.metadata == {"limit_seconds": "0.1"}
        store.gate.set()
        await settled(lot)
        assert (await lot.patterns.SavePattern(pattern=NEW, request_id="r")).created
        assert await _new_patterns(lot) == ["a new one"]


async def test_a_limit_of_no_seconds_is_no_limit():
    store, service = held_service(max_call_seconds=0)
    async with service as lot:
        await prepare(lot)
        store.hold()
        call = asyncio.ensure_future(awaited(lot.patterns.SavePattern(pattern=NEW)))
        await until(lambda: store.held or call.done())
        await asyncio.sleep(0.02)
        assert not call.done()
        store.gate.set()
        assert (await call).created
        assert not (await lot.admin.GetServerInfo()).limits.HasField("max_call_duration")


async def test_a_message_over_the_limit_is_refused_and_the_next_is_taken(lot):
    for rpc in (lot.patterns.SavePattern, lot.patterns.SavePattern):
        code = await code_of(rpc(pattern={"task": "x" * (17 * 2**20)}))
        assert code == "RESOURCE_EXHAUSTED"
    assert (await lot.patterns.SavePattern(pattern={"task": "t"})).created
