"""What the change feed tells of a clear."""

from __future__ import annotations

from typing import Any

import pytest

from lot_grpc.domain.change import ChangeType, ResourceKind
from lot_grpc.domain.errors import PatternNotFoundError
from lot_grpc.services.records.collections import DECISIONS, META, PATTERNS, TOMBSTONES
from lot_grpc.testing.faults import FaultInjectingStore, InjectedFault
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.clearing import OTHER, two_filled
from tests.services.watching import change_watcher
from tests.services.world import NS, memory, outcome, rows, save


async def test_it_is_told_once_and_no_delete_is():
    world = await two_filled()
    async with change_watcher(world) as watcher:
        await world.services.clearing.clearer.clear(NS)
        await world.services.memories.memories.create(NS, memory("after"))
        await watcher.until(lambda: len(watcher.events) == 2)
    cleared, stored = watcher.events
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
        await watcher.until(lambda: len(watcher.events) == 2)
        assert [one.type for one in watcher.events] == [ChangeType.CLEARED, ChangeType.STORED]
        cursor = watcher.events[0].cursor
    async with change_watcher(again, cursor=cursor) as watcher:
        await watcher.until(lambda: bool(watcher.events))
        assert [one.type for one in watcher.events] == [ChangeType.STORED]


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
        await memories.until(lambda: len(memories.events) == 1)
        await patterns.until(lambda: len(patterns.events) == 1)
        await clears.until(lambda: len(clears.events) == 1)
        await world.services.clearing.clearer.clear(NS)
        await world.services.memories.memories.create(OTHER, memory("there"))
        await patterns.until(lambda: len(patterns.events) == 2)
        await memories.until(lambda: len(memories.events) == 2)
        await clears.until(lambda: len(clears.events) == 2)
        await others.until(lambda: len(others.events) == 1)
    assert [one.resource_kind for one in patterns.events] == [ResourceKind.PATTERN, None]
    assert [one.resource_kind for one in memories.events] == [ResourceKind.MEMORY, None]
    assert [one.resource_kind for one in clears.events] == [ResourceKind.PATTERN, None]
    assert [one.type for one in others.events] == [ChangeType.STORED]


async def test_a_watch_from_the_start_is_told_of_a_clear_in_its_midst():
    world = await two_filled()
    async with change_watcher(
        world, from_start=True, resource_kinds=(ResourceKind.MEMORY,)
    ) as watcher:
        await watcher.until(lambda: bool(watcher.events))
        await world.services.clearing.clearer.clear(NS)
        await watcher.until(lambda: watcher.events[-1].type is ChangeType.CLEARED)


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
        await watcher.until(lambda: len(watcher.events) == 1)
        await world.services.housekeeping.roll_forward(starting=True)
        await save(world, "after")
        await watcher.until(lambda: len(watcher.events) == 2)
    assert [one.type for one in watcher.events] == [ChangeType.CLEARED, ChangeType.STORED]
    assert await rows(world.store, TOMBSTONES, NS) == [before]


async def test_who_names_what_was_cleared_is_told_that_it_is_gone():
    world = await two_filled()
    await world.services.clearing.clearer.clear(NS, [ResourceKind.PATTERN])
    with pytest.raises(PatternNotFoundError):
        await outcome(world, "p1")
    assert await world.store.count(PATTERNS, NS) == 0
    assert await world.store.count(DECISIONS, NS) == 3
