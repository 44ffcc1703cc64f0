"""How often an episode was used: once for each end that names it, whatever happens."""

from __future__ import annotations

import asyncio

import pytest

from lot_grpc.domain.episode import Episode, EpisodeEnd, EpisodeStatus
from lot_grpc.domain.errors import (
    EpisodeEndedError,
    EpisodeNotFoundError,
    RequestIdReusedError,
    RequestInvalidError,
)
from lot_grpc.domain.query import EpisodeFilter
from lot_grpc.services.recall.targets import RecallOptions, episode_request
from lot_grpc.services.records.collections import EPISODES, EVENTS, REQUESTS
from lot_grpc.services.records.episodes import end_hash, episode_point
from lot_grpc.testing.faults import FaultInjectingStore, InjectedFault, When
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.invariants import check_invariants
from tests.services.world import (
    HOUR,
    NS,
    Interleaving,
    SharedStore,
    World,
    end,
    open_world,
    payloads,
    start,
    sweep,
    whole,
)


@pytest.fixture(params=["own store", "shared store"])
async def world(request: pytest.FixtureRequest) -> World:
    """``u`` and ``v`` are there."""
    clock = FixedClock()
    make = InMemoryStore if request.param == "own store" else SharedStore
    world = await open_world(make(clock), clock)
    await targets(world)
    return world


async def targets(world: World) -> None:
    await world.services.episodes.creator.record(NS, whole(1, "u"))
    await world.services.episodes.creator.start(NS, start(episode_id="v"))


async def got(world: World, episode_id: str) -> Episode:
    return await world.services.episodes.episodes.get(NS, episode_id)


async def count(world: World, episode_id: str) -> int:
    return (await got(world, episode_id)).reused_count


def used(*episode_ids: str) -> EpisodeEnd:
    return end(used_episode_ids=episode_ids)


async def ends(
    world: World, given: EpisodeEnd, episode_id: str = "e", request_id: str = ""
) -> Episode:
    return (await world.services.episodes.ender.end(NS, episode_id, given, request_id)).episode


async def started(world: World, episode_id: str = "e") -> None:
    await world.services.episodes.creator.start(NS, start(episode_id=episode_id))


async def test_an_end_counts_a_use_of_each_episode_that_it_names(world):
    before = await got(world, "u")
    await started(world)
    world.clock.advance(HOUR)
    ended = await ends(world, used("u", "v"))
    assert ended.end is not None
    assert ended.end.used_episode_ids == ("u", "v")
    assert (await got(world, "e")).etag == ended.etag
    assert (await count(world, "u"), await count(world, "v")) == (1, 1)
    after = await got(world, "u")
    assert (after.etag, after.update_time) == (before.etag, before.update_time)
    await world.services.episodes.creator.record(NS, whole(1, "f", end=used("v")))
    assert (await count(world, "u"), await count(world, "v")) == (1, 2)
    await check_invariants(world.store, NS)


async def test_lists_and_recall_show_it(world):
    await started(world)
    await ends(world, used("v"))
    page = await world.services.episodes.episodes.list_page(NS, EpisodeFilter(), 5, None)
    question = episode_request(
        RecallOptions("Deploy the site", 5), EpisodeFilter(), success_only=False
    )
    hits = (await world.services.recall.episodes.find(NS, question)).hits
    for found in (page.items, [hit.thing for hit in hits]):
        assert {one.episode_id: one.reused_count for one in found} == {"u": 0, "v": 1, "e": 0}


@pytest.mark.parametrize("request_id", ["", "r"])
async def test_the_same_end_again_counts_nothing(world, request_id):
    await started(world)
    for _ in range(3):
        await ends(world, used("u"), "e", request_id)
        await world.services.episodes.creator.record(NS, whole(1, "f", request_id, end=used("u")))
        await sweep(world)
    assert await count(world, "u") == 2


async def test_ends_that_name_others_are_others(world):
    await started(world)
    await ends(world, used("u"), request_id="r")
    with pytest.raises(EpisodeEndedError):
        await ends(world, used("v"))
    with pytest.raises(RequestIdReusedError):
        await ends(world, used("u", "v"), request_id="r")
    assert (await count(world, "u"), await count(world, "v")) == (1, 0)


def test_an_end_that_names_none_has_the_hash_that_it_always_had():
    assert end_hash(end(summary="s")) == "9abe735630a91da2abeedebd8fb43574"
    assert end_hash(end()) != end_hash(used("u")) != end_hash(used("v"))


# --- what is not there ------------------------------------------------------------------------


@pytest.mark.parametrize("request_id", ["", "r"])
async def test_one_that_is_not_there_is_refused_before_anything_is_written(world, request_id):
    await started(world)
    before = await payloads(world, EPISODES), await payloads(world, EVENTS)
    rows = await payloads(world, REQUESTS)
    with pytest.raises(EpisodeNotFoundError, match=r"used_episode_ids\[1\]") as failed:
        await ends(world, used("u", "nope"), "e", request_id)
    assert (failed.value.id, failed.value.metadata["field"]) == ("nope", "used_episode_ids[1]")
    given = whole(2, "f", request_id, end=used("nope"))
    with pytest.raises(EpisodeNotFoundError) as failed:
        await world.services.episodes.creator.record(NS, given)
    assert failed.value.metadata["field"] == "episode.used_episode_ids[0]"
    assert (await payloads(world, EPISODES), await payloads(world, EVENTS)) == before
    assert await payloads(world, REQUESTS) == rows
    assert (await ends(world, used("u"), "e", request_id)).status is EpisodeStatus.SUCCEEDED


