"""Marks on superseded memories after a death, and beside writers that know less."""

from __future__ import annotations

import pytest

from lot_grpc.domain.errors import RequestInvalidError
from lot_grpc.services.lineage.lineage import Note
from lot_grpc.services.records.collections import MEMORIES
from lot_grpc.services.records.memories import memory_point
from tests.contract.clock import FixedClock
from tests.services.invariants import check_invariants
from tests.services.truth import create, edit, get, listed, marks, three
from tests.services.world import NS, Interrupted, SharedStore, World, open_world

# --- a note that was left ---------------------------------------------------------------------


async def test_a_note_that_was_left_is_followed_and_dropped(world):
    await three(world)
    lineage = world.services.memories.lineage
    await lineage.begin(NS, "c", "", "b")
    assert await lineage.roll_forward(world.clock.now() - 1) == 0
    assert await lineage.roll_forward(world.clock.now()) == 1
    assert await marks(world) == {"a": "b", "b": "c"}
    await check_invariants(world.store, NS)


async def test_a_circle_that_a_death_left_is_broken(world):
    """Its writer died before it looked whether another had closed the circle."""
    await three(world)
    lineage = world.services.memories.lineage
    await lineage.begin(NS, "a", "", "c")
    await world.store.update(MEMORIES, NS, memory_point(NS, "a"), set={"supersedes": "c"})
    assert await lineage.roll_forward(world.clock.now()) == 1
    assert (await get(world, "a")).content.supersedes == ""
    assert await marks(world) == {"a": "b", "b": "c"}
    await check_invariants(world.store, NS)


# --- stale writers ----------------------------------------------------------------------------


@pytest.fixture
async def interrupted() -> World:
    """A process on a shared store in which others may come first."""
    clock = FixedClock()
    return await open_world(Interrupted(SharedStore(clock)), clock)


async def test_an_edit_keeps_a_mark_that_came_meanwhile(interrupted):
    world = interrupted
    await create(world, "a")
    world.store.before("replace", MEMORIES, lambda: create(world, "b", supersedes="a"))
    await edit(world, "a", title="t")
    assert (await get(world, "a")).content.title == "t"
    assert await marks(world) == {"a": "b"}
    await check_invariants(world.store, NS)


async def test_a_mark_rests_on_who_supersedes_now(interrupted):
    world = interrupted
    await create(world, "a")
    world.store.before("update", MEMORIES, lambda: create(world, "c", supersedes="a"))
    await create(world, "b", supersedes="a")
    assert await marks(world) == {"a": "c"}
    await check_invariants(world.store, NS)


async def test_a_mark_of_one_deleted_meanwhile_is_not_left(interrupted):
    world = interrupted
    await create(world, "a")

    async def gone() -> None:
        await world.another_process().services.memories.memories.delete(NS, "b", "")

    world.store.before("update", MEMORIES, gone)
    await create(world, "b", supersedes="a")
    assert await marks(world) == {}
    await check_invariants(world.store, NS)


async def test_a_circle_is_broken_in_the_memory_as_it_is_by_then(interrupted):
    world = interrupted
    for one, other in ("ab", "ba"):
        await create(world, one)
        await world.store.update(MEMORIES, NS, memory_point(NS, one), set={"supersedes": other})
    world.store.before("update", MEMORIES, lambda: edit(world, "a", title="edited"))
    with pytest.raises(RequestInvalidError):
        await world.services.memories.lineage.follow(Note(NS, "note", "a", ("b",)))
    left = await get(world, "a")
    assert (left.content.title, left.content.supersedes, left.revision) == ("edited", "", 3)


async def test_one_superseded_since_it_was_seen_is_not_deleted_as_seen(interrupted):
    world = interrupted
    await create(world, "a")
    memories = world.services.memories.memories
    record = await memories.find_record(NS, "a")
    assert record is not None
    await create(world, "b", supersedes="a")
    assert not await memories.delete_as_seen(record)
    assert await listed(world) == {"a", "b"}
