"""Long memories are stored at once and indexed in the background."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lot_grpc.domain.errors import (
    EmbeddingUnavailableError,
    MemoryNotFoundError,
    StorageFullError,
    StoreUnavailableError,
)
from lot_grpc.domain.memory import MemoryContent
from lot_grpc.domain.passages import passages_of
from lot_grpc.domain.query import Legs, MemoryFilter
from lot_grpc.domain.transfer import ExportSpec, ImportConflictPolicy, ImportTerms
from lot_grpc.services import indexer
from lot_grpc.services.memories import indexing as indexing_module
from lot_grpc.services.memories.drafts import Created, MemoryDraft
from lot_grpc.services.recall.targets import RecallOptions, memory_request
from lot_grpc.services.records.collections import (
    MEMORIES,
    PASSAGE_VECTORS,
    REQUESTS,
    SPARSE_VECTOR,
    TEXT_VECTOR,
)
from lot_grpc.services.records.memories import INDEXING, INDEXING_PROBLEM
from lot_grpc.services.transfer.importer import ImportRun
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.testing.hashing import HashingEmbedder
from lot_grpc.testing.in_memory import InMemoryStore
from lot_grpc.work import begin_work
from tests.contract.clock import FixedClock
from tests.services.long_memories import (
    AWAY,
    COMPLETE,
    PENDING,
    Meanwhile,
    away,
    create,
    edit,
    get,
    indexing,
    is_whole,
    record,
    step,
)
from tests.services.test_memories_passages import ASKED, FACT, find, long_text
from tests.services.watching import change_watcher
from tests.services.world import NS, Interrupted, SharedStore, World, open_world

RETRY_SECONDS = indexing_module.retry_seconds


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of more than eight passages is long, and a failure is repeated at once."""
    monkeypatch.setattr(indexer, "AT_ONCE", 8)
    monkeypatch.setattr(indexing_module, "retry_seconds", lambda failures: 0.0)


@pytest.fixture
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    if getattr(request, "param", "in_memory") == "in_memory":
        yield await open_world()
        return
    clock = FixedClock()
    store = EdgeStore(tmp_path, clock, min_free_bytes=0)
    yield await open_world(store, clock)
    await store.close()


@pytest.fixture
def embedder() -> Meanwhile:
    return Meanwhile()


# --- before and after -------------------------------------------------------------------------


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
        await watcher.until(lambda: len(watcher.told) == 1)
        await step(world)
        await watcher.until(lambda: len(watcher.told) == 2)
    assert [one.type for one in watcher.told] == ["stored", "updated"]
    assert [one.thing.indexing for one in watcher.told] == [PENDING, COMPLETE]


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


# --- what happens meanwhile -------------------------------------------------------------------


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


# --- processes --------------------------------------------------------------------------------


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


# --- failures ---------------------------------------------------------------------------------


async def test_a_model_that_is_away_is_told_and_tried_again(embedder: Meanwhile) -> None:
    world = await open_world(embedder=embedder)
    await create(world)
    embedder.fails = away
    async with change_watcher(world) as watcher:
        for _ in range(3):  # the same problem is told once
            with pytest.raises(EmbeddingUnavailableError):
                await step(world)
        failed = await get(world)
        assert (failed.indexing, failed.indexing_problem) == (PENDING, AWAY)
        assert (await record(world)).payload[INDEXING_PROBLEM] == AWAY
        await watcher.until(lambda: len(watcher.told) == 1)
        embedder.fails = None
        await step(world)
        await watcher.until(lambda: len(watcher.told) == 2)
    assert [one.thing.indexing_problem for one in watcher.told] == [AWAY, ""]
    assert (await get(world)).indexing_problem == ""
    assert await is_whole(world, long_text(1, 20))


def test_the_pause_after_a_failure_grows_and_is_bounded() -> None:
    pauses = [RETRY_SECONDS(failures) for failures in range(12)]
    assert pauses[:4] == [1, 2, 4, 8]
    assert pauses[-1] == 60


async def test_a_memory_that_fails_does_not_hold_up_the_others(
    embedder: Meanwhile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing_module, "retry_seconds", lambda failures: 3600.0)
    world = await open_world(embedder=embedder)
    await create(world)
    embedder.fails = away
    with pytest.raises(EmbeddingUnavailableError):
        await step(world)
    embedder.fails = None
    await create(world, long_text(2, 0), memory_id="other")
    for _ in range(2):
        await step(world)
    assert (await get(world, "other")).indexing is COMPLETE
    assert (await get(world)).indexing is PENDING


async def test_an_edit_after_a_failure_begins_without_it(embedder: Meanwhile) -> None:
    world = await open_world(embedder=embedder)
    await create(world)
    embedder.fails = away
    with pytest.raises(EmbeddingUnavailableError):
        await step(world)
    assert (await edit(world, tags=("t",))).indexing_problem == AWAY
    edited = await edit(world, content=long_text(2, 0))
    assert (edited.indexing, edited.indexing_problem) == (PENDING, "")
    assert (await get(world)).indexing_problem == ""


async def test_a_bug_is_told_without_its_text(embedder: Meanwhile) -> None:
    world = await open_world(embedder=embedder)
    await create(world)
    embedder.fails = lambda: RuntimeError("secret contents")
    with pytest.raises(RuntimeError):
        await step(world)
    problem = (await get(world)).indexing_problem
    assert "internal error" in problem
    assert "secret" not in problem


class FullStore(InMemoryStore):
    full = False

    async def check(self) -> None:
        self._require()

    async def replace(self, *given: Any) -> bool:
        self._require()
        return await super().replace(*given)

    async def update(self, *given: Any, **named: Any) -> bool:
        self._require()
        return await super().update(*given, **named)

    def _require(self) -> None:
        if self.full:
            raise StorageFullError(1, 2**30, "/data")


async def test_a_full_disk_is_told_though_it_cannot_be_stored(embedder: Meanwhile) -> None:
    clock = FixedClock()
    store = FullStore(clock)
    world = await open_world(store, clock, embedder=embedder)
    await create(world)
    store.full = True
    with pytest.raises(StorageFullError):
        await step(world)
    assert embedder.embedded == 0  # what cannot be stored is not made
    assert "free some space" in (await get(world)).indexing_problem
    [(hit, _)] = await find(world, ASKED)
    assert "free some space" in hit.thing.indexing_problem
    assert "free some space" in (await indexing(world).check()).detail
    store.full = False
    await step(world)
    assert (await get(world)).indexing_problem == ""
    assert await is_whole(world, long_text(1, 20))


async def test_the_checks_of_the_server_say_what_is_pending_and_why(embedder: Meanwhile) -> None:
    world = await open_world(embedder=embedder)

    async def detail() -> str:
        checks = {one.name: one for one in await world.services.admin.ready_checks()}
        assert checks["indexing"].ok  # it serves
        return checks["indexing"].detail

    assert await detail() == "all memories are indexed"
    await create(world)
    assert (await detail()).endswith(": 1")
    embedder.fails = away
    with pytest.raises(EmbeddingUnavailableError):
        await step(world)
    assert AWAY in await detail()


# --- waiting ----------------------------------------------------------------------------------


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


# --- other parts ------------------------------------------------------------------------------


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
