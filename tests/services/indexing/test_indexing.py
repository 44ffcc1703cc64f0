"""Long memories are stored at once and indexed in the background."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lot_grpc.domain.errors import MemoryNotFoundError
from lot_grpc.domain.memory import MemoryContent
from lot_grpc.domain.passages import passages_of
from lot_grpc.domain.query import Legs, MemoryFilter
from lot_grpc.services.memories.drafts import Created, MemoryDraft
from lot_grpc.services.recall.targets import RecallOptions, memory_request
from lot_grpc.services.records.collections import (
    MEMORIES,
    PASSAGE_VECTORS,
    SPARSE_VECTOR,
    TEXT_VECTOR,
)
from lot_grpc.services.records.memories import INDEXING
from lot_grpc.testing.in_memory import InMemoryStore
from lot_grpc.work import begin_work
from tests.contract.clock import FixedClock
from tests.services.long_memories import (
    COMPLETE,
    PENDING,
    Meanwhile,
    create,
    edit,
    get,
    indexing,
    is_whole,
    record,
    step,
)
from tests.services.test_memories_passages import FACT, find, long_text
from tests.services.watching import change_watcher
from tests.services.world import NS, Interrupted, World, open_world


@pytest.mark.parametrize("world", ["in_memory", "edge"], indirect=True)
async def test_it_is_found_by_its_words_at_once_and_by_meaning_once_indexed(world: World) -> None:
    created = await create(world)
    assert created.memory.indexing is PENDING
    await create(world, long_text(2, 0).replace(FACT, ""), memory_id="other")
    [(best, passage)] = await find(world, legs=Legs.BM25)
    assert (best.thing.memory_id, best.thing.indexing) == ("m", PENDING)
    assert passage is None
    assert "m" in {hit.thing.memory_id for hit, _ in await find(world)}
    for _ in range(2):
        await step(world)
    assert (await get(world)).indexing is COMPLETE
    assert await is_whole(world, long_text(1, 20))
    for legs in (Legs.DENSE, Legs.HYBRID):
        (best, passage), *_ = await find(world, legs=legs)
        assert best.thing.memory_id == "m"
        assert passage is not None
        assert FACT in passage.text


async def test_its_last_word_is_found_at_once(world: World) -> None:
    await create(world, long_text(1, 20) + " Zanzibar")
    asked = RecallOptions("Zanzibar", 5, legs=Legs.BM25)
    found = await world.services.recall.memories.find(NS, memory_request(asked, MemoryFilter()))
    assert [hit.thing.memory_id for hit in found.hits] == ["m"]


async def test_a_text_of_few_passages_is_complete_at_once(world: World) -> None:
    content = long_text(1, 0, paragraphs=5)
    assert 1 < len(passages_of(content).spans) <= 8
    assert (await create(world, content)).memory.indexing is COMPLETE
    assert await is_whole(world, content)
    assert INDEXING not in (await record(world)).payload


async def test_the_completion_is_no_edit(world: World) -> None:
    created = await create(world)
    await step(world)
    done = await get(world)
    assert done == replace(created.memory, indexing=COMPLETE)
    assert done.etag == created.memory.etag


async def test_the_completion_is_a_change(world: World) -> None:
    async with change_watcher(world) as watcher:
        await create(world)
        await watcher.until(lambda: len(watcher.events) == 1)
        await step(world)
        await watcher.until(lambda: len(watcher.events) == 2)
    assert [one.type for one in watcher.events] == ["stored", "updated"]
    assert [one.thing.indexing for one in watcher.events] == [PENDING, COMPLETE]


async def test_a_text_cut_off_says_so_when_it_is_created(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lot_grpc.domain.passages.MOST_PASSAGES", 16)
    created = await create(world, "word " * 20_000)
    assert created.truncated
    assert created.memory.indexing is PENDING


async def test_each_of_a_batch_by_itself(world: World) -> None:
    drafts = [
        MemoryDraft(MemoryContent(content), memory_id=name)
        for name, content in (("a", "short"), ("b", long_text(1, 0)), ("c", long_text(2, 0)))
    ]
    results = await world.services.memories.memories.create_many(NS, drafts)
    states = [one.memory.indexing for one in results if isinstance(one, Created)]
    assert states == [COMPLETE, PENDING, PENDING]
    for _ in range(2):
        await step(world)
    assert {(await get(world, name)).indexing for name in "abc"} == {COMPLETE}


async def test_calls_take_turns_with_it(embedder: Meanwhile) -> None:
    """It says at the model that it is in the background."""
    world = await open_world(embedder=embedder)
    await create(world)
    assert embedder.embedded == 0
    await step(world)
    assert embedder.embedded == len(passages_of(long_text(1, 20)).spans)


async def test_an_edit_of_the_text_while_its_old_one_is_indexed(embedder: Meanwhile) -> None:
    world = await open_world(embedder=embedder)
    await create(world)
    embedder.happens = lambda: edit(world, content=long_text(3, 5))
    await step(world)
    edited = await get(world)
    assert edited.indexing is PENDING
    assert PASSAGE_VECTORS not in (await record(world)).vectors
    embedder.embedded = 0
    await step(world)
    assert await is_whole(world, long_text(3, 5))
    assert embedder.embedded == len(passages_of(long_text(3, 5)).spans)


async def test_an_edit_to_a_short_text_while_the_old_one_is_indexed(embedder: Meanwhile) -> None:
    world = await open_world(embedder=embedder)
    await create(world)
    embedder.happens = lambda: edit(world, content="short now")
    for _ in range(2):
        await step(world)
    assert (await get(world)).indexing is COMPLETE
    assert set((await record(world)).vectors) == {TEXT_VECTOR, SPARSE_VECTOR}


async def test_an_edit_of_tags_does_not_begin_it_anew(embedder: Meanwhile) -> None:
    world = await open_world(embedder=embedder)
    await create(world)
    embedder.happens = lambda: edit(world, tags=("new",))
    await step(world)
    done = await get(world)
    assert (done.indexing, done.content.tags, done.revision) == (COMPLETE, ("new",), 2)
    assert await is_whole(world, long_text(1, 20))
    assert embedder.embedded == len(passages_of(long_text(1, 20)).spans)


async def test_an_edit_that_read_it_before_it_was_complete_does_not_take_it_back() -> None:
    """The vectors that an edit of tags writes back are those that it read."""
    clock = FixedClock()
    store = Interrupted(InMemoryStore(clock))
    world = await open_world(store, clock)
    await create(world)
    other = world.another_process()
    await indexing(other).resume(2**62)
    store.before("replace", MEMORIES, lambda: step(other))
    await edit(world, tags=("new",))
    assert (await get(world)).content.tags == ("new",)
    assert await is_whole(world, long_text(1, 20))


async def test_a_memory_deleted_meanwhile_stays_deleted(embedder: Meanwhile) -> None:
    world = await open_world(embedder=embedder)
    await create(world)
    embedder.happens = lambda: world.services.memories.memories.delete(NS, "m")
    for _ in range(2):
        await step(world)
    with pytest.raises(MemoryNotFoundError):
        await get(world)
    assert not indexing(world)._tasks


async def test_another_memory_of_the_same_id_gets_its_own_vectors(embedder: Meanwhile) -> None:
    world = await open_world(embedder=embedder)
    await create(world)

    async def replaced() -> None:
        await world.services.memories.memories.delete(NS, "m")
        await create(world, long_text(4, 3))

    embedder.happens = replaced
    for _ in range(2):
        await step(world)
    assert await is_whole(world, long_text(4, 3))


async def test_a_memory_that_expires_meanwhile_is_gone(embedder: Meanwhile) -> None:
    world = await open_world(embedder=embedder)
    await create(world, ttl=1_000_000)

    async def passes() -> None:
        world.clock.advance(2)

    embedder.happens = passes
    for _ in range(2):
        await step(world)
    assert not await world.services.memories.memories.get_many(NS, ["m"])
    await world.services.housekeeping.drop_expired()
    assert await world.store.count(MEMORIES, None) == 0


@pytest.mark.parametrize("again", [False, True])
async def test_a_namespace_cleared_meanwhile_is_empty_or_has_what_came_after(
    embedder: Meanwhile, again: bool
) -> None:
    world = await open_world(embedder=embedder)
    await create(world)

    async def cleared() -> None:
        await world.services.clearing.clearer.clear(NS, ())
        if again:
            begin_work()  # a call after the clear
            await create(world)

    embedder.happens = cleared
    for _ in range(3):
        await step(world)
    assert await world.store.count(MEMORIES, NS) == again
    if again:
        assert await is_whole(world, long_text(1, 20))
    assert not indexing(world)._tasks
