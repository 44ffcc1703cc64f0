"""From when to when memories are true, and what a recall finds of them at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lot_grpc.domain.errors import RequestInvalidError
from lot_grpc.services.context.request import ContextRequest
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.storage.qdrant import QdrantStore
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.invariants import check_invariants
from tests.services.truth import TTL, create, edit, found, get, listed
from tests.services.world import MINUTE, NS, SharedStore, World, memory, open_world


@pytest.fixture(params=["memory", "shared", "edge", "qdrant"])
async def stored(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """A process over each kind of store: a shared one is not asked first whether any is untrue."""
    clock = FixedClock()
    made = {
        "memory": lambda: InMemoryStore(clock),
        "shared": lambda: SharedStore(clock),
        "edge": lambda: EdgeStore(tmp_path / "data", clock, min_free_bytes=0),
        "qdrant": lambda: QdrantStore(clock, location=":memory:"),
    }
    world = await open_world(made[request.param](), clock)
    yield world
    await world.store.close()


async def test_a_mark_that_comes_and_goes_hides_and_shows_on_every_store(stored):
    world = stored
    await create(world, "a", valid_from=1)
    await create(world, "b", supersedes="a")
    await create(world, "c", valid_from=world.clock.now() + TTL)
    assert await found(world) == {"b"}
    assert await found(world, 2) == {"a"}
    assert await found(world, superseded=True) == {"a"}
    await edit(world, "b", supersedes="")
    assert await found(world) == {"a", "b"}
    assert await found(world, superseded=True) == set()
    assert await found(world, world.clock.now() + TTL) == {"a", "b", "c"}
    await check_invariants(world.store, NS)


async def test_recall_finds_what_is_true_now_or_as_of_a_time(world):
    start = world.clock.now()
    hour = 60 * TTL
    await create(world, "old", valid_from=start - 3 * hour, valid_until=start - hour)
    await create(world, "now", valid_from=start - hour)
    await create(world, "always")
    await create(world, "soon", valid_from=start + hour)
    await create(world, "ending", valid_until=start + hour)
    assert await found(world) == {"now", "always", "ending"}
    assert await found(world, start - 4 * hour) == set()
    assert await found(world, start - 2 * hour) == {"old"}
    assert await found(world, start - hour) == {"now"}
    assert await found(world, start) == {"now", "always", "ending"}
    assert await found(world, start + hour) == {"now", "always", "soon"}
    world.clock.advance(3600)
    assert await found(world) == {"now", "always", "soon"}
    assert len(await listed(world)) == 5


async def test_a_successor_hides_the_old_one_only_from_its_beginning_on(world):
    start = world.clock.now()
    await create(world, "a")
    await create(world, "b", supersedes="a", valid_from=start + TTL)
    assert await found(world) == {"a"}
    assert await found(world, start + TTL - 1) == {"a"}
    assert await found(world, start + TTL) == {"b"}
    world.clock.advance(MINUTE)
    assert await found(world) == {"b"}
    assert await found(world, start) == {"a"}


async def test_a_moved_beginning_moves_the_end_of_what_is_superseded(world):
    start = world.clock.now()
    await create(world, "a", valid_from=1)
    await create(world, "b", supersedes="a")
    await edit(world, "b", valid_from=start - 5)
    assert (await get(world, "a")).superseded_time == start - 5
    assert await found(world, start - 6) == {"a"}
    assert await found(world, start - 5) == {"b"}
    await edit(world, "b", valid_from=None)
    assert (await get(world, "a")).superseded_time == start
    await check_invariants(world.store, NS)


async def test_times_that_cross_are_refused(world):
    start = world.clock.now()
    bad: list[dict[str, int]] = [
        {"valid_from": 5, "valid_until": 5},
        {"valid_from": start + 2, "valid_until": start + 1},
        {"valid_until": start},
        {"valid_until": start - TTL},
    ]
    await create(world, "a")
    for times in bad:
        with pytest.raises(RequestInvalidError, match="later than valid_from") as caught:
            await create(world, "new", **times)
        assert caught.value.violations[0].rule == "memory.valid_until.order"
        with pytest.raises(RequestInvalidError, match="later than valid_from"):
            await edit(world, "a", **times)
    assert await listed(world) == {"a"}


async def test_a_request_sent_again_once_the_memory_has_ended_answers_alike(world):
    until = world.clock.now() + TTL
    first = await create(world, "a", request_id="r", valid_until=until)
    world.clock.advance(2 * MINUTE)
    assert await create(world, "a", request_id="r", valid_until=until) == first


async def test_the_context_of_a_task_shows_what_is_true_now(world):
    await create(world, "a")
    await create(world, "b", supersedes="a")
    await create(world, "c", valid_from=world.clock.now() + TTL)
    context = await world.services.task_contexts.gather(NS, ContextRequest(task="fact"))
    assert {hit.thing.memory_id for hit in context.memories} == {"b"}


async def test_what_begins_later_is_no_repeat_of_what_is_true_now(world):
    """Else the caller is told that it is stored, and nothing recalls it."""
    contents, later = world.services.memories.memories, world.clock.now() + TTL
    first = await contents.create(NS, memory("tabs", unique=True, valid_from=later))
    again = await contents.create(NS, memory("tabs", unique=True, valid_from=later))
    assert (again.created, again.memory.memory_id) == (False, first.memory.memory_id)
    now = await contents.create(NS, memory("tabs", unique=True))
    assert now.created
    assert await found(world) == {now.memory.memory_id}
    for given in ({}, {"valid_from": 1}, {"valid_from": world.clock.now()}):
        repeat = await contents.create(NS, memory("tabs", unique=True, **given))
        assert (repeat.created, repeat.memory.memory_id) == (False, now.memory.memory_id)
    await check_invariants(world.store, NS)
