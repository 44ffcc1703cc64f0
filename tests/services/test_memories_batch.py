"""Memories created in batches, and those that are stored once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from lot_grpc.domain.errors import (
    LotError,
    MemoryIdInUseError,
    MemoryNotFoundError,
    RequestIdReusedError,
    RequestInvalidError,
)
from lot_grpc.domain.memory import MemoryKind
from lot_grpc.ports import Embedding
from lot_grpc.services.memories import memory_creator
from lot_grpc.services.memories.drafts import Created, MemoryDraft, MemoryEdit
from lot_grpc.services.records.collections import MEMORIES
from lot_grpc.testing.hashing import HashingEmbedder
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.world import NS, Interleaving, World, memory, open_world, payloads


class CountingEmbedder(HashingEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Sequence[str]] = []

    async def embed_documents(self, texts: Sequence[str]) -> list[Embedding]:
        self.calls.append(texts)
        return await super().embed_documents(texts)


async def many(world: World, *drafts: MemoryDraft) -> list[Created | LotError]:
    return await world.services.memories.memories.create_many(NS, drafts)


def created(results: Sequence[Created | LotError]) -> list[bool | type[LotError]]:
    return [one.created if isinstance(one, Created) else type(one) for one in results]


def id_of(result: Created | LotError) -> str:
    assert isinstance(result, Created)
    return result.memory.memory_id


async def edit(world: World, memory_id: str, **named: Any) -> None:
    fresh = replace(memory().content, **named)
    change = MemoryEdit(fresh, frozenset(named))
    await world.services.memories.memories.update(NS, memory_id, change, "")


# --- a batch ----------------------------------------------------------------------------------


async def test_each_item_is_answered_by_itself(world: World) -> None:
    await many(world, memory("there", memory_id="there"))
    results = await many(
        world,
        memory("one"),
        memory("two", memory_id="mine"),
        memory("another", memory_id="there"),
        memory("there", memory_id="there"),
        memory("late", expire_time=world.clock.now()),
        memory("three", request_id="r"),
        memory("four", request_id="r"),
        memory("three", request_id="r"),
        memory("two", memory_id="mine"),
    )
    assert created(results) == [
        True,
        True,
        MemoryIdInUseError,
        False,
        RequestInvalidError,
        True,
        RequestIdReusedError,
        True,
        False,
    ]
    assert id_of(results[5]) == id_of(results[7])
    said = sorted(row["content"] for row in await payloads(world, MEMORIES))
    assert said == ["one", "there", "three", "two"]


async def test_a_batch_takes_one_embedding_and_one_write() -> None:
    embedder = CountingEmbedder()
    world = await open_world(embedder=embedder)
    results = await many(world, *(memory(f"fact {n}") for n in range(500)))
    assert created(results) == [True] * 500
    assert [len(call) for call in embedder.calls] == [500]
    world.clock.advance(1)
    again = [memory(f"fact {n}", memory_id=id_of(one)) for n, one in enumerate(results)]
    assert created(await many(world, *again)) == [False] * 500
    assert len(embedder.calls) == 1, "what is there is not embedded anew"


async def test_long_contents_are_written_a_few_at_a_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_creator, "_INSERTED", 12)
    results = await many(world, *(memory(f"{n} " + "word " * 1500) for n in range(7)), memory("s"))
    assert created(results) == [True] * 8
    assert len(await payloads(world, MEMORIES)) == 8


async def test_a_batch_again_by_its_requests_answers_alike(world: World) -> None:
    batch = [memory(f"fact {n}", request_id=f"r{n}", ttl=60_000_000) for n in range(3)]
    first = await many(world, *batch)
    world.clock.advance(5)
    assert await many(world, *batch) == first
    await world.services.memories.memories.delete(NS, id_of(first[1]), "")
    assert created(await many(world, *batch)) == [True, MemoryNotFoundError, True]
    assert len(await payloads(world, MEMORIES)) == 2


async def test_a_memory_edited_since_answers_a_late_retry_as_it_stands(world: World) -> None:
    await many(world, memory("one", memory_id="mine", request_id="r"))
    await edit(world, "mine", content="edited")
    [again] = await many(world, memory("one", memory_id="mine", request_id="r"))
    assert isinstance(again, Created)
    assert (again.created, again.memory.content.content) == (True, "edited")
    assert created(await many(world, memory("one", memory_id="mine"))) == [MemoryIdInUseError]


# --- stored once ------------------------------------------------------------------------------


async def test_the_same_content_is_stored_once_where_that_is_asked_for(world: World) -> None:
    first, again, other, code = await many(
        world,
        memory("The port is 8080", unique=True, tags=("a",), importance=0.9),
        memory(" The  port\nis 8080", unique=True, tags=("b",), source_uri="file:x"),
        memory("The port is 8081", unique=True),
        memory("The port is 8080", unique=True, kind=MemoryKind.FACT),
    )
    assert created([first, again, other, code]) == [True, False, True, True]
    assert id_of(again) == id_of(first)
    assert isinstance(again, Created)
    assert again.unchanged_fields == ("tags", "source_uri"), "what was not given does not differ"
    assert again.memory.content.tags == ("a",)
    assert len(await payloads(world, MEMORIES)) == 3


async def test_white_space_tells_code_apart(world: World) -> None:
    results = await many(
        world,
        memory("if x:\n  f()\ng()", unique=True, language="python"),
        memory("if x:\n  f()\n  g()", unique=True, language="python"),
    )
    assert created(results) == [True, True]


async def test_one_that_was_edited_is_the_same_no_more(world: World) -> None:
    [first] = await many(world, memory("one", unique=True))
    await edit(world, id_of(first), content="edited")
    second, again = await many(world, memory("one", unique=True), memory("one", unique=True))
    assert created([second, again]) == [True, False]
    assert id_of(first) != id_of(second) == id_of(again)
    await world.services.memories.memories.delete(NS, id_of(first), "")
    assert created(await many(world, memory("one", unique=True))) == [True]


async def test_it_goes_by_content_or_by_id(world: World) -> None:
    [refused] = await many(world, memory("one", unique=True, memory_id="mine"))
    assert isinstance(refused, RequestInvalidError)


async def test_a_repeat_of_one_stored_once_is_told_from_another_request(world: World) -> None:
    [first] = await many(world, memory("one", unique=True, request_id="r"))
    [other] = await many(world, memory("one", unique=True, request_id="s"))
    for _ in range(2):
        assert created(await many(world, memory("one", unique=True, request_id="r"))) == [True]
        assert created(await many(world, memory("one", unique=True, request_id="s"))) == [False]
    assert id_of(first) == id_of(other)


@pytest.mark.parametrize("seed", range(5))
async def test_of_many_at_once_one_is_stored(seed: int) -> None:
    clock = FixedClock()
    world = await open_world(Interleaving(InMemoryStore(clock), seed), clock)
    another = world.another_process()
    results = await asyncio.gather(
        *(many(one, memory("one", unique=True)) for one in [world, another] * 5)
    )
    assert sorted(map(str, created([one for [one] in results]))) == ["False"] * 9 + ["True"]
    assert len(await payloads(world, MEMORIES)) == 1
