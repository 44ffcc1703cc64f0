"""Long memories, and what happens while they are indexed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from lot_grpc.domain.errors import EmbeddingUnavailableError
from lot_grpc.domain.memory import IndexingState, Memory, MemoryContent
from lot_grpc.ports import Embedding, MultiVector
from lot_grpc.services.memories import indexing as indexing_module
from lot_grpc.services.memories.drafts import Created, MemoryEdit
from lot_grpc.services.memories.indexing import MemoryIndexing
from lot_grpc.services.records.collections import (
    MEMORIES,
    PASSAGE_VECTORS,
    SPARSE_VECTOR,
    TEXT_VECTOR,
)
from lot_grpc.services.records.memories import INDEXING, memory_point
from lot_grpc.testing.hashing import HashingEmbedder
from lot_grpc.work import begin_work, current_work
from tests.services.test_memories_passages import long_text
from tests.services.world import NS, World, memory, open_world

AWAY = "the embedding endpoint http://models.test cannot be reached; retry"
PENDING, COMPLETE = IndexingState.PENDING, IndexingState.COMPLETE


def indexing(world: World) -> MemoryIndexing:
    return world.services.memories.indexing


async def step(world: World) -> None:
    """As the server does it, in a task of its own."""
    await asyncio.create_task(indexing(world).step())


async def create(world: World, content: str = "", **named: Any) -> Created:
    given = memory(content or long_text(1, 20), **{"memory_id": "m", **named})
    return await world.services.memories.memories.create(NS, given)


async def edit(world: World, **changes: Any) -> Memory:
    change = MemoryEdit(replace(MemoryContent("x"), **changes), frozenset(changes))
    return (await world.services.memories.memories.update(NS, "m", change, "")).memory


async def get(world: World, memory_id: str = "m") -> Memory:
    return await world.services.memories.memories.get(NS, memory_id)


async def record(world: World, memory_id: str = "m") -> Any:
    point = memory_point(NS, memory_id)
    return (await world.store.get(MEMORIES, NS, [point], vectors=True))[point]


async def is_whole(world: World, text: str, memory_id: str = "m") -> bool:
    """Whether it is complete, with the vectors of this text."""
    stored = await record(world, memory_id)
    alone = await open_world(embedder=world.embedder)
    made = await alone.services.runtime.indexer.vectors_of(
        indexing_module._text(replace(stored, payload={**stored.payload, "content": text}))
    )
    names = {TEXT_VECTOR, PASSAGE_VECTORS, SPARSE_VECTOR}
    if INDEXING in stored.payload or stored.vectors.keys() != names:
        return False
    passages, expected = stored.vectors[PASSAGE_VECTORS], made.vectors[PASSAGE_VECTORS]
    assert isinstance(passages, MultiVector)
    assert isinstance(expected, MultiVector)
    if len(passages.vectors) != len(expected.vectors):
        return False
    return all(
        list(one) == pytest.approx(list(other), abs=1e-5)
        for one, other in zip(passages.vectors, expected.vectors, strict=True)
    )


async def _in_a_call(happens: Callable[[], Awaitable[object]]) -> None:
    begin_work()
    await happens()


class Meanwhile(HashingEmbedder):
    """Something happens while documents are embedded, once, before the first of them."""

    def __init__(self) -> None:
        super().__init__()
        self.happens: Callable[[], Awaitable[object]] | None = None
        self.fails: Callable[[], Exception] | None = None
        self.embedded = 0

    async def embed_documents(self, texts: Sequence[str]) -> list[Embedding]:
        work = current_work()
        if work is not None and work.background:
            if self.fails is not None:
                raise self.fails()
            if self.happens is not None:
                happens, self.happens = self.happens, None
                await asyncio.create_task(_in_a_call(happens))
            self.embedded += len(texts)
        return await super().embed_documents(texts)


def away() -> Exception:
    return EmbeddingUnavailableError(AWAY, url="http://models.test")
