"""Long memories over gRPC: what a call answers, waits for, and tells."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from lot_grpc.domain.errors import EmbeddingUnavailableError
from lot_grpc.pb.lot.v1 import memory_pb2 as pb
from lot_grpc.server.limits import Limits
from lot_grpc.services import indexer
from lot_grpc.testing.hashing import HashingEmbedder
from lot_grpc.work import current_work
from tests.server.service import Lot, serving
from tests.server.wire import until
from tests.services.test_memories_passages import long_text

PENDING, COMPLETE = pb.INDEXING_STATE_PENDING, pb.INDEXING_STATE_COMPLETE
AWAY = "the embedding endpoint http://models.test cannot be reached; retry"
TEXT = long_text(1, 3)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of more than eight passages is long."""
    monkeypatch.setattr(indexer, "AT_ONCE", 8)


@asynccontextmanager
async def indexing(lot: Lot) -> AsyncIterator[None]:
    """The background work of the server that is about memories."""

    async def run() -> None:
        while True:
            await asyncio.sleep(0.02)
            with suppress(EmbeddingUnavailableError):
                await lot.own_services.memories.indexing.step()  # type: ignore[union-attr]

    working = asyncio.create_task(run())
    try:
        yield
    finally:
        working.cancel()
        await asyncio.wait([working])


@pytest.fixture
async def lot() -> AsyncIterator[Lot]:
    async with serving() as served:
        yield served


async def create(lot: Lot, content: str = TEXT, **named: object) -> pb.Memory:
    memory: pb.Memory = (
        await lot.memories.CreateMemory(memory={"content": content}, **{"memory_id": "m", **named})
    ).memory
    return memory


async def state(lot: Lot, memory_id: str = "m") -> int:
    answer = await lot.memories.GetMemory(memory_id=memory_id)
    return int(answer.memory.indexing)


async def test_the_state_is_returned_by_every_read(lot: Lot) -> None:
    assert (await create(lot)).indexing == PENDING
    assert (await create(lot, "short", memory_id="s")).indexing == COMPLETE
    assert await state(lot) == PENDING
    listed = (await lot.memories.ListMemories()).memories
    assert {one.memory_id: one.indexing for one in listed} == {"m": PENDING, "s": COMPLETE}
    hits = (await lot.memories.SearchMemories(query="the blue kettle of Lisbon")).hits
    assert {hit.memory.memory_id: hit.memory.indexing for hit in hits}["m"] == PENDING


async def test_a_call_that_waits_answers_with_the_complete_memory(lot: Lot) -> None:
    async with indexing(lot):
        created = await create(lot, wait_for_index=True)
        assert created.indexing == COMPLETE
        updated = (
            await lot.memories.UpdateMemory(
                memory_id="m", memory={"content": long_text(2, 3)}, wait_for_index=True
            )
        ).memory
        assert updated.indexing == COMPLETE
        assert updated.content == long_text(2, 3)
        batch = await lot.memories.BatchCreateMemories(
            items=[
                {"memory": {"content": long_text(3, 3)}, "memory_id": "a"},
                {"memory": {"content": "short"}, "memory_id": "b"},
                {"memory": {"content": "another"}, "memory_id": "m"},
                {"memory": {"content": long_text(4, 3)}, "memory_id": "c"},
            ],
            wait_for_index=True,
        )
    states = [one.response.memory.indexing for one in batch.results if one.HasField("response")]
    assert states == [COMPLETE] * 3
    assert batch.results[2].HasField("error")


async def test_at_the_deadline_the_memory_is_stored_and_pending(lot: Lot) -> None:
    created = await create(lot, wait_for_index=True, request_id="r", timeout=1.0)
    assert created.indexing == PENDING
    async with indexing(lot):
        again = await create(lot, wait_for_index=True, request_id="r")
    assert again.indexing == COMPLETE
    assert again.etag == created.etag


async def test_the_limit_of_a_call_is_a_deadline_too() -> None:
    async with serving(limits=Limits(max_call_seconds=1)) as lot:
        assert (await create(lot, wait_for_index=True)).indexing == PENDING


async def test_a_caller_that_leaves_does_not_keep_the_call_waiting(lot: Lot) -> None:
    call = asyncio.ensure_future(create(lot, wait_for_index=True))
    await until(lambda: lot.own_services.memories.indexing._tasks)  # type: ignore[union-attr]
    call.cancel()
    await until(lambda: not lot.server.calls_in_flight)  # type: ignore[union-attr]
    assert await state(lot) == PENDING


async def test_a_failure_is_answered_at_once(lot: Lot, monkeypatch: pytest.MonkeyPatch) -> None:
    embed = HashingEmbedder.embed_documents

    async def fails(self: HashingEmbedder, texts: list[str]) -> object:
        work = current_work()
        if work is not None and work.background:
            raise EmbeddingUnavailableError(AWAY, url="http://models.test")
        return await embed(self, texts)

    monkeypatch.setattr(HashingEmbedder, "embed_documents", fails)
    async with indexing(lot):
        created = await create(lot, wait_for_index=True)
    assert (created.indexing, created.indexing_problem) == (PENDING, AWAY)
    listed = (await lot.memories.ListMemories()).memories
    assert [one.indexing_problem for one in listed] == [AWAY]
    ready = await lot.admin.CheckReady()
    [check] = [one for one in ready.checks if one.name == "indexing"]
    assert ready.ready
    assert AWAY in check.detail
    monkeypatch.undo()


async def test_watchers_are_told_of_the_completion(lot: Lot) -> None:
    stream = lot.memories.WatchChanges()
    await anext(aiter(stream))
    await create(lot)
    states = []
    async for answer in stream:
        states += [event.memory.indexing for event in answer.change_events]
        if states == [PENDING]:
            working = asyncio.create_task(
                lot.own_services.memories.indexing.step()  # type: ignore[union-attr]
            )
        if COMPLETE in states:
            break
    await working
    assert states == [PENDING, COMPLETE]
    stream.cancel()


@pytest.mark.parametrize("vectors", [False, True])
async def test_an_export_has_no_state(lot: Lot, vectors: bool) -> None:
    await create(lot)
    async for answer in lot.admin.Export(include_vectors=vectors):
        for record in answer.records:
            assert record.memory.indexing == pb.INDEXING_STATE_UNSPECIFIED
            assert "indexing" not in record.stored_form["row"]
            assert not record.vectors
