"""Episodes that were left without an end."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from lot_grpc.domain.episode import Episode, EpisodeStatus
from lot_grpc.domain.errors import EpisodeEndedError, EpisodeStreamOpenError, WriterReplacedError
from lot_grpc.domain.policy import NamespacePolicy, PolicyEdit
from lot_grpc.domain.query import EpisodeFilter
from lot_grpc.services.episodes import abandoner as module
from lot_grpc.services.episodes.abandoner import EpisodeAbandoner
from lot_grpc.services.episodes.active_streams import ActiveStreams
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.episodes.event_recorder import TakeoverPolicy
from lot_grpc.services.episodes.notifier import EpisodeNotifier
from lot_grpc.services.records.collections import EPISODES, EVENTS
from lot_grpc.services.records.episodes import (
    ABANDONING,
    episode_from_record,
    episode_point,
)
from lot_grpc.services.time_source import TimeSource
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.invariants import check_invariants
from tests.services.world import (
    DAY,
    HOUR,
    MINUTE,
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
    sweep,
    whole,
)

ABANDONED, RUNNING = EpisodeStatus.ABANDONED, EpisodeStatus.RUNNING
MICROS = 1_000_000


@pytest.fixture(params=["own store", "shared store"])
async def world(request: pytest.FixtureRequest) -> World:
    clock = FixedClock()
    make = InMemoryStore if request.param == "own store" else SharedStore
    return await open_world(make(clock), clock)


async def got(world: World, episode_id: str = "e", namespace: str = NS) -> Episode:
    return await world.services.episodes.episodes.get(namespace, episode_id)


async def begin(world: World, episode_id: str = "e", count: int = 0, namespace: str = NS) -> None:
    await world.services.episodes.creator.start(namespace, start(episode_id=episode_id))
    for _ in range(count):
        await single(world, episode_id, namespace)


async def single(world: World, episode_id: str = "e", namespace: str = NS) -> int:
    given = event(text="x")
    stored = await world.services.episodes.recorder.record_event(namespace, episode_id, given, "")
    return stored.sequence


async def left(world: World, count: int = 3) -> Episode:
    """``e`` with so many events, abandoned."""
    await begin(world, "e", count)
    world.clock.advance(DAY)
    assert await sweep(world) == [(NS, {"EPISODE": 1})]
    return await got(world)


async def test_an_episode_is_abandoned_a_day_after_its_last_event_and_not_before(world):
    await begin(world, "quiet")
    created = world.clock.now()
    world.clock.advance(HOUR)
    await begin(world, "e", 3)
    last = world.clock.now()
    before = await got(world)
    world.clock.advance(DAY - 2 * MINUTE)
    assert await sweep(world) == [(NS, {"EPISODE": 1})]
    assert (await got(world)).status is RUNNING
    quiet = await got(world, "quiet")
    assert (quiet.status, quiet.end_time, quiet.event_count) == (ABANDONED, created, 0)
    world.clock.advance(2 * MINUTE)
    assert await sweep(world) == [(NS, {"EPISODE": 1})]
    after = await got(world)
    assert (after.status, after.end_time, after.event_count) == (ABANDONED, last, 3)
    assert after.update_time == world.clock.now()
    assert after.etag != before.etag
    assert (after.end, after.start) == (None, before.start)
    assert await sweep(world) == []


async def test_one_that_started_after_the_first_sweep_is_found_too(world):
    assert await sweep(world) == []
    await begin(world, "e", 1)
    world.clock.advance(DAY)
    assert await sweep(world) == [(NS, {"EPISODE": 1})]


async def test_the_time_may_be_set_and_0_is_never():
    clock = FixedClock()
    store = InMemoryStore(clock)
    world = await open_world(store, clock)
    await begin(world)

    def looking(hours: float) -> EpisodeAbandoner:
        return EpisodeAbandoner(
            store,
            TimeSource(clock),
            EventLog(store),
            ActiveStreams(),
            EpisodeNotifier(store),
            hours,
        )

    clock.advance(2 * HOUR)
    assert (await looking(0).sweep()).counts == {}
    assert (await looking(2.5).sweep()).counts == {}
    assert (await looking(2).sweep()).counts == {NS: {"EPISODE": 1}}


async def test_ended_ones_are_left_alone(world):
    await world.services.episodes.creator.record(NS, whole(2, "e"))
    before = await got(world)
    world.clock.advance(9 * DAY)
    assert await sweep(world) == []
    assert await got(world) == before


async def test_what_was_abandoned_is_told_by_namespace(world):
    for number, namespace in enumerate(["a", "b", "b"]):
        await begin(world, f"e{number}", 1, namespace)
    world.clock.advance(DAY)
    assert sorted(await sweep(world)) == [("a", {"EPISODE": 1}), ("b", {"EPISODE": 2})]


async def test_a_start_in_the_future_is_the_end_of_what_never_came(world):
    later = world.clock.now() + 3 * DAY * MICROS
    await world.services.episodes.creator.start(NS, start(episode_id="e", start_time=later))
    world.clock.advance(DAY)
    await sweep(world)
    episode = await got(world)
    assert (episode.status, episode.end_time) == (ABANDONED, later)


# --- who looks, and when ----------------------------------------------------------------------


class CountingLog(EventLog):
    """Says of which episodes the last event was looked up."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.calls: list[str] = []

    async def last_sequence(self, namespace: str, episode_id: str, *rest: Any, **named: Any) -> int:
        self.calls.append(episode_id)
        return await super().last_sequence(namespace, episode_id, *rest, **named)


