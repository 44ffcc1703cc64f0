"""Clearing a namespace: what goes, what stays, what happens meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import (
    EpisodeNotFoundError,
    NamespaceClearingError,
    RequestInvalidError,
    RetrievalNotFoundError,
)
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.services.episodes.event_recorder import TakeoverPolicy
from lot_grpc.services.records.changes import GENERATION
from lot_grpc.services.records.collections import (
    ACTION_VALUES,
    CONTEXT_STATS,
    EPISODES,
    EVENTS,
    FEEDBACK,
    MEMORIES,
    META,
    OUTCOMES,
    PATTERNS,
    PREFERENCE_REVISIONS,
    PREFERENCES,
    REQUESTS,
    RETRIEVALS,
    SELECTIONS,
    SESSION_PARTS,
    SESSIONS,
    TOMBSTONES,
    TRAJECTORIES,
)
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.store_metadata import META_NAMESPACE
from lot_grpc.testing.in_memory import InMemoryStore
from lot_grpc.work import begin_work
from tests.contract.clock import FixedClock
from tests.services.clearing import OTHER, Meeting, met_while_clearing, only_the_mark, two_filled
from tests.services.filled import EVERYWHERE, fill, held
from tests.services.world import (
    NS,
    World,
    draft,
    events,
    memory,
    open_world,
    outcome,
    recall,
    rows,
    save,
    start,
    sweep,
)

LOGS = (ResourceKind.OUTCOME, ResourceKind.EPISODE_EVENT)


GOES = {
    ResourceKind.PATTERN: {PATTERNS, FEEDBACK},
    ResourceKind.EPISODE: {EPISODES, EVENTS},
    ResourceKind.PREFERENCE: {PREFERENCES, PREFERENCE_REVISIONS},
    ResourceKind.SESSION: {SESSIONS, SESSION_PARTS},
    ResourceKind.ACTION_VALUE: {ACTION_VALUES, SELECTIONS, TRAJECTORIES},
}
"""What goes with a kind, besides the logs of its records; with the others, their own collection."""


def _counted(collection: str) -> set[str]:
    """The kinds whose records have rows there."""
    kinds = {*REGISTRY.counted}
    return kinds if collection == OUTCOMES else kinds - {ResourceKind.ERROR_SOLUTION}


CLEARABLE = [resource_kind for resource_kind in ResourceKind if resource_kind not in LOGS]


# --- what goes and what stays -----------------------------------------------------------------


async def test_everything_goes_and_another_namespace_stays_as_it_is():
    world = await two_filled()
    before = await held(world.store, OTHER)
    assert {*REGISTRY.resource_collections} <= before.keys(), "the test fills everything"
    assert set(before) == set(EVERYWHERE)
    counts = await world.services.clearing.clearer.clear(NS)
    assert only_the_mark(await held(world.store, NS))
    assert await held(world.store, OTHER) == before
    assert counts[ResourceKind.PATTERN] == 4
    assert counts[ResourceKind.EPISODE_EVENT] == 12
    assert counts[ResourceKind.MEMORY] == 2


async def test_a_dry_run_says_what_a_clear_deletes_and_deletes_nothing():
    world = await two_filled()
    for resource_kinds in (
        (),
        (ResourceKind.PATTERN,),
        (ResourceKind.EPISODE, ResourceKind.MEMORY),
        (ResourceKind.ERROR_SOLUTION,),
    ):
        ns = f"n{len(resource_kinds)}{''.join(resource_kinds)}"
        await fill(world, ns)
        before = await held(world.store, ns)
        counts = await world.services.clearing.clearer.count(ns, resource_kinds)
        assert await held(world.store, ns) == before
        assert await world.services.clearing.clearer.clear(ns, resource_kinds) == counts
        assert await world.services.clearing.clearer.count(ns, resource_kinds) == {}


@pytest.mark.parametrize("resource_kind", CLEARABLE)
async def test_one_kind_goes_with_what_hangs_on_it_and_the_others_stay(resource_kind):
    world = await open_world()
    await fill(world, NS)
    before = await held(world.store, NS)
    await world.services.clearing.clearer.clear(NS, [resource_kind])
    after = await held(world.store, NS)
    goes = GOES.get(resource_kind) or {
        one.name for one in REGISTRY.resources[resource_kind].collections
    }
    for name in (OUTCOMES, CONTEXT_STATS):
        others = [one for one in before[name] if one.payload["resource_kind"] != resource_kind]
        assert after[name] == others
        assert (len(others) < len(before[name])) == (resource_kind in {*_counted(name)})
    for name in set(EVERYWHERE) - {REQUESTS, TOMBSTONES, OUTCOMES, CONTEXT_STATS}:
        assert after.get(name) == (None if name in goes else before.get(name)), name
    marks = [one for one in after[TOMBSTONES] if GENERATION in one.payload]
    assert [one.payload["resource_kind"] for one in marks] == [resource_kind]
    assert len(after[TOMBSTONES]) == len(before[TOMBSTONES]) + 1


@pytest.mark.parametrize("resource_kind", LOGS)
async def test_a_log_is_not_cleared_without_what_counts_on_it(resource_kind):
    world = await open_world()
    for ask in (world.services.clearing.clearer.clear, world.services.clearing.clearer.count):
        with pytest.raises(RequestInvalidError, match="cannot be cleared alone"):
            await ask(NS, [ResourceKind.MEMORY, resource_kind])


async def test_what_was_cleared_can_be_made_anew_by_the_same_requests():
    """Requests that were carried out are forgotten, by a clear of one kind as well."""
    world = await open_world()
    for resource_kinds in ((), (ResourceKind.PATTERN,)):
        again = draft("again", pattern_id="p", request_id="r")
        assert (await world.services.patterns.writer.save(NS, again)).created
        other = draft("otherwise", pattern_id="p", request_id="r")
        await world.services.clearing.clearer.clear(NS, resource_kinds)
        assert (await world.services.patterns.writer.save(NS, other)).created
        assert (await save(world, "by content")).created
        await world.services.clearing.clearer.clear(NS, resource_kinds)
        assert (await save(world, "by content")).created
        await world.services.clearing.clearer.clear(NS)


async def test_expired_things_go_too():
    world = await open_world()
    await world.services.memories.memories.create(NS, memory("x", ttl=1_000_000))
    world.clock.advance(2)
    assert await world.services.clearing.clearer.count(NS, ()) == {}
    assert await world.services.clearing.clearer.clear(NS) == {}
    assert await world.store.expired(MEMORIES, limit=9) == []


async def test_an_empty_namespace_can_be_cleared_again_and_again():
    world = await open_world()
    for number in range(1, 4):
        assert await world.services.clearing.clearer.clear(NS) == {}
        (row,) = [
            r.payload
            for r in await rows(world.store, META, META_NAMESPACE)
            if "cleared_namespace" in r.payload
        ]
        assert (row["generation"], row["clearing"]) == (number, False)


# --- while it is at work ----------------------------------------------------------------------


@pytest.fixture
async def meeting() -> World:
    clock = FixedClock()
    return await open_world(Meeting(InMemoryStore(clock)), clock)


async def test_writes_are_refused_and_reads_go_on(meeting):
    services = meeting.services
    for refused in (
        lambda: services.patterns.writer.save(NS, draft("late")),
        lambda: services.memories.memories.create(NS, memory("late")),
        lambda: services.patterns.patterns.delete(NS, "p1", ""),
        lambda: outcome(meeting, "p1"),
        lambda: services.clearing.clearer.clear(NS),
        lambda: services.episodes.creator.start(NS, start(episode_id="late")),
    ):
        await fill(meeting, NS)
        failed = await met_while_clearing(meeting, refused)
        assert isinstance(failed, NamespaceClearingError), failed
        assert failed.metadata == {"namespace": NS}
        assert only_the_mark(await held(meeting.store, NS))
    await fill(meeting, NS)
    answer = await met_while_clearing(meeting, lambda: recall(meeting, "task"))
    assert answer.retrieval_id
    assert await rows(meeting.store, RETRIEVALS) == []
    await services.runtime.retrievals.flush()
    assert only_the_mark(await held(meeting.store, NS))


async def test_other_namespaces_are_written_to_meanwhile(meeting):
    save_other = lambda: meeting.services.patterns.writer.save(OTHER, draft("x"))  # noqa: E731
    assert (await met_while_clearing(meeting, save_other)).created


async def test_housekeeping_goes_round_a_namespace_that_is_being_cleared(meeting):
    await meeting.services.memories.memories.create(OTHER, memory("x", ttl=1))
    meeting.clock.advance(24 * 3600 + 1)

    async def sweeps() -> None:
        await sweep(meeting)

    assert await met_while_clearing(meeting, sweeps) is None
    assert await meeting.store.expired(MEMORIES, limit=9) == []


async def test_it_is_deleted_in_small_batches(meeting):
    await fill(meeting, NS, 250)
    meeting.store.sizes.clear()
    await meeting.services.clearing.clearer.clear(NS)
    assert set(meeting.store.sizes) == {100}
    assert only_the_mark(await held(meeting.store, NS))


# --- what a process still holds ---------------------------------------------------------------


async def test_an_open_stream_is_told_and_brings_nothing_back():
    world = await open_world()
    services = world.services
    await services.episodes.creator.start(NS, start(episode_id="e"))
    writer = await services.episodes.recorder.open(NS, "e", TakeoverPolicy.REPLACE)
    await services.episodes.recorder.append(writer, events(1, 3))
    told: list[BaseException] = []
    writer.on_stop = told.append
    await services.clearing.clearer.clear(NS)
    assert isinstance(told[0], NamespaceClearingError)
    with pytest.raises(NamespaceClearingError):
        await services.episodes.recorder.append(writer, events(4, 5))
    await services.episodes.recorder.close(writer)
    with pytest.raises(EpisodeNotFoundError):
        await services.episodes.recorder.open(NS, "e", TakeoverPolicy.REPLACE)
    assert only_the_mark(await held(world.store, NS))


async def test_events_of_other_namespaces_that_share_an_insert_are_stored(meeting):
    services = meeting.services
    writers = {}
    for ns in (NS, OTHER):
        await services.episodes.creator.start(ns, start(episode_id="x"))
        writers[ns] = await services.episodes.recorder.open(ns, "x", TakeoverPolicy.REPLACE)

    async def append_both() -> Any:
        writers[NS].stopped = None  # as if it had passed just before it was told
        return await asyncio.gather(
            *(services.episodes.recorder.append(writers[ns], events(1, 3)) for ns in (NS, OTHER)),
            return_exceptions=True,
        )

    refused, stored = await met_while_clearing(meeting, append_both)
    assert isinstance(refused, NamespaceClearingError)
    assert stored == 3
    assert await meeting.store.count(EVENTS, NS) == 0
    assert await meeting.store.count(EVENTS, OTHER) == 3


async def test_a_recall_that_waits_to_be_written_is_forgotten():
    world = await open_world()
    await save(world, "x", pattern_id="p")
    answer = await recall(world, "x")
    await world.services.clearing.clearer.clear(NS)
    await world.services.runtime.retrievals.flush()
    assert await rows(world.store, RETRIEVALS) == []
    await save(world, "x", pattern_id="p")
    with pytest.raises(RetrievalNotFoundError):
        await outcome(world, "p", outcome=Outcome.SUCCESS, retrieval_id=answer.retrieval_id)


async def test_a_call_from_before_the_clear_writes_nothing_after_it():
    world = await open_world()
    go = asyncio.Event()

    async def slow_call() -> None:
        begin_work()  # as the server does for each call
        await go.wait()
        await world.services.memories.memories.create(NS, memory("read before"))

    call = asyncio.create_task(slow_call())
    await asyncio.sleep(0.01)
    await world.services.clearing.clearer.clear(NS)
    go.set()
    with pytest.raises(NamespaceClearingError, match="during this call"):
        await call
    assert only_the_mark(await held(world.store, NS))
    begin_work()
    await world.services.memories.memories.create(NS, memory("later"))


async def test_a_write_that_is_under_way_is_waited_for():
    class Slow(InMemoryStore):
        """A store whose inserts into memories take a while."""

        async def insert(self, collection: str, records: Any) -> set[str]:
            if collection == MEMORIES:
                await asyncio.sleep(0.05)
            return await super().insert(collection, records)

    clock = FixedClock()
    world = await open_world(Slow(clock), clock)
    write = asyncio.create_task(world.services.memories.memories.create(NS, memory("x")))
    await asyncio.sleep(0.01)
    await world.services.clearing.clearer.clear(NS)
    assert write.done()
    assert only_the_mark(await held(world.store, NS))
