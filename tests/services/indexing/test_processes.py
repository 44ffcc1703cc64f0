"""Indexing by several processes, those who wait for it, and what else takes part."""

from __future__ import annotations

import asyncio

import pytest

from lot_grpc.domain.errors import (
    EmbeddingUnavailableError,
    StoreUnavailableError,
)
from lot_grpc.domain.query import Legs
from lot_grpc.domain.transfer import ExportSpec, ImportConflictPolicy, ImportTerms
from lot_grpc.services.records.collections import REQUESTS
from lot_grpc.services.records.memories import INDEXING
from lot_grpc.services.transfer.importer import ImportRun
from lot_grpc.testing.hashing import HashingEmbedder
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.long_memories import (
    COMPLETE,
    PENDING,
    Meanwhile,
    away,
    create,
    get,
    indexing,
    is_whole,
    step,
)
from tests.services.test_memories_passages import FACT, find, long_text
from tests.services.world import NS, Interrupted, SharedStore, World, open_world


async def test_a_start_resumes_what_is_left(world: World) -> None:
    await create(world)
    other = world.another_process()
    await other.services.housekeeping.roll_forward(starting=True)
    await step(other)
    assert await is_whole(world, long_text(1, 20))


async def test_on_a_shared_store_others_take_it_over_once_it_is_old() -> None:
    clock = FixedClock()
    world = await open_world(SharedStore(clock), clock)
    await create(world)
    other = world.another_process()
    await other.services.housekeeping.roll_forward(starting=True)
    await step(other)
    assert (await get(world)).indexing is PENDING
    clock.advance(15 * 60 + 1)
    await other.services.housekeeping.roll_forward()
    await step(other)
    assert await is_whole(world, long_text(1, 20))
    await step(world)  # its own process finds nothing left to do
    assert not indexing(world)._tasks


async def test_two_processes_at_the_same_memory(embedder: Meanwhile) -> None:
    clock = FixedClock()
    world = await open_world(SharedStore(clock), clock, embedder=embedder)
    await create(world)
    other = world.another_process()
    await indexing(other).resume(2**62)
    embedder.happens = lambda: step(other)
    await step(world)
    assert await is_whole(world, long_text(1, 20))


async def test_a_repeat_of_its_request_takes_it_on(world: World) -> None:
    await create(world, memory_id="", request_id="r")
    other = world.another_process()
    created = await create(other, memory_id="", request_id="r")
    assert created.memory.indexing is PENDING
    await step(other)
    assert (await get(world, created.memory.memory_id)).indexing is COMPLETE


async def test_it_is_indexed_though_the_call_that_stored_it_fails() -> None:
    clock = FixedClock()
    world = await open_world(Interrupted(InMemoryStore(clock)), clock)

    async def away() -> None:
        raise StoreUnavailableError("the store is away")

    world.store.before("update", REQUESTS, away)
    with pytest.raises(StoreUnavailableError):
        await create(world, request_id="r")
    await step(world)
    assert await is_whole(world, long_text(1, 20))


async def test_a_wait_ends_when_all_are_complete(world: World) -> None:
    waited = [(await create(world)).memory, (await create(world, "s", memory_id="s")).memory]
    waiting = asyncio.create_task(indexing(world).wait(waited, 60))
    await asyncio.sleep(0)
    await step(world)
    await asyncio.wait_for(waiting, 20)
    assert (await get(world)).indexing is COMPLETE


async def test_a_wait_ends_when_its_time_is_up_and_when_the_memory_is_gone(world: World) -> None:
    made = (await create(world)).memory
    await indexing(world).wait([made], 0.05)
    assert (await get(world)).indexing is PENDING
    await world.services.memories.memories.delete(NS, "m")
    await asyncio.wait_for(indexing(world).wait([made], 60), 20)


async def test_a_wait_ends_when_an_attempt_fails(embedder: Meanwhile) -> None:
    world = await open_world(embedder=embedder)
    made = (await create(world)).memory
    waiting = asyncio.create_task(indexing(world).wait([made], 60))
    await asyncio.sleep(0)
    embedder.fails = away
    with pytest.raises(EmbeddingUnavailableError):
        await step(world)
    await asyncio.wait_for(waiting, 20)


async def test_a_wait_sees_what_another_process_does() -> None:
    clock = FixedClock()
    world = await open_world(SharedStore(clock), clock)
    made = (await create(world)).memory
    other = world.another_process()
    waiting = asyncio.create_task(indexing(other).wait([made], 60))
    await asyncio.sleep(0)
    await step(world)
    await asyncio.wait_for(waiting, 20)


@pytest.mark.parametrize("vectors", [False, True])
async def test_an_import_of_a_pending_memory_makes_its_vectors(world: World, vectors: bool) -> None:
    await create(world)
    spec = ExportSpec(NS, vectors=vectors)
    rows = [row async for row, _ in world.services.transfer.exporter.rows(spec)]
    [row] = rows
    assert not row.record.vectors
    assert INDEXING not in row.record.payload
    target = await open_world()
    run = ImportRun(ImportTerms(ImportConflictPolicy.FAIL, same_space=vectors))
    await target.services.transfer.importer.take(run, rows)
    assert await is_whole(target, long_text(1, 20))
    again = ImportRun(ImportTerms(ImportConflictPolicy.FAIL, same_space=vectors))
    await world.services.transfer.importer.take(again, rows)  # it is no other memory
    assert again.unchanged == 1
    await step(world)
    assert await is_whole(world, long_text(1, 20))


async def test_a_reindex_meanwhile(embedder: Meanwhile) -> None:
    """Its records get whole vectors of the other model, and the state follows."""

    async def open_model(name: str) -> HashingEmbedder:
        assert name == "other"
        return HashingEmbedder(64)

    world = await open_world(embedder=embedder)
    await create(world)
    world.services.reindexer._open_model = open_model
    async for _ in world.services.reindexer.run("other"):
        pass
    world.embedder = HashingEmbedder(64)
    assert (await get(world)).indexing is PENDING
    await step(world)
    assert (await get(world)).indexing is COMPLETE
    (best, passage), *_ = await find(world, legs=Legs.DENSE)
    assert best.thing.memory_id == "m"
    assert passage is not None
    assert FACT in passage.text
