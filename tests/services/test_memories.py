from __future__ import annotations

import pytest

from lot_grpc.domain.errors import (
    EtagMismatchError,
    MemoryIdInUseError,
    MemoryNotFoundError,
    RequestIdReusedError,
    RequestInvalidError,
)
from lot_grpc.domain.memory import ConversationSummary, MemoryKind, Project
from lot_grpc.services.records.collections import MEMORIES, TOMBSTONES
from tests.services.world import DAY, NS, World, memory, payloads


async def create(world: World, content: str = "The port is 8080", **named: object):
    return await world.services.memories.memories.create(NS, memory(content, **named))


async def test_a_memory_is_there_as_it_was_given(world):
    for details in (
        None,
        ConversationSummary(("use go",), "fine"),
        Project("/x", ("go",), "done", 5),
    ):
        made = await create(world, kind=MemoryKind.FACT, details=details, tags=("a",))
        assert made.created
        assert await world.services.memories.memories.get(NS, made.memory.memory_id) == made.memory
        assert made.memory.content.details == details


async def test_the_same_content_again_is_another_memory(world):
    first, second = await create(world), await create(world)
    assert first.memory.memory_id != second.memory.memory_id
    assert len(await payloads(world, MEMORIES)) == 2


async def test_the_same_memory_under_its_id_answers_alike(world):
    first = await create(world, memory_id="mine")
    world.clock.advance(5)
    again = await create(world, memory_id="mine")
    assert (first.created, again.created) == (True, False)
    assert again.memory == first.memory


@pytest.mark.parametrize("request_id", ["", "r"])
async def test_an_id_in_use_by_another_memory_is_refused_every_time(world, request_id):
    await create(world, "one", memory_id="mine")
    for _ in range(2):
        with pytest.raises(MemoryIdInUseError):
            await create(world, "two", memory_id="mine", request_id=request_id)
    assert (await world.services.memories.memories.get(NS, "mine")).content.content == "one"


async def test_a_request_again_answers_alike(world):
    first = await create(world, request_id="r", ttl=60_000_000)
    world.clock.advance(5)
    again = await create(world, request_id="r", ttl=60_000_000)
    assert again == first
    with pytest.raises(RequestIdReusedError):
        await create(world, "another", request_id="r")
    assert len(await payloads(world, MEMORIES)) == 1


async def test_a_late_retry_never_brings_back_what_was_deleted(world):
    first = await create(world, request_id="r")
    await world.services.memories.memories.delete(NS, first.memory.memory_id, "")
    with pytest.raises(MemoryNotFoundError, match="it was deleted after this request"):
        await create(world, request_id="r")
    assert await payloads(world, MEMORIES) == []


async def test_a_deleted_id_may_be_used_again_by_a_new_request(world):
    await create(world, memory_id="mine")
    await world.services.memories.memories.delete(NS, "mine", "")
    assert (await create(world, "two", memory_id="mine", request_id="r")).created


async def test_a_delete_goes_by_etag_and_leaves_a_tombstone(world):
    made = (await create(world, memory_id="mine")).memory
    with pytest.raises(EtagMismatchError):
        await world.services.memories.memories.delete(NS, "mine", "stale")
    assert await payloads(world, TOMBSTONES) == []
    await world.services.memories.memories.delete(NS, "mine", made.etag)
    for _ in range(2):
        with pytest.raises(MemoryNotFoundError):
            await world.services.memories.memories.delete(NS, "mine", "")
    (stone,) = await payloads(world, TOMBSTONES)
    assert (stone["resource_kind"], stone["id"], stone["done"]) == ("memory", "mine", True)


async def test_a_memory_is_absent_from_its_expiry_on(world):
    await create(world, memory_id="mine", ttl=10_000_000)
    world.clock.advance(9)
    await world.services.memories.memories.get(NS, "mine")
    world.clock.advance(1)
    with pytest.raises(MemoryNotFoundError):
        await world.services.memories.memories.get(NS, "mine")
    assert (await create(world, "two", memory_id="mine")).created
    with pytest.raises(RequestInvalidError, match="must be in the future"):
        await create(world, expire_time=world.clock.now())


async def test_what_lapsed_is_dropped_by_the_sweep(world):
    await create(world, ttl=10_000_000, request_id="r")
    kept = await create(world, "kept")
    world.clock.advance(DAY)
    assert await world.services.housekeeping.drop_expired() == 2  # the memory, and its request
    assert [row["memory_id"] for row in await payloads(world, MEMORIES)] == [kept.memory.memory_id]
