"""Callers that leave: what they began is carried out whole, and counts once."""

from __future__ import annotations

import asyncio

import pytest

from lot_grpc.services.records.collections import EVENTS, PATTERNS
from lot_grpc.testing.in_memory import InMemoryStore
from tests.server.examples import EXAMPLES, prepare
from tests.server.held_writes import (
    NEW,
    WRITING,
    ask,
    awaited,
    code_of,
    event_numbers,
    held_service,
    prepared,
    session_state,
    settled,
)
from tests.server.test_episodes_stream import PB, Stream, events
from tests.server.wire import until


def test_every_unary_write_is_tried():
    from lot_grpc.server.call import Method
    from tests.server.examples import method_of

    writes = {
        rpc.partition(".")[2]
        for rpc in EXAMPLES
        if (method := Method.of(method_of(rpc))).writes and not method.streaming
    }
    assert set(WRITING) == writes - {"Compact"}


@pytest.mark.parametrize(
    ("how", "after"), [("cancel", 0), ("cancel", 1), ("cancel", 2), ("deadline", 1)]
)
@pytest.mark.parametrize("method", sorted(WRITING))
async def test_a_write_whose_caller_leaves_is_carried_out_whole(method, how, after):
    look, nothing, all_of_it = WRITING[method]
    store, service = held_service()
    async with service as lot:
        await prepared(lot, method)
        assert await look(lot) == nothing
        store.hold(after=after)
        for seconds in (0.05, 0.5, 5) if how == "deadline" else (30,):
            call = asyncio.ensure_future(awaited(ask(lot, method, timeout=seconds)))
            await until(lambda call=call: store.held or call.done())
            if store.held or store.skip < after:
                break  # else the machine is busy, and the deadline passed before it was begun
        if how == "cancel":
            call.cancel()
        await asyncio.wait([call])
        store.gate.set()
        await settled(lot)
        assert await look(lot) == all_of_it


@pytest.mark.parametrize(
    "method",
    [
        "SavePattern", "RecordOutcome", "RecordEvent", "CreateMemory", "StartEpisode",
        "PutPreference", "AppendSessionMessage",
    ],
)  # fmt: skip
async def test_a_retry_of_what_the_caller_gave_up_counts_once(method):
    store, service = held_service()
    async with service as lot:
        await prepare(lot)
        store.hold(after=1)
        failed = await code_of(ask(lot, method, request_id="r", timeout=0.1))
        assert failed == "DEADLINE_EXCEEDED"
        retry = asyncio.ensure_future(awaited(ask(lot, method, request_id="r")))
        await asyncio.sleep(0.02)
        store.gate.set()
        first = await retry
        await settled(lot)
        again = await ask(lot, method, request_id="r")
        if method == "RecordOutcome":
            assert again.patterns[0].outcomes.usage_count == 2  # one was there
        elif method == "RecordEvent":
            assert again == first
            assert await event_numbers(lot) == [1]
        elif method == "PutPreference":
            assert again == first
            assert again.preference.revision == 2  # one was there
        elif method == "AppendSessionMessage":
            assert again == first
            assert await session_state(lot) == (["k"], [1])
        else:
            [resource_kind] = {"pattern", "memory", "episode"} & set(
                again.DESCRIPTOR.fields_by_name
            )
            ids = {
                getattr(getattr(one, resource_kind), f"{resource_kind}_id")
                for one in (first, again)
            }
            assert len(ids) == 1


async def test_a_batch_of_events_whose_caller_leaves_is_stored_whole():
    store, service = held_service()
    async with service as lot:
        await prepare(lot)
        stream = Stream(lot)
        await stream.open()
        store.hold()
        await stream.call.write(PB.RecordEventsRequest(events=events(range(1, 51))))
        await until(lambda: store.held)
        stream.call.cancel()
        store.gate.set()
        await settled(lot)
        answer = await Stream(lot).open()
        assert answer.last_sequence == 50


async def test_the_store_was_really_held():
    """The double itself: without it the tests above would prove nothing."""
    store, service = held_service()
    async with service as lot:
        store.hold()
        call = asyncio.ensure_future(awaited(lot.patterns.SavePattern(pattern=NEW)))
        await until(lambda: store.held)
        assert not call.done()
        assert await InMemoryStore.count(store, PATTERNS, lot.namespace) == 0
        assert await InMemoryStore.count(store, EVENTS, lot.namespace) == 0
        store.gate.set()
        await call
        assert await InMemoryStore.count(store, PATTERNS, lot.namespace) == 1