async def test_the_last_event_of_a_running_one_is_looked_up_once_in_a_day(world):
    log = CountingLog(world.store)
    looking = EpisodeAbandoner(
        world.store, TimeSource(world.clock), log, ActiveStreams(), EpisodeNotifier(world.store)
    )
    for number in range(5):
        await begin(world, f"e{number}")
    for _ in range(3 * 24):
        world.clock.advance(HOUR)
        for number in range(5):
            await single(world, f"e{number}")
        assert (await looking.sweep()).counts == {}
    assert sorted(log.calls) == sorted([f"e{number}" for number in range(5)] * 3)


async def test_many_that_are_due_at_once_are_all_abandoned_in_batches(world, monkeypatch):
    monkeypatch.setattr(module, "_BATCH", 7)
    for number in range(40):
        await begin(world, f"e{number}", number % 2)
    world.clock.advance(DAY / 2)
    for number in range(0, 40, 4):
        await single(world, f"e{number}")
    world.clock.advance(DAY / 2)
    assert await sweep(world) == [(NS, {"EPISODE": 30})]
    running = await world.services.episodes.episodes.list_page(
        NS, EpisodeFilter(statuses=(RUNNING,)), 50, None
    )
    assert {one.episode_id for one in running.items} == {f"e{n}" for n in range(0, 40, 4)}


async def test_an_open_stream_is_activity_and_so_is_its_last_moment(world):
    await begin(world)
    writer = await world.services.episodes.recorder.open(NS, "e", TakeoverPolicy.REPLACE)
    for _ in range(3 * 24):
        world.clock.advance(HOUR)
        await world.services.episodes.leases.renew()
        assert await sweep(world) == []
        assert await sweep(world.another_process()) == [] or world.store.exclusive
    assert (await got(world)).status is RUNNING
    await world.services.episodes.recorder.close(writer)
    closed = world.clock.now()
    world.clock.advance(DAY)
    await sweep(world)
    episode = await got(world)
    assert episode.status is ABANDONED
    assert episode.end_time is not None
    assert closed - HOUR * MICROS * 24 <= episode.end_time <= closed


async def test_the_stream_of_a_process_that_died_does_not_keep_an_episode_running():
    clock = FixedClock()
    world = await open_world(SharedStore(clock), clock)
    await begin(world)
    await world.services.episodes.recorder.open(NS, "e", TakeoverPolicy.REPLACE)
    clock.advance(DAY)
    assert await sweep(world.another_process()) == [(NS, {"EPISODE": 1})]