async def test_one_of_another_namespace_is_not_there(world):
    await world.services.episodes.creator.start("other", start(episode_id="theirs"))
    await started(world)
    with pytest.raises(EpisodeNotFoundError):
        await ends(world, used("theirs"))
    assert (await world.services.episodes.episodes.get("other", "theirs")).reused_count == 0


async def test_an_episode_cannot_have_used_itself(world):
    await started(world)
    with pytest.raises(RequestInvalidError, match="cannot reuse itself"):
        await ends(world, used("e"))
    with pytest.raises(RequestInvalidError, match="cannot reuse itself"):
        await world.services.episodes.creator.record(NS, whole(1, "f", end=used("u", "f")))
    assert (await got(world, "e")).status is EpisodeStatus.RUNNING


@pytest.mark.parametrize("request_id", ["", "r"])
async def test_a_repeat_is_answered_though_what_was_used_is_gone(world, request_id):
    await started(world)
    first = await ends(world, used("u", "v"), "e", request_id)
    whole_one = whole(1, "f", request_id, end=used("u"))
    await world.services.episodes.creator.record(NS, whole_one)
    await world.services.episodes.episodes.delete_with_events(NS, "u")
    assert (await ends(world, used("u", "v"), "e", request_id)).etag == first.etag
    again = await world.services.episodes.creator.record(NS, whole_one)
    assert again.episode.episode_id == "f"
    assert await count(world, "v") == 1


# --- deaths, deletes, others ------------------------------------------------------------------


async def died(world: World, given: EpisodeEnd) -> World:
    """``e`` was ended, and its process died before it counted anything."""
    store: FaultInjectingStore = world.store
    store.fail_at(2 if store.exclusive else 3, When.BEFORE)
    with pytest.raises(InjectedFault):
        await ends(world, given)
    store.revive()
    return world.another_process()


@pytest.fixture(params=["own store", "shared store"])
async def mortal(request: pytest.FixtureRequest) -> World:
    clock = FixedClock()
    make = InMemoryStore if request.param == "own store" else SharedStore
    world = await open_world(FaultInjectingStore(make(clock)), clock)
    await targets(world)
    await started(world)
    return world


async def test_what_a_dead_process_did_not_count_is_counted_by_a_sweep(mortal):
    world = await died(mortal, used("u", "v"))
    assert (await got(world, "e")).status is EpisodeStatus.SUCCEEDED
    assert await count(world, "u") == 0
    world.clock.advance(HOUR)
    await sweep(world)
    assert (await count(world, "u"), await count(world, "v")) == (1, 1)
    await check_invariants(world.store, NS)


async def test_one_that_was_deleted_since_is_skipped(mortal):
    world = await died(mortal, used("u", "v"))
    await world.services.episodes.episodes.delete_with_events(NS, "u")
    world.clock.advance(HOUR)
    await sweep(world)
    assert await count(world, "v") == 1
    await check_invariants(world.store, NS)


async def test_what_a_deleted_episode_used_is_counted_before_it_goes(mortal):
    world = await died(mortal, used("u", "v"))
    await world.services.episodes.episodes.delete_with_events(NS, "e")
    assert (await count(world, "u"), await count(world, "v")) == (1, 1)
    await started(world)
    await ends(world, used("u"))
    assert await count(world, "u") == 2  # another episode that has the id says it anew


async def test_reports_that_are_settled_are_not_remembered_for_ever(world):
    for number in range(30):
        await world.services.episodes.creator.record(NS, whole(0, f"e{number}", end=used("u")))
    point = episode_point(NS, "u")
    record = (await world.store.get(EPISODES, NS, [point]))[point]
    assert record.payload["reused_count"] == 30
    assert len(record.payload["pending_reuses"]) == 1


@pytest.mark.parametrize("seed", range(10))
async def test_many_ends_of_several_processes_at_once_are_each_counted_once(seed):
    clock = FixedClock()
    first = await open_world(Interleaving(SharedStore(clock), seed), clock)
    await targets(first)
    processes = [first, first.another_process(), first.another_process()]
    for number in range(9):
        await started(first, f"e{number}")
    finish = first.services.housekeeping.roll_forward
    await asyncio.gather(
        *(
            ends(process, used("u", "v"), f"e{number}", "r" + str(number))
            for number in range(9)
            for process in (processes[number % 3], processes[(number + 1) % 3])
        ),
        finish(starting=True),
    )
    assert (await count(first, "u"), await count(first, "v")) == (9, 9)
    await check_invariants(first.store, NS)


@pytest.mark.parametrize("seed", range(30))
async def test_a_delete_while_its_uses_are_counted_loses_none_and_doubles_none(seed):
    clock = FixedClock()
    first = await open_world(Interleaving(SharedStore(clock), seed), clock)
    await targets(first)
    await started(first)
    second = first.another_process()

    async def delete() -> None:
        while (await got(second, "e")).status is EpisodeStatus.RUNNING:
            await asyncio.sleep(0)
        await second.services.episodes.episodes.delete_with_events(NS, "e")

    await asyncio.gather(ends(first, used("u", "v")), delete(), return_exceptions=False)
    assert (await count(first, "u"), await count(first, "v")) == (1, 1)
