"""Replaying at the service: pace, batches, following across processes, and what it costs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.episode import EpisodeEvent, EpisodeStatus
from lot_grpc.domain.errors import EpisodeNotFoundError, LotError, StoreUnavailableError
from lot_grpc.services.episodes import event_reader as event_reader_module
from lot_grpc.services.episodes import notifier as arrivals_module
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.episodes.event_recorder import TakeoverPolicy
from lot_grpc.services.episodes.notifier import EpisodeNotifier
from lot_grpc.services.episodes.replayer import EpisodeReplayer, Replay, ReplayBatch
from lot_grpc.services.records.collections import EPISODES, EVENTS
from lot_grpc.services.records.episodes import (
    WRITER_EPOCH,
    CommittedPrefix,
    Stage,
    episode_point,
    event_record,
)
from lot_grpc.services.resources import REGISTRY
from tests.contract.clock import FixedClock
from tests.services.world import (
    NS,
    Interleaving,
    SharedStore,
    World,
    end,
    event,
    events,
    open_world,
    start,
)

REPLACE = TakeoverPolicy.REPLACE


class FakeTimer:
    """Time that passes only while somebody sleeps, and then a little more than asked for."""

    def __init__(self, late: float = 0.0) -> None:
        self._now = 1000.0
        self._late = late

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
        self._now += seconds + self._late


async def running(world: World, count: int = 0) -> None:
    """An episode that runs, with so many events."""
    await world.services.episodes.creator.start(NS, start(episode_id="e"))
    await record(world, events(1, count))


async def record(world: World, batch: list[EpisodeEvent]) -> None:
    writer = await world.services.episodes.recorder.open(NS, "e", REPLACE)
    for first in range(0, len(batch), 100):
        await world.services.episodes.recorder.append(writer, batch[first : first + 100])
    await world.services.episodes.recorder.close(writer)


def replay(world: World, **asked: Any) -> AsyncGenerator[ReplayBatch]:
    return world.services.episodes.replayer.replay(NS, "e", Replay(**asked))


async def sequences(world: World, **asked: Any) -> list[int]:
    async with aclosing(replay(world, **asked)) as batches:
        return [event.sequence async for batch in batches for event in batch.events]


async def until_caught_up(batches: AsyncGenerator[ReplayBatch]) -> list[int]:
    got: list[int] = []
    async with asyncio.timeout(10):
        async for batch in batches:
            got += [event.sequence for event in batch.events]
            if batch.caught_up:
                return got
    raise AssertionError(f"the replay ended, with {got}")


# --- pace -----------------------------------------------------------------------------------------


async def sent_at(times: list[int], speed: float, late: float) -> list[float]:
    """Seconds after the first at which each event was sent, by the timer."""
    world = await open_world()
    await running(world)
    await record(world, [replace(event(n), event_time=t) for n, t in enumerate(times, 1)])
    timer = FakeTimer(late)
    replaying = EpisodeReplayer(
        world.store, EventLog(world.store), EpisodeNotifier(world.store), timer
    )
    sent: list[float] = []
    async with aclosing(replaying.replay(NS, "e", Replay(speed=speed))) as batches:
        async for batch in batches:
            assert batch.events
            sent += [timer.now() - 1000.0] * len(batch.events)
    return sent


@given(
    st.lists(st.integers(0, 3_600_000_000), min_size=1, max_size=40),
    st.sampled_from([0.5, 1.0, 2.0, 1000.0]),
    st.sampled_from([0.0, 0.001, 0.02]),
)
def test_events_come_when_they_are_due_and_being_late_does_not_add_up(times, speed, late):
    sent = asyncio.run(sent_at(times, speed, late))
    assert len(sent) == len(times)
    assert sent == sorted(sent)
    latest = 0.0
    for happened, at in zip(times, sent, strict=True):
        latest = max(latest, (happened - times[0]) / 1e6 / speed)
        assert latest - 1e-6 <= at <= latest + late + 1e-6


async def test_speed_0_does_not_wait():
    assert await sent_at([0, 10**15, 5, 10**17], 0, 1.0) == [0.0] * 4


async def test_what_is_due_together_comes_together():
    world = await open_world()
    await running(world)
    times = [0, 0, 0, 2_000_000, 2_000_000, 1_000_000, 9_000_000]
    await record(world, [replace(event(n), event_time=t) for n, t in enumerate(times, 1)])
    timer = FakeTimer()
    replaying = EpisodeReplayer(
        world.store, EventLog(world.store), EpisodeNotifier(world.store), timer
    )
    async with aclosing(replaying.replay(NS, "e", Replay(speed=1))) as batches:
        got = [[event.sequence for event in batch.events] async for batch in batches]
    assert got == [[1, 2, 3], [4, 5, 6], [7]]


# --- batches --------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from([0, 10, 200_000, 262_144]), max_size=60), st.integers(0, 60))
def test_batches_are_bounded_whatever_the_events_weigh(sizes, after):
    async def check() -> None:
        world = await open_world()
        await running(world)
        await record(
            world,
            [EpisodeEvent(n, "x", data=b"x" * size) for n, size in enumerate(sizes, 1)],
        )
        async with aclosing(replay(world, after=after)) as batches:
            got = [batch.events async for batch in batches]
        assert [e.sequence for batch in got for e in batch] == list(
            range(after + 1, len(sizes) + 1)
        )
        for batch in got:
            assert len(batch) == 1 or sum(len(e.data or b"") for e in batch) <= 2**20

    asyncio.run(check())


class CountingStore:
    """A store that counts what is read of it."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.reads = 0
        self.ids = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def get(self, collection: str, namespace: str, ids: Any, **named: Any) -> Any:
        self.reads += 1
        self.ids += len(ids)
        return await self._inner.get(collection, namespace, ids, **named)

    async def scroll(self, *given: Any, **named: Any) -> Any:
        self.reads += 1
        return await self._inner.scroll(*given, **named)


