"""Who watches what several processes write, whatever happens."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, replace
from typing import Any

import pytest

from lot_grpc.domain.change import ChangeType, ResourceKind
from lot_grpc.domain.errors import LotError
from lot_grpc.services.changes.events import ChangeEvent
from lot_grpc.services.changes.feed import short_of
from lot_grpc.services.patterns.drafts import Dedupe
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.records.patterns import pattern_from_record
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.sampling import one_in
from tests.services.watching import WATCHED, WEEK, change_watcher
from tests.services.world import (
    NS,
    Interleaving,
    SharedStore,
    World,
    end,
    memory,
    open_world,
    outcome,
    rows,
    save,
    start,
    sweep,
)

# --- several processes ------------------------------------------------------------------------


async def shared() -> tuple[World, World]:
    clock = FixedClock()
    world = await open_world(SharedStore(clock), clock)
    other = world.another_process()
    await other.services.runtime.stack.sequencer.open()
    return world, other


async def test_what_another_process_changed_is_told_once_it_has_settled():
    world, other = await shared()
    async with change_watcher(world) as watcher:
        saved = await save(other, "over there")
        await save(world, "here")
        await watcher.until(lambda: len(watcher.events) == 1)
        await other.services.runtime.stack.sequencer.publish()
        await watcher.until(lambda: len(watcher.events) == 2)
    assert watcher.events[1].id == saved.pattern.pattern_id


async def test_what_a_dead_process_left_is_told_after_a_while():
    world, other = await shared()
    async with change_watcher(world) as watcher:
        saved = await save(other, "its last words")
        world.clock.advance(60)
        await save(world, "here")
        await watcher.until(lambda: len(watcher.events) == 1)
        world.clock.advance(61)
        await watcher.until(lambda: len(watcher.events) == 2)
    assert watcher.events[1].id == saved.pattern.pattern_id


async def test_a_process_that_was_thought_dead_goes_on_under_another_id():
    world, other = await shared()
    first = other.services.runtime.stack.sequencer.writer_id
    await save(other, "one")
    async with change_watcher(world) as watcher:
        world.clock.advance(600)  # its machine slept
        saved = await save(other, "two")
        assert other.services.runtime.stack.sequencer.writer_id != first
        await other.services.runtime.stack.sequencer.publish()
        await watcher.until(lambda: saved.pattern.pattern_id in [one.id for one in watcher.events])


async def test_rows_of_processes_that_are_long_gone_are_dropped():
    world, other = await shared()
    await save(other, "one")
    world.clock.advance(2 * WEEK + 1)
    await world.services.runtime.stack.sequencer.publish()
    await sweep(world)
    left = await rows(world.store, "replicas", None)
    assert [row.payload["writer_id"] for row in left] == [
        world.services.runtime.stack.sequencer.writer_id
    ]


# --- whatever happens -------------------------------------------------------------------------


@dataclass
class Busy:
    """What a world does at random, and which things it touched."""

    world: World
    random: random.Random
    touched: dict[str, int]
    step: int = 0

    async def act(self) -> None:
        services, pick = self.world.services, self.random.choice
        self.step += 1
        identity = f"p{self.random.randrange(6)}"
        kind = pick(["save", "save", "outcome", "edit", "delete", "memory", "forget", "episode"])
        try:
            if kind == "save":
                await save(
                    self.world, f"{identity} v{self.step}", pattern_id=identity, dedupe=Dedupe.NONE
                )
            elif kind == "outcome":
                await outcome(self.world, identity)
            elif kind == "edit":
                pattern = await services.patterns.patterns.get(NS, identity)
                content = replace(pattern.content, title=f"v{self.step}")
                edit = PatternEdit(content, frozenset({"title"}))
                await services.patterns.patterns.update(NS, identity, edit, "")
            elif kind == "delete":
                await services.patterns.patterns.delete(NS, identity, "")
            elif kind == "memory":
                identity = identity.replace("p", "m")
                await services.memories.memories.create(
                    NS, memory(f"v{self.step}", memory_id=identity)
                )
            elif kind == "forget":
                identity = identity.replace("p", "m")
                await services.memories.memories.delete(NS, identity, "")
            else:
                identity = f"e{self.random.randrange(3)}"
                await services.episodes.creator.start(NS, start(episode_id=identity))
                await services.episodes.ender.end(NS, identity, end(), "")
        except LotError:
            return  # it is not there, or there already
        self.touched[identity] = self.step


async def replayed(world: World, events: list[ChangeEvent]) -> None:
    """What was told comes to what there is."""
    known: dict[tuple[str | None, str], Any] = {}
    for one in events:
        if one.type is ChangeType.DELETED:
            known.pop((one.resource_kind, one.id), None)
        elif one.cursor is not None:
            known[one.resource_kind, one.id] = one.thing
    there = {
        (resource_kind, record.payload[watched.id_key]): record
        for resource_kind, watched in WATCHED.items()
        for record in await rows(world.store, watched.collection.name)
    }
    assert known.keys() == there.keys()
    for (resource_kind, identity), thing in known.items():
        if resource_kind is ResourceKind.PATTERN:
            assert thing == pattern_from_record(there[resource_kind, identity])


@pytest.mark.parametrize("seed", one_in(3, range(12)))
@pytest.mark.parametrize("processes", [1, 2])
async def test_a_watcher_that_comes_and_goes_knows_all(seed, processes):
    clock, chance = FixedClock(), random.Random(seed)
    store: Any = InMemoryStore(clock) if processes == 1 else SharedStore(clock)
    world = await open_world(Interleaving(store, seed), clock)
    worlds = [world, *(world.another_process() for _ in range(processes - 1))]
    touched: dict[str, int] = {}
    busy = [Busy(one, chance, touched) for one in worlds]
    events: list[ChangeEvent] = []
    async with change_watcher(world) as watcher:
        cursor = watcher.cursor
    for _ in range(8):
        async with change_watcher(world, cursor=cursor) as watcher:
            for one in busy:
                for _ in range(chance.randrange(8)):
                    await one.act()
                await one.world.services.runtime.stack.sequencer.publish()
            for _ in range(chance.randrange(3)):
                with_timeout = asyncio.wait_for(anext(watcher.batch), 0.3)
                try:
                    batch = await with_timeout
                except TimeoutError:
                    break
                watcher.events += batch.changes
        seen = [one for one in watcher.events if one.cursor is not None]
        if seen:  # it dies somewhere in the midst of what it was told
            seen = seen[: chance.randrange(len(seen)) + 1]
            cursor = seen[-1].cursor
            events += seen
    async with change_watcher(world, cursor=cursor) as watcher:
        last = (await save(world, "the last")).pattern.pattern_id
        for each in worlds:
            await each.services.runtime.stack.sequencer.publish()
        await watcher.until(lambda: last in [one.id for one in watcher.events])
        ends = await world.services.changes.watcher._poller.ends()
        await save(world, "and one more")
        await watcher.until(lambda: not short_of(watcher.reached, ends))
        await watcher.until(lambda: watcher.events[-1].thing.content.task == "and one more")
    events += watcher.events
    await replayed(world, events)
    assert touched.keys() <= {one.id for one in events}
