"""RecordEvents when many record at once, and when one says nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import episode_service_pb2
from lot_grpc.server.limits import Limits
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.server.episodes import events_of, started
from tests.server.service import Lot, serving
from tests.server.test_episodes_stream import Stream, events, opened
from tests.server.wire import failure, until
from tests.services.world import SharedStore

PB: Any = episode_service_pb2
SHORT = 0.05


@pytest.fixture
async def idling() -> AsyncIterator[Lot]:
    """A service that closes idle streams soon."""
    async with serving(limits=Limits(stream_idle_seconds=SHORT)) as lot:
        yield lot


# --- idle streams -----------------------------------------------------------------------------


async def test_an_idle_stream_is_closed_with_a_reason_and_goes_on_anew(idling):
    await started(idling, episode_id="e")
    stream = await opened(idling, events=events([1, 2]))
    failed = await stream.ended()
    assert (failed.code, failed.reason) == ("ABORTED", "STREAM_IDLE")
    assert failed.metadata == {"episode_id": "e", "idle_seconds": f"{SHORT:g}"}
    assert "resume after last_sequence" in failed.message
    again = Stream(idling)
    answer = await again.open(takeover_policy=PB.TAKEOVER_POLICY_REFUSE)
    assert (answer.last_sequence, answer.writer_epoch) == (2, 2)
    assert (await again.send([3])).last_sequence == 3


async def test_after_an_idle_stream_the_episode_is_free(idling):
    await started(idling, episode_id="e")
    await (await opened(idling)).ended()
    answer = await idling.episodes.RecordEvent(episode_id="e", event={"event_type": "x"})
    assert answer.event.sequence == 1
    assert idling.server is not None
    assert idling.own_services is not None
    assert not idling.own_services.episodes.recorder._active_streams._places


async def test_heartbeats_keep_a_stream_open_and_tell_the_last_sequence(lot):
    """One that waits longer than allowed between two messages, but for its heartbeats."""
    await started(lot, episode_id="e")
    stream = await opened(lot, events=events([1, 2]))
    for _ in range(3):
        assert (await stream.send([])).last_sequence == 2
    assert (await stream.send([3])).last_sequence == 3


async def test_no_setting_closes_no_stream():
    async with serving(limits=Limits(stream_idle_seconds=0)) as lot:
        await started(lot, episode_id="e")
        stream = await opened(lot)
        waiting = asyncio.create_task(stream.ended())
        await asyncio.sleep(4 * SHORT)
        assert not waiting.done()
        stream.call.cancel()
        with suppress(asyncio.CancelledError):
            await waiting


class SlowStore(InMemoryStore):
    """Takes longer to insert events than a stream may be idle."""

    async def insert(self, collection: str, records: Any) -> set[str]:
        if collection == "events":
            await asyncio.sleep(3 * SHORT)
        return await super().insert(collection, records)


async def test_a_stream_is_not_idle_while_the_server_works_for_it():
    clock = FixedClock()
    limits = Limits(stream_idle_seconds=SHORT)
    async with serving(SlowStore(clock), clock=clock, limits=limits) as lot:
        await started(lot, episode_id="e")
        stream = Stream(lot)
        await stream.call.write(
            PB.RecordEventsRequest(namespace=lot.namespace, episode_id="e", events=events([1]))
        )
        await stream.call.write(PB.RecordEventsRequest(events=events([2])))
        seen = [(await stream.call.read()).last_sequence for _ in range(2)]
        assert seen == [1, 2]
        assert (await stream.ended()).reason == "STREAM_IDLE"


# --- many at once -----------------------------------------------------------------------------


async def test_fifty_streams_at_once_are_complete_and_in_order(lot):
    names = [f"e{n}" for n in range(50)]
    for name in names:
        await started(lot, "the same task", episode_id=name)

    async def record(name: str) -> list[int]:
        stream = Stream(lot)
        await stream.open(name)
        for first in range(1, 60, 10):  # sent ahead
            batch = events(range(first, first + 10), name)
            await stream.call.write(PB.RecordEventsRequest(events=batch))
        seen = [(await stream.call.read()).last_sequence for _ in range(6)]
        await stream.close()
        return seen

    told = await asyncio.gather(*map(record, names))
    assert told == [[10, 20, 30, 40, 50, 60]] * 50
    for name in names:
        stored = await events_of(lot, name)
        assert [event.sequence for event in stored] == list(range(1, 61))
        assert {event.event_type for event in stored} == {name}


class CountingStore(InMemoryStore):
    """Counts the inserts of events; holds them up while ``gate`` is closed."""

    def __init__(self, clock: FixedClock) -> None:
        super().__init__(clock)
        self.inserts = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def insert(self, collection: str, records: Any) -> set[str]:
        if collection == "events":
            self.inserts += 1
            await self.gate.wait()
        return await super().insert(collection, records)


async def test_streams_share_inserts_and_none_is_acknowledged_before_its_own():
    clock = FixedClock()
    store = CountingStore(clock)
    async with serving(store, clock=clock) as lot:
        names = [f"e{n}" for n in range(20)]
        streams = []
        for name in names:
            await started(lot, "the same task", episode_id=name)
            streams.append(Stream(lot))
            await streams[-1].open(name)
        store.gate.clear()
        waiting = [asyncio.create_task(stream.send([1, 2])) for stream in streams]
        await until(lambda: store.inserts > 0)
        # Streams whose events are not stored are not answered; those without events are.
        await started(lot, episode_id="other")
        heartbeat = Stream(lot)
        await heartbeat.open("other")
        assert (await heartbeat.send([])).last_sequence == 0
        assert not any(one.done() for one in waiting)
        store.gate.set()
        assert [(await one).last_sequence for one in waiting] == [2] * 20
        assert store.inserts < 20
        for name in names:
            assert [event.sequence for event in await events_of(lot, name)] == [1, 2]


async def test_one_whose_caller_leaves_in_a_shared_insert_does_not_hurt_the_others():
    clock = FixedClock()
    store = CountingStore(clock)
    async with serving(store, clock=clock) as lot:
        for name in ("gone", "stays"):
            await started(lot, "the same task", episode_id=name)
        gone, stays = Stream(lot), Stream(lot)
        await gone.open("gone")
        await stays.open("stays")
        store.gate.clear()
        await gone.call.write(PB.RecordEventsRequest(events=events([1])))
        waiting = asyncio.create_task(stays.send([1]))
        await until(lambda: store.inserts > 0)
        gone.call.cancel()
        store.gate.set()
        assert (await waiting).last_sequence == 1
        assert (await stays.send([2])).last_sequence == 2


async def test_a_stream_that_reads_no_acknowledgement_holds_up_no_other(lot):
    for name in ("silent", "lively"):
        await started(lot, "the same task", episode_id=name)
    silent, lively = Stream(lot), Stream(lot)
    await silent.open("silent")
    await lively.open("lively")
    for n in range(1, 200):
        await silent.call.write(PB.RecordEventsRequest(events=events([n])))
        assert (await lively.send([n])).last_sequence == n
    silent.call.cancel()


# --- several processes ------------------------------------------------------------------------


async def test_a_stream_of_another_server_is_seen_until_it_closes():
    clock = FixedClock()
    store = SharedStore(clock)
    async with serving(store, clock=clock) as one, serving(store, clock=clock) as other:
        other = other.on(one.namespace)
        await started(one, episode_id="e")
        stream = await opened(one, events=events([1]))
        failed = await failure(Stream(other).open(takeover_policy=PB.TAKEOVER_POLICY_REFUSE))
        assert failed.reason == "EPISODE_STREAM_OPEN"
        ask = {"episode_id": "e", "event": {"event_type": "y"}}
        failed = await failure(other.episodes.RecordEvent(**ask))
        assert failed.reason == "EPISODE_STREAM_OPEN"
        await stream.close()
        assert (await other.episodes.RecordEvent(**ask)).event.sequence == 2
        polite = Stream(other)
        assert (await polite.open(takeover_policy=PB.TAKEOVER_POLICY_REFUSE)).last_sequence == 2