async def settle() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def test_a_reader_that_takes_nothing_more_reads_nothing_more():
    store = CountingStore(SharedStore(FixedClock()))
    world = await open_world(store)
    await running(world, 1000)
    async with aclosing(replay(world)) as batches:
        await anext(batches)
        await settle()
        held = store.reads
        await settle()
        assert store.reads == held
        assert store.ids < 1500  # not all of the 1,000 read, in whatever pieces
    await settle()
    assert store.reads == held
    assert len(asyncio.all_tasks()) == 1


async def test_a_cancelled_replay_ends_its_reading():
    store = CountingStore(SharedStore(FixedClock()))
    world = await open_world(store)
    await running(world, 10)
    following = asyncio.create_task(sequences(world, follow=True))
    await settle()
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following
    await settle()
    assert len(asyncio.all_tasks()) == 1


# --- following ------------------------------------------------------------------------------------


async def test_events_of_another_process_are_found(monkeypatch):
    monkeypatch.setattr(arrivals_module, "_POLL_SECONDS", 0.01)
    world = await open_world(SharedStore(FixedClock()))
    other = world.another_process()
    await running(other, 3)
    async with aclosing(replay(world, follow=True)) as batches:
        assert await until_caught_up(batches) == [1, 2, 3]
        await other.services.episodes.recorder.record_event(NS, "e", event(), "")
        assert await until_caught_up(batches) == [4]
        writer = await other.services.episodes.recorder.open(NS, "e", REPLACE)
        await other.services.episodes.recorder.append(writer, events(5, 40))
        got: list[int] = []
        while got[-1:] != [40]:
            got += await until_caught_up(batches)
        assert got == list(range(5, 41))
        await other.services.episodes.ender.end(NS, "e", end(), "")
        async with asyncio.timeout(10):
            assert [batch async for batch in batches] == []


async def test_a_deletion_by_another_process_is_found(monkeypatch):
    monkeypatch.setattr(arrivals_module, "_POLL_SECONDS", 0.01)
    world = await open_world(SharedStore(FixedClock()))
    other = world.another_process()
    await running(other, 3)
    async with aclosing(replay(world, follow=True)) as batches:
        await until_caught_up(batches)
        await other.services.episodes.episodes.delete_with_events(NS, "e")
        with pytest.raises(EpisodeNotFoundError):
            async with asyncio.timeout(10):
                await anext(batches)


async def test_a_store_that_fails_while_one_follows_is_told(monkeypatch):
    monkeypatch.setattr(arrivals_module, "_POLL_SECONDS", 0.01)
    inner = SharedStore(FixedClock())
    store: Any = CountingStore(inner)
    world = await open_world(store)
    await running(world, 3)

    async def fail(*given: Any, **named: Any) -> Any:
        raise StoreUnavailableError("it is away")

    async with aclosing(replay(world, follow=True)) as batches:
        await until_caught_up(batches)
        store.get = store.scroll = fail
        with pytest.raises(StoreUnavailableError):
            async with asyncio.timeout(10):
                await anext(batches)


async def test_many_followers_cost_two_reads_a_poll(monkeypatch):
    monkeypatch.setattr(arrivals_module, "_POLL_SECONDS", 0.02)
    store = CountingStore(SharedStore(FixedClock()))
    world = await open_world(store)
    await running(world, 3)
    followers = [replay(world, follow=True) for _ in range(100)]
    for each in followers:
        await until_caught_up(each)
    before = store.reads
    polls = 5
    await asyncio.sleep(polls * 0.02)
    assert store.reads - before <= 2 * polls
    for each in followers:
        await each.aclose()
    await settle()
    assert len(asyncio.all_tasks()) == 1


async def test_together_followers_are_woken_no_more_than_a_thousand_times_a_second():
    notifier = EpisodeNotifier((await open_world()).store)
    stage = Stage(1, EpisodeStatus.RUNNING, 0, 0, CommittedPrefix())
    woken = 0

    async def follow() -> None:
        nonlocal woken
        with notifier.watch(NS, "e") as watch:
            while True:
                watch.clear()
                await watch.wait(0, stage)
                woken += 1

    followers = [asyncio.create_task(follow()) for _ in range(100)]
    began = time.monotonic()
    while time.monotonic() - began < 0.35:
        notifier.notify(NS, "e")
        await asyncio.sleep(0)
    took = time.monotonic() - began
    for each in followers:
        each.cancel()
    await asyncio.gather(*followers, return_exceptions=True)
    assert len(followers) < woken <= 1000 * took + len(followers)
    assert not notifier._by_episode


