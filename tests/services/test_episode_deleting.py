from __future__ import annotations

import asyncio

import pytest

from lot_grpc.domain.episode import EpisodeStatus
from lot_grpc.domain.errors import EpisodeNotFoundError, LotError, WriterReplacedError
from lot_grpc.domain.query import EpisodeFilter
from lot_grpc.services.episodes import episodes as module
from lot_grpc.services.episodes.event_recorder import TakeoverPolicy
from lot_grpc.services.records.collections import EPISODES, EVENTS, TOMBSTONES
from lot_grpc.services.records.episodes import episode_point
from lot_grpc.testing.faults import FaultInjectingStore, InjectedFault, When
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.invariants import check_invariants
from tests.services.world import (
    NS,
    Interleaving,
    SharedStore,
    World,
    end,
    event,
    events,
    open_world,
    payloads,
    start,
    whole,
)


async def delete(world: World, episode_id: str) -> int:
    return await world.services.episodes.episodes.delete_with_events(NS, episode_id)


async def test_an_episode_goes_with_its_events_and_no_other(world, monkeypatch):
    monkeypatch.setattr(module, "_AT_ONCE", 3)
    for name in ("e", "f"):
        await world.services.episodes.creator.record(NS, whole(10, episode_id=name))
    assert await delete(world, "e") == 10
    assert [row["episode_id"] for row in await payloads(world, EPISODES)] == ["f"]
    assert {row["episode_id"] for row in await payloads(world, EVENTS)} == {"f"}
    with pytest.raises(EpisodeNotFoundError):
        await world.services.episodes.episodes.get(NS, "e")
    with pytest.raises(EpisodeNotFoundError):
        await delete(world, "e")
    with pytest.raises(EpisodeNotFoundError):
        await world.services.episodes.episodes.delete_with_events("elsewhere", "f")
    await check_invariants(world.store, NS)


async def test_what_is_recorded_still_ends_with_not_found(world):
    await world.services.episodes.creator.start(NS, start(episode_id="e"))
    recorder = world.services.episodes.recorder
    writer = await recorder.open(NS, "e", TakeoverPolicy.REPLACE)
    await recorder.append(writer, events(1, 4))
    stopped: list[LotError] = []
    writer.on_stop = stopped.append
    assert await delete(world, "e") == 4
    [error] = stopped
    assert isinstance(error, EpisodeNotFoundError)
    with pytest.raises(EpisodeNotFoundError, match="it was deleted"):
        await recorder.append(writer, events(5, 6))
    await recorder.close(writer)
    with pytest.raises(EpisodeNotFoundError):
        await recorder.record_event(NS, "e", event(), "")
    with pytest.raises(EpisodeNotFoundError):
        await world.services.episodes.ender.end(NS, "e", end(), "")
    assert await payloads(world, EVENTS) == []


async def test_a_stream_of_another_process_takes_back_what_it_stores_too_late():
    clock = FixedClock()
    one = await open_world(SharedStore(clock), clock)
    other = one.another_process()
    await one.services.episodes.creator.start(NS, start(episode_id="e"))
    writer = await one.services.episodes.recorder.open(NS, "e", TakeoverPolicy.REPLACE)
    await one.services.episodes.recorder.append(writer, events(1, 4))
    await delete(other, "e")
    with pytest.raises(EpisodeNotFoundError):
        await one.services.episodes.recorder.append(writer, events(5, 6))
    assert await payloads(one, EVENTS) == []


@pytest.mark.parametrize(
    ("call", "draft", "writes"),
    [("start", start(request_id="r"), 2), ("record", whole(3, request_id="r"), 3)],
)
async def test_a_late_retry_does_not_bring_it_back(call, draft, writes):
    """The first try got as far as the episode, and died before it said so."""
    clock = FixedClock()
    faulty = FaultInjectingStore(InMemoryStore(clock))
    world = await open_world(faulty, clock)
    faulty.fail_at(writes, When.AFTER)
    with pytest.raises(InjectedFault):
        await getattr(world.services.episodes.creator, call)(NS, draft)
    faulty.revive()
    world = world.another_process()
    [row] = await payloads(world, EPISODES)
    await delete(world, row["episode_id"])
    with pytest.raises(EpisodeNotFoundError, match="it was deleted after this request"):
        await getattr(world.services.episodes.creator, call)(NS, draft)
    assert await payloads(world, EPISODES) == await payloads(world, EVENTS) == []


