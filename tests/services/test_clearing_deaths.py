"""Clears that die, and clears of several processes."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from lot_grpc.domain.change import ChangeType, ResourceKind
from lot_grpc.domain.errors import EpisodeNotFoundError, NamespaceClearingError
from lot_grpc.services.clearing.clear_registry import SILENT
from lot_grpc.services.episodes.event_recorder import TakeoverPolicy
from lot_grpc.services.records.collections import MEMORIES
from lot_grpc.testing.faults import FaultInjectingStore, InjectedFault, When
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.sampling import one_in
from tests.services.clearing import OTHER, Meeting, met_while_clearing, only_the_mark, two_filled
from tests.services.filled import fill, held
from tests.services.watching import change_watcher
from tests.services.world import NS, SharedStore, World, events, memory, save

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
    writer = await other.services.episodes.recorder.open(NS, "e1", TakeoverPolicy.REPLACE)
    told: list[BaseException] = []
    writer.on_stop = told.append
    assert await met_while_clearing(one, other.services.episodes.leases.renew) is None
    assert isinstance(told[0], NamespaceClearingError)
    assert only_the_mark(await held(one.store, NS))


async def test_a_stream_of_another_process_that_slept_through_it_brings_nothing_back(two):
    one, other = two
    writer = await other.services.episodes.recorder.open(NS, "e1", TakeoverPolicy.REPLACE)
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
        await watcher.until(lambda: len(watcher.events) == 2)
    assert [one.type for one in watcher.events] == [ChangeType.CLEARED, ChangeType.STORED]
    assert watcher.events[0].change_time < watcher.events[1].change_time