async def test_where_no_other_process_writes_nothing_is_polled():
    store = CountingStore((await open_world()).store)
    world = await open_world(store)
    await running(world, 3)
    async with aclosing(replay(world, follow=True)) as batches:
        await until_caught_up(batches)
        await settle()  # the read ahead
        before = store.reads
        tasks = len(asyncio.all_tasks())
        await asyncio.sleep(0.3)
        assert store.reads == before
        assert tasks == 2  # this test, and what waits


@pytest.mark.parametrize("seed", range(12))
async def test_followers_see_just_the_events_that_stay_while_writers_take_over(monkeypatch, seed):
    """Two processes take an episode from each other while it is followed from both."""
    monkeypatch.setattr(arrivals_module, "_POLL_SECONDS", 0.001)
    store = Interleaving(SharedStore(FixedClock()), seed)
    world = await open_world(store)
    processes = [world, world.another_process()]
    await running(world)
    followers = [asyncio.create_task(collected(process)) for process in processes for _ in range(2)]
    await asyncio.gather(*(write(process, n) for n, process in enumerate(processes)))
    await world.services.episodes.ender.end(NS, "e", end(), "")
    page = await world.services.episodes.episodes.list_events(NS, "e", 0, 1000)
    stored = [(each.sequence, each.data) for each in page.items]
    async with asyncio.timeout(20):
        for follower in followers:
            assert await follower == stored
    assert stored


async def collected(world: World) -> list[tuple[int, bytes | None]]:
    async with aclosing(replay(world, follow=True)) as batches:
        return [(each.sequence, each.data) async for batch in batches for each in batch.events]


async def write(world: World, number: int) -> None:
    """Record as long as it lasts, again and again, each time something else."""
    for turn in range(8):
        try:
            writer = await world.services.episodes.recorder.open(NS, "e", REPLACE)
            for _ in range(4):
                first = writer.last + 1
                batch = [event(n, f"{number}.{turn}.{n}") for n in range(first, first + 5)]
                await world.services.episodes.recorder.append(writer, batch)
        except LotError:
            await asyncio.sleep(0)


async def test_a_writer_that_died_while_it_took_over_is_waited_for_once(monkeypatch):
    pauses = 0

    async def pause(attempt: int) -> None:
        nonlocal pauses
        pauses += 1

    monkeypatch.setattr("lot_grpc.kernel.compare_and_set._pause", pause)
    world = await open_world(SharedStore(FixedClock()))
    await running(world, 300)
    point = episode_point(NS, "e")
    assert await world.store.update(EPISODES, NS, point, set={WRITER_EPOCH: 7}, when=[])
    assert await sequences(world) == list(range(1, 301))
    assert pauses == event_reader_module._PATIENCE - 1


async def test_events_stored_behind_the_end_are_not_replayed():
    """A writer of another process may store some before it finds that the episode has ended."""
    world = await open_world(SharedStore(FixedClock()))
    await running(world, 5)
    await world.services.episodes.ender.end(NS, "e", end(), "")
    late = event_record(NS, "e", replace(event(6), record_time=1), epoch=99)
    await world.store.insert(EVENTS, [late])
    for follow in (False, True):
        assert await sequences(world, follow=follow) == [1, 2, 3, 4, 5]


async def test_what_follows_a_number_that_is_still_to_be_written_is_not_read_yet():
    """A new writer stores a batch around an event that the one before left in its way."""
    world = await open_world(SharedStore(FixedClock()))
    await running(world, 2)
    writer = await world.services.episodes.recorder.open(NS, "e", REPLACE)
    late = event_record(NS, "e", event(3, "late"), epoch=writer.epoch - 1)
    ours = [event_record(NS, "e", one, epoch=writer.epoch) for one in events(4, 5)]
    await world.store.insert(EVENTS, [late, *ours])

    async def exported() -> list[int]:
        episode = (await world.store.get(EPISODES, NS, [episode_point(NS, "e")])).popitem()[1]
        read = REGISTRY.exported[EVENTS].rule.inner
        assert read is not None
        rows = read(world.store, episode, "")
        return [record.payload["sequence"] async for record, _ in rows]

    async def seen() -> list[list[int]]:
        async with aclosing(replay(world, follow=True)) as batches:
            followed = await until_caught_up(batches)
        page = await world.services.episodes.episodes.list_events(NS, "e", 0, 100)
        listed = [one.sequence for one in page.items]
        return [followed, await sequences(world), listed, await exported()]

    assert await seen() == [[1, 2]] * 4
    await world.services.episodes.recorder.append(writer, events(3, 5))
    assert await seen() == [[1, 2, 3, 4, 5]] * 4