@pytest.mark.parametrize("n", [1, 2, 3])
async def test_a_new_episode_of_an_id_that_was_half_deleted_has_none_of_its_events(n, monkeypatch):
    monkeypatch.setattr(module, "_AT_ONCE", 3)
    clock = FixedClock()
    faulty = FaultInjectingStore(SharedStore(clock))
    world = await open_world(faulty, clock)
    await world.services.episodes.creator.record(NS, whole(7, episode_id="e"))
    faulty.fail_at(n + 1, When.AFTER)  # the first write is the tombstone
    with pytest.raises(InjectedFault):
        await delete(world, "e")
    faulty.revive()
    world = world.another_process()
    clock.advance(1)
    assert (
        await world.services.episodes.creator.start(NS, start("another", episode_id="e"))
    ).created
    assert (await world.services.episodes.episodes.get(NS, "e")).event_count == 0
    await world.services.episodes.recorder.record_event(NS, "e", event(text="new"), "")
    clock.advance(16 * 60)
    await world.services.housekeeping.roll_forward()
    page = await world.services.episodes.episodes.list_events(NS, "e", 0, 10)
    assert [one.data for one in page.items] == [b"new"]
    await check_invariants(world.store, NS)


async def test_one_that_was_ended_or_taken_up_again_is_spared_by_a_sweep(world):
    point = episode_point(NS, "e")

    async def seen():
        return (await world.store.get(EPISODES, NS, [point]))[point]

    await world.services.episodes.creator.start(NS, start(episode_id="e"))
    before = await seen()
    await world.services.episodes.ender.end(NS, "e", end(), "")
    assert not await world.services.episodes.episodes.delete_as_seen(before)
    await world.store.update(
        EPISODES, NS, point, set={"status": EpisodeStatus.ABANDONED.value}, when=[]
    )
    before = await seen()
    writer = await world.services.episodes.recorder.open(NS, "e", TakeoverPolicy.REPLACE)
    assert not await world.services.episodes.episodes.delete_as_seen(before)
    await world.services.episodes.recorder.close(writer)
    assert await world.services.episodes.episodes.delete_as_seen(await seen())
    assert all(stone["done"] for stone in await payloads(world, TOMBSTONES))


async def test_one_whose_writer_changed_is_spared_and_a_delete_begins_anew(world):
    point = episode_point(NS, "e")
    await world.services.episodes.creator.start(NS, start(episode_id="e"))
    before = (await world.store.get(EPISODES, NS, [point]))[point]
    writer = await world.services.episodes.recorder.open(NS, "e", TakeoverPolicy.REPLACE)
    assert not await world.services.episodes.episodes.delete_as_seen(before)
    await world.services.episodes.recorder.append(writer, events(1, 2))
    stones = await payloads(world, TOMBSTONES)
    assert [stone["unchanged"] for stone in stones] == [{"writer_epoch": 0, "stats_revision": 0}]
    assert await delete(world, "e") == 2
    stones = await payloads(world, TOMBSTONES)
    assert [stone["unchanged"] for stone in stones] == [{"writer_epoch": 1}]


@pytest.mark.parametrize("make", [InMemoryStore, SharedStore])
@pytest.mark.parametrize("seed", [7, 100, 102, 120])
async def test_a_delete_amid_recording_leaves_no_event(make, seed):
    clock = FixedClock()
    first = await open_world(Interleaving(make(clock), seed), clock)
    worlds = [first] if make is InMemoryStore else [first, first.another_process()]
    await first.services.episodes.creator.start(NS, start(episode_id="e"))

    async def stream(world: World) -> None:
        try:
            writer = await world.services.episodes.recorder.open(NS, "e", TakeoverPolicy.REPLACE)
            for number in range(writer.last + 1, writer.last + 9):
                await world.services.episodes.recorder.append(writer, [event(number)])
        except (EpisodeNotFoundError, WriterReplacedError):
            pass

    async def single(world: World) -> None:
        try:
            for _ in range(3):
                await world.services.episodes.recorder.record_event(NS, "e", event(), "")
        except EpisodeNotFoundError:
            pass

    async def late(world: World) -> None:
        for _ in range(seed % 50):
            await asyncio.sleep(0)
        await delete(world, "e")

    recorder = stream if seed % 2 else single
    await asyncio.gather(recorder(worlds[0]), recorder(worlds[-1]), late(worlds[-1]))
    assert await payloads(first, EVENTS) == []
    page = await first.services.episodes.episodes.list_page(NS, EpisodeFilter(), 5, None)
    assert page.items == []
    await check_invariants(first.store, NS)