# --- late events and ends ---------------------------------------------------------------------


async def test_a_late_event_reopens_it(world):
    before = await left(world)
    world.clock.advance(HOUR)
    assert await single(world) == 4
    episode = await got(world)
    assert (episode.status, episode.end_time, episode.event_count) == (RUNNING, None, 4)
    assert episode.etag != before.etag
    assert episode.update_time == world.clock.now()
    await listed_by_end(world, [])
    world.clock.advance(DAY - MINUTE)
    assert await sweep(world) == []
    world.clock.advance(MINUTE)
    assert await sweep(world) == [(NS, {"EPISODE": 1})]
    again = await got(world)
    assert again.end_time == world.clock.now() - DAY * MICROS
    assert again.event_count == 4


async def listed_by_end(world: World, wanted: list[str]) -> None:
    """Which episodes have an end, as the store sees it."""
    for asked in (EpisodeFilter(ended_after=0), EpisodeFilter(ended_before=2**60)):
        page = await world.services.episodes.episodes.list_page(NS, asked, 10, None)
        assert [one.episode_id for one in page.items] == wanted


async def test_a_late_stream_reopens_it_and_goes_on_behind_the_last_event(world):
    await left(world)
    await listed_by_end(world, ["e"])
    recorder = world.services.episodes.recorder
    writer = await recorder.open(NS, "e", TakeoverPolicy.REFUSE)
    assert writer.last == 3
    assert (await got(world)).status is RUNNING
    assert await recorder.append(writer, events(4, 6)) == 6
    await recorder.close(writer)
    ended = (await world.services.episodes.ender.end(NS, "e", end(), "")).episode
    assert (ended.status, ended.event_count) == (EpisodeStatus.SUCCEEDED, 6)
    await check_invariants(world.store, NS)


@pytest.mark.parametrize("status", [EpisodeStatus.SUCCEEDED, EpisodeStatus.FAILED])
@pytest.mark.parametrize("request_id", ["", "r"])
async def test_a_late_end_ends_it(world, status, request_id):
    await left(world)
    world.clock.advance(HOUR)
    ended = (
        await world.services.episodes.ender.end(NS, "e", end(status, summary="s"), request_id)
    ).episode
    assert (ended.status, ended.end_time, ended.event_count) == (status, world.clock.now(), 3)
    again = (
        await world.services.episodes.ender.end(NS, "e", end(status, summary="s"), request_id)
    ).episode
    assert again.etag == ended.etag
    with pytest.raises(EpisodeEndedError):
        await single(world)
    world.clock.advance(9 * DAY)
    assert await sweep(world) == []
    await check_invariants(world.store, NS)


async def test_starting_it_again_answers_and_does_not_reopen_it(world):
    await left(world)
    again = await world.services.episodes.creator.start(NS, start(episode_id="e"))
    assert (again.created, again.episode.status) == (False, ABANDONED)


async def test_its_events_are_read_as_those_of_any_other(world):
    await left(world)
    page = await world.services.episodes.episodes.list_events(NS, "e", 0, 10)
    assert [one.sequence for one in page.items] == [1, 2, 3]


async def test_watchers_are_told_of_it_and_of_its_reopening_and_of_no_look(world):
    async def stamp() -> int:
        (row,) = await payloads(world, EPISODES)
        return int(row["change_seq"])

    await begin(world, "e", 1)
    changes = [await stamp()]
    world.clock.advance(HOUR)
    await single(world)
    world.clock.advance(DAY - HOUR)
    assert await sweep(world) == []  # its record is brought up to date
    assert await stamp() == changes[0]
    world.clock.advance(HOUR)
    await sweep(world)
    changes.append(await stamp())
    await single(world)
    changes.append(await stamp())
    assert changes[0] < changes[1] < changes[2]


