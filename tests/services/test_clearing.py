"""Clearing a namespace: nothing of it is left, nothing of another is touched, whatever dies."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from lot_grpc.domain.change import ChangeType, ResourceKind
from lot_grpc.domain.errors import (
    EpisodeNotFoundError,
    NamespaceClearingError,
    PatternNotFoundError,
    RequestInvalidError,
    RetrievalUnknownError,
)
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.ports import VectorStore, Where
from lot_grpc.services.clearing.clear_registry import SILENT
from lot_grpc.services.episodes.event_recorder import Takeover
from lot_grpc.services.forwarding_store import ForwardingStore
from lot_grpc.services.records.changes import GENERATION
from lot_grpc.services.records.collections import (
    ACTION_VALUES,
    CONTEXT_STATS,
    DECISIONS,
    EPISODES,
    ERROR_SOLUTIONS,
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
from lot_grpc.testing.faults import FaultInjectingStore, InjectedFault, When
from lot_grpc.testing.in_memory import InMemoryStore
from lot_grpc.work import begin_work
from tests.contract.clock import FixedClock
from tests.sampling import one_in
from tests.services.filled import EVERYWHERE, fill, held
from tests.services.test_watching import change_watcher
from tests.services.world import (
    NS,
    SharedStore,
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

OTHER = "other"
LOGS = (ResourceKind.OUTCOME, ResourceKind.EPISODE_EVENT)
GOES = {
    ResourceKind.PATTERN: {PATTERNS, OUTCOMES, CONTEXT_STATS, FEEDBACK},
    ResourceKind.EPISODE: {EPISODES, EVENTS},
    ResourceKind.ERROR_SOLUTION: {ERROR_SOLUTIONS},  # the outcomes here are of patterns
    ResourceKind.PREFERENCE: {PREFERENCES, PREFERENCE_REVISIONS},
    ResourceKind.SESSION: {SESSIONS, SESSION_PARTS},
    ResourceKind.ACTION_VALUE: {ACTION_VALUES, SELECTIONS, TRAJECTORIES},
}
"""What goes with a kind; with the others, their own collection."""
CLEARABLE = [resource_kind for resource_kind in ResourceKind if resource_kind not in LOGS]


class Meeting(ForwardingStore):
    """A store that lets others in before each delete that ``met`` wants to see."""

    def __init__(self, inner: VectorStore) -> None:
        super().__init__(inner)
        self.met: Callable[[str], Awaitable[None]] | None = None
        self.sizes: list[int] = []

    async def delete(
        self, collection: str, namespace: str | None, where: Where, limit: int = 0
    ) -> int:
        if self.met is not None:
            met, self.met = self.met, None
            await met(collection)
            self.met = met
        self.sizes.append(limit)
        return await self._inner.delete(collection, namespace, where, limit)


async def two_filled(store: Any = None, clock: FixedClock | None = None) -> World:
    """A world with all kinds in two namespaces."""
    world = await open_world(store, clock)
    await fill(world, NS)
    await fill(world, OTHER)
    return world


def only_the_mark(found: dict[str, list[Any]]) -> bool:
    """Whether nothing is there but that it was cleared."""
    return list(found) == [TOMBSTONES] and [
        (one.payload["resource_kind"], one.payload["done"]) for one in found[TOMBSTONES]
    ] == [("", True)]


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
    for name in set(EVERYWHERE) - {REQUESTS, TOMBSTONES}:
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


async def met_while_clearing(
    world: World, tried: Callable[[], Awaitable[Any]], resource_kinds: tuple[ResourceKind, ...] = ()
) -> Any:
    """What comes of a call that is made in the midst of a clear."""
    answers: list[Any] = []

    async def meet(collection: str) -> None:
        if not answers:
            answers.append(None)
            try:
                answers[0] = await tried()
            except Exception as error:
                answers[0] = error

    world.store.met = meet
    await world.services.clearing.clearer.clear(NS, resource_kinds)
    world.store.met = None
    return answers[0]


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
    writer = await services.episodes.recorder.open(NS, "e", Takeover.TAKE_OVER)
    await services.episodes.recorder.append(writer, events(1, 3))
    told: list[BaseException] = []
    writer.on_stop = told.append
    await services.clearing.clearer.clear(NS)
    assert isinstance(told[0], NamespaceClearingError)
    with pytest.raises(NamespaceClearingError):
        await services.episodes.recorder.append(writer, events(4, 5))
    await services.episodes.recorder.close(writer)
    with pytest.raises(EpisodeNotFoundError):
        await services.episodes.recorder.open(NS, "e", Takeover.TAKE_OVER)
    assert only_the_mark(await held(world.store, NS))


async def test_events_of_other_namespaces_that_share_an_insert_are_stored(meeting):
    services = meeting.services
    writers = {}
    for ns in (NS, OTHER):
        await services.episodes.creator.start(ns, start(episode_id="x"))
        writers[ns] = await services.episodes.recorder.open(ns, "x", Takeover.TAKE_OVER)

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
    with pytest.raises(RetrievalUnknownError):
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


# --- deaths -----------------------------------------------------------------------------------

SOME_NOUNS = (ResourceKind.PATTERN, ResourceKind.EPISODE)


@pytest.mark.parametrize(
    ("shared", "resource_kinds"),
    one_in(3, [(True, ()), (True, SOME_NOUNS), (False, ()), (False, SOME_NOUNS)]),
)
async def test_a_clear_that_died_at_any_write_goes_on_by_itself(shared, resource_kinds):
    clock = FixedClock()
    kind = SharedStore if shared else InMemoryStore
    world = await two_filled(FaultInjectingStore(kind(clock)), clock)
    others = await held(world.store, OTHER)
    await world.services.clearing.clearer.clear(NS, resource_kinds)
    whole = {name: len(found) for name, found in (await held(world.store, NS)).items()}
    for n in itertools.count(1):
        for when in When:
            ns = f"n{n}{when}"
            await fill(world, ns)
            world.store.fail_at(n, when)
            died = True
            try:
                await world.services.clearing.clearer.clear(ns, resource_kinds)
                died = False
            except InjectedFault:
                pass
            world.store.fail_at(0)
            world.store.revive()
            world = world.another_process()
            if shared:
                clock.advance(SILENT / 1_000_000)
            await world.services.housekeeping.roll_forward(starting=True)
            if n > 1 or when is When.AFTER:
                found = {name: len(found) for name, found in (await held(world.store, ns)).items()}
                assert found == whole
            await world.services.memories.memories.create(ns, memory("it takes writes again"))
        if not died:
            break
    assert await held(world.store, OTHER) == others
    assert n > 20


async def test_a_clear_that_was_left_is_finished_by_the_next():
    clock = FixedClock()
    world = await two_filled(FaultInjectingStore(InMemoryStore(clock)), clock)
    world.store.fail_at(5)
    with pytest.raises(InjectedFault):
        await world.services.clearing.clearer.clear(NS)
    world.store.revive()
    world = world.another_process()
    with pytest.raises(NamespaceClearingError):
        await save(world, "x")
    await world.services.clearing.clearer.clear(NS)
    assert only_the_mark(await held(world.store, NS))


# --- several processes ------------------------------------------------------------------------


@pytest.fixture
async def two() -> tuple[World, World]:
    clock = FixedClock()
    one = await two_filled(Meeting(SharedStore(clock)), clock)
    return one, one.another_process()


async def test_another_process_refuses_writes_too(two):
    one, other = two
    await save(other, "it has looked")
    failed = await met_while_clearing(one, lambda: save(other, "late"))
    assert isinstance(failed, NamespaceClearingError)
    failed = await met_while_clearing(one, lambda: other.services.clearing.clearer.clear(NS))
    assert isinstance(failed, NamespaceClearingError)
    assert only_the_mark(await held(one.store, NS))
    await asyncio.sleep(0.02)
    assert (await save(other, "after it")).created


async def test_the_stream_of_another_process_is_told(two):
    one, other = two
    writer = await other.services.episodes.recorder.open(NS, "e1", Takeover.TAKE_OVER)
    told: list[BaseException] = []
    writer.on_stop = told.append
    assert await met_while_clearing(one, other.services.episodes.leases.renew) is None
    assert isinstance(told[0], NamespaceClearingError)
    assert only_the_mark(await held(one.store, NS))


async def test_a_stream_of_another_process_that_slept_through_it_brings_nothing_back(two):
    one, other = two
    writer = await other.services.episodes.recorder.open(NS, "e1", Takeover.TAKE_OVER)
    await one.services.clearing.clearer.clear(NS)
    await asyncio.sleep(0.02)
    with pytest.raises(EpisodeNotFoundError):
        await other.services.episodes.recorder.append(writer, events(5, 6))
    assert only_the_mark(await held(one.store, NS))


async def test_a_write_of_another_process_that_came_too_late_is_taken_back(two):
    one, other = two
    store, cleared = one.store, asyncio.Event()
    insert = store.insert

    async def late(collection: str, records: Any) -> Any:
        if collection == MEMORIES:
            await one.services.clearing.clearer.clear(NS)
            cleared.set()
        return await insert(collection, records)

    store.insert = late
    with pytest.raises(NamespaceClearingError):
        await other.services.memories.memories.create(NS, memory("late"))
    assert cleared.is_set()
    assert MEMORIES not in await held(store, NS)


async def test_a_clear_is_taken_over_only_from_a_process_that_is_silent(two):
    one, other = two
    finished = await met_while_clearing(one, lambda: other.services.clearing.clearer.finish(0))
    assert finished == 0
    one.store.met = None
    await fill(one, NS)
    other.clock.advance(1)
    clear = await one.services.clearing.clearer._clear_registry.begin(NS, ())  # and dies
    assert await other.services.clearing.clearer.finish(0) == 0
    other.clock.advance(SILENT / 1_000_000)
    assert await other.services.clearing.clearer.finish(0) == 1
    assert await one.services.clearing.clearer._clear_registry.hold(clear) is None
    assert only_the_mark(await held(one.store, NS))


# --- the feed ---------------------------------------------------------------------------------


async def test_it_is_told_once_and_no_delete_is():
    world = await two_filled()
    async with change_watcher(world) as watcher:
        await world.services.clearing.clearer.clear(NS)
        await world.services.memories.memories.create(NS, memory("after"))
        await watcher.until(lambda: len(watcher.told) == 2)
    cleared, stored = watcher.told
    assert (cleared.type, cleared.resource_kind, cleared.id) == (ChangeType.CLEARED, None, "")
    assert (cleared.namespace, cleared.thing) == (NS, None)
    assert stored.type is ChangeType.STORED


async def test_it_is_told_after_a_restart_to_who_comes_back():
    world = await two_filled()
    async with change_watcher(world) as watcher:
        cursor = watcher.cursor
    await world.services.clearing.clearer.clear(NS)
    await save(world, "after")
    again = world.another_process()
    async with change_watcher(again, cursor=cursor) as watcher:
        await watcher.until(lambda: len(watcher.told) == 2)
        assert [one.type for one in watcher.told] == [ChangeType.CLEARED, ChangeType.STORED]
        cursor = watcher.told[0].cursor
    async with change_watcher(again, cursor=cursor) as watcher:
        await watcher.until(lambda: bool(watcher.told))
        assert [one.type for one in watcher.told] == [ChangeType.STORED]


async def test_a_kind_is_told_to_those_who_watch_it():
    world = await two_filled()
    async with (
        change_watcher(world, resource_kinds=(ResourceKind.PATTERN,)) as patterns,
        change_watcher(world, resource_kinds=(ResourceKind.MEMORY,)) as memories,
        change_watcher(world, types=frozenset({ChangeType.CLEARED})) as clears,
        change_watcher(world, namespace=OTHER) as others,
    ):
        await world.services.clearing.clearer.clear(NS, [ResourceKind.PATTERN])
        await world.services.memories.memories.create(NS, memory("after"))
        await memories.until(lambda: len(memories.told) == 1)
        await patterns.until(lambda: len(patterns.told) == 1)
        await clears.until(lambda: len(clears.told) == 1)
        await world.services.clearing.clearer.clear(NS)
        await world.services.memories.memories.create(OTHER, memory("there"))
        await patterns.until(lambda: len(patterns.told) == 2)
        await memories.until(lambda: len(memories.told) == 2)
        await clears.until(lambda: len(clears.told) == 2)
        await others.until(lambda: len(others.told) == 1)
    assert [one.resource_kind for one in patterns.told] == [ResourceKind.PATTERN, None]
    assert [one.resource_kind for one in memories.told] == [ResourceKind.MEMORY, None]
    assert [one.resource_kind for one in clears.told] == [ResourceKind.PATTERN, None]
    assert [one.type for one in others.told] == [ChangeType.STORED]


async def test_what_another_process_stores_anew_is_told_behind_the_clear(two):
    """However its clock goes, and however seldom the other says how far it has come."""
    one, other = two
    await save(other, "before")
    async with change_watcher(other) as watcher:
        one.services.runtime.stack.sequencer.pass_by(
            one.clock.now() + 3_600_000_000
        )  # its clock is ahead
        await one.services.clearing.clearer.clear(NS)
        await asyncio.sleep(0.02)
        await save(other, "after")
        await watcher.until(lambda: len(watcher.told) == 2)
    assert [told.type for told in watcher.told] == [ChangeType.CLEARED, ChangeType.STORED]
    assert watcher.told[0].time < watcher.told[1].time


async def test_a_watch_from_the_start_is_told_of_a_clear_in_its_midst():
    world = await two_filled()
    async with change_watcher(
        world, from_start=True, resource_kinds=(ResourceKind.MEMORY,)
    ) as watcher:
        await watcher.until(lambda: bool(watcher.told))
        await world.services.clearing.clearer.clear(NS)
        await watcher.until(lambda: watcher.told[-1].type is ChangeType.CLEARED)


async def test_a_mark_is_not_made_twice_by_a_clear_that_died_behind_it():
    clock = FixedClock()
    world = await two_filled(FaultInjectingStore(InMemoryStore(clock)), clock)
    async with change_watcher(world) as watcher:
        cursor = watcher.cursor
    inner = world.store.inner
    update = inner.update

    async def dies(collection: str, *given: Any, **named: Any) -> bool:
        if collection == META and named["set"].get("clearing") is False:
            raise InjectedFault("died behind the mark")
        done: bool = await update(collection, *given, **named)
        return done

    inner.update = dies
    with pytest.raises(InjectedFault):
        await world.services.clearing.clearer.clear(NS)
    inner.update = update
    (before,) = await rows(world.store, TOMBSTONES, NS)
    world = world.another_process()
    async with change_watcher(world, cursor=cursor) as watcher:
        await watcher.until(lambda: len(watcher.told) == 1)
        await world.services.housekeeping.roll_forward(starting=True)
        await save(world, "after")
        await watcher.until(lambda: len(watcher.told) == 2)
    assert [one.type for one in watcher.told] == [ChangeType.CLEARED, ChangeType.STORED]
    assert await rows(world.store, TOMBSTONES, NS) == [before]


async def test_who_names_what_was_cleared_is_told_that_it_is_gone():
    world = await two_filled()
    await world.services.clearing.clearer.clear(NS, [ResourceKind.PATTERN])
    with pytest.raises(PatternNotFoundError):
        await outcome(world, "p1")
    assert await world.store.count(PATTERNS, NS) == 0
    assert await world.store.count(DECISIONS, NS) == 3