# --- at the same moment -----------------------------------------------------------------------


async def looks(world: World) -> int:
    """Another process that does nothing else; how many it abandoned."""
    log, notifier = EventLog(world.store), EpisodeNotifier(world.store)
    own = EpisodeAbandoner(world.store, TimeSource(world.clock), log, ActiveStreams(), notifier)
    return sum(count["EPISODE"] for count in (await own.sweep()).counts.values())


async def two_processes(seed: int, count: int = 2) -> tuple[World, World, FixedClock]:
    """Two processes over one store whose calls interleave; ``e`` is due, with ``count`` events."""
    clock = FixedClock()
    first = await open_world(Interleaving(SharedStore(clock), seed), clock)
    await begin(first, "e", count)
    clock.advance(DAY)
    return first, first.another_process(), clock


@pytest.mark.parametrize("seed", range(40))
async def test_two_processes_abandon_it_once(seed):
    first, second, _ = await two_processes(seed)
    before = await got(first)
    told = await asyncio.gather(looks(first), looks(second))
    assert sorted(told) == [0, 1]
    episode = await got(first)
    assert episode.status is ABANDONED
    assert episode.revision == before.revision + 1
    assert episode.event_count == 2


@pytest.mark.parametrize("by_stream", [False, True], ids=["one event", "stream"])
@pytest.mark.parametrize("seed", range(60))
async def test_an_event_that_comes_at_the_same_moment_wins(seed, by_stream):
    first, second, _ = await two_processes(seed)

    async def record() -> None:
        if not by_stream:
            assert await single(second) == 3
            return
        recorder = second.services.episodes.recorder
        writer = await recorder.open(NS, "e", TakeoverPolicy.REPLACE)
        assert await recorder.append(writer, events(3, 5)) == 5
        await recorder.close(writer)

    await asyncio.gather(looks(first), record())
    episode = await got(first)
    assert (episode.status, episode.end_time) == (RUNNING, None)
    assert episode.event_count == (5 if by_stream else 3)
    await check_invariants(first.store, NS)
    assert await sweep(first) == []


@pytest.mark.parametrize("seed", range(60))
async def test_an_end_that_comes_at_the_same_moment_wins(seed):
    first, second, _ = await two_processes(seed)
    _, ended = await asyncio.gather(
        looks(first), second.services.episodes.ender.end(NS, "e", end(), "r")
    )
    assert ended.episode.status is EpisodeStatus.SUCCEEDED
    episode = await got(first)
    assert (episode.status, episode.event_count) == (EpisodeStatus.SUCCEEDED, 2)
    assert await sweep(first) == []
    await check_invariants(first.store, NS)


@pytest.mark.parametrize("seed", range(40))
async def test_events_of_several_processes_while_several_abandon_it_are_all_kept(seed):
    first, second, clock = await two_processes(seed, count=1)

    async def record(world: World) -> int:
        kept = 0
        for _ in range(4):
            with suppress(EpisodeStreamOpenError, WriterReplacedError):
                await single(world)
                kept += 1
        return kept

    async def abandon(world: World) -> None:
        for _ in range(3):
            await looks(world)
            clock.advance(DAY)

    kept = await asyncio.gather(
        record(first), abandon(second), record(second), abandon(first.another_process())
    )
    stored = await payloads(first, EVENTS)
    assert len(stored) == 1 + kept[0] + kept[2]
    await check_invariants(first.store, NS)
    assert (await got(first)).event_count == len(stored)


async def marked(world: World, when: str) -> Any:
    """Makes the next update of ``e``'s record that has ``when`` wait; returns (reached, go)."""
    reached, go = asyncio.Event(), asyncio.Event()
    update = world.store.update

    async def held(collection: str, *given: Any, **named: Any) -> Any:
        if collection == EPISODES and named["set"].get("status") == when and not reached.is_set():
            reached.set()
            await go.wait()
        return await update(collection, *given, **named)

    world.store.update = held
    return reached, go


async def test_an_event_stored_between_the_look_and_the_abandoning_keeps_it_running():
    clock = FixedClock()
    first = await open_world(SharedStore(clock), clock)
    await begin(first, "e", 2)
    clock.advance(DAY)
    reached, go = await marked(first, ABANDONED.value)
    sweeping = asyncio.create_task(sweep(first))
    await reached.wait()
    assert await single(first.another_process()) == 3
    go.set()
    assert await sweeping == []
    assert ((await got(first)).status, (await got(first)).event_count) == (RUNNING, 3)


async def test_an_event_whose_writer_looked_before_it_was_abandoned_reopens_it(monkeypatch):
    """The writer entered, then it was abandoned, then the event was stored."""
    clock = FixedClock()
    first = await open_world(SharedStore(clock), clock)
    await begin(first, "e", 2)
    second = first.another_process()
    put_first = EventLog.put_first

    async def late(self: EventLog, *given: Any) -> bool:
        monkeypatch.undo()
        clock.advance(DAY)
        assert await sweep(first) == [(NS, {"EPISODE": 1})]
        return await put_first(self, *given)

    monkeypatch.setattr(EventLog, "put_first", late)
    assert await single(second) == 3
    episode = await got(first)
    assert (episode.status, episode.end_time, episode.event_count) == (RUNNING, None, 3)


async def test_a_writer_whose_episode_was_just_abandoned_still_stands():
    """Its process slept for a day; nobody else took the episode over."""
    clock = FixedClock()
    first = await open_world(SharedStore(clock), clock)
    await begin(first)
    writer = await first.services.episodes.recorder.open(NS, "e", TakeoverPolicy.REPLACE)
    clock.advance(DAY)
    assert await sweep(first.another_process()) == [(NS, {"EPISODE": 1})]
    assert await first.services.episodes.recorder.append(writer, events(1, 2)) == 2
    episode = await got(first)
    assert (episode.status, episode.event_count) == (RUNNING, 2)


async def test_a_mark_that_a_dead_process_left_is_taken_off_by_the_next_event():
    clock = FixedClock()
    world = await open_world(SharedStore(clock), clock)
    await begin(world)
    point = episode_point(NS, "e")
    await world.store.update(EPISODES, NS, point, set={ABANDONING: True})
    await single(world)
    record = (await world.store.get(EPISODES, NS, [point]))[point]
    assert record.payload[ABANDONING] is False
    assert episode_from_record(record).revision == 1


# --- what else there is of it -----------------------------------------------------------------


async def test_a_policy_sweeps_abandoned_ones_like_ended_ones_and_no_running_one(world):
    await left(world)
    await world.services.episodes.creator.record(NS, whole(2, "ended"))
    world.clock.advance(HOUR)
    await begin(world, "running", 1)
    bound = NamespacePolicy(max_episode_age=DAY * MICROS)
    edit = PolicyEdit(bound, frozenset({"max_episode_age"}))
    await world.services.retention.policies.update(NS, edit, "")
    assert await world.services.retention.sweep.pending(NS, bound) == {"EPISODE": 1}
    assert await sweep(world) == [(NS, {"EPISODE": 1})]
    left_over = {row["episode_id"] for row in await payloads(world, EPISODES)}
    assert left_over == {"ended", "running"}
    assert len(await payloads(world, EVENTS)) == 2 + 1


async def test_one_that_runs_again_is_not_swept_by_the_time_it_was_abandoned(world):
    await left(world)
    await single(world)
    edit = PolicyEdit(
        NamespacePolicy(max_episode_age=HOUR * MICROS), frozenset({"max_episode_age"})
    )
    await world.services.retention.policies.update(NS, edit, "")
    assert await sweep(world) == []
    assert (await got(world)).status is RUNNING


async def test_one_is_deleted_with_its_events(world):
    await left(world)
    assert await world.services.episodes.episodes.delete_with_events(NS, "e") == 3
    assert await payloads(world, EVENTS) == []
    assert await sweep(world) == []
