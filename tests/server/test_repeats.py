"""A call that its caller gave up and makes again: the work is done once, and both are answered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from google.protobuf.message import Message

from lot_grpc.embedding.fastembed import FastembedEmbedder
from lot_grpc.pb.lot.v1.memory_pb2 import Memory
from lot_grpc.pb.lot.v1.memory_service_pb2 import CreateMemoryRequest
from lot_grpc.ports import Embedding, EmbeddingContract
from lot_grpc.services.records.collections import META, REQUESTS
from lot_grpc.services.resources import REGISTRY
from lot_grpc.testing.in_memory import InMemoryStore
from lot_grpc.work import Work, current_work
from tests.contract.clock import FixedClock
from tests.embedding.conftest import GatedEncoder
from tests.server.examples import EXAMPLES, example, method_of, path_of, prepare
from tests.server.service import SERVICES, Lot, serving
from tests.server.wire import until


class HeldStore(InMemoryStore):
    """A store whose writes wait while ``free`` is not set."""

    def __init__(self, clock: FixedClock) -> None:
        super().__init__(clock)
        self.free = asyncio.Event()
        self.free.set()

    async def insert(self, *given: Any) -> Any:
        await self.free.wait()
        return await super().insert(*given)

    async def put(self, *given: Any) -> Any:
        await self.free.wait()
        return await super().put(*given)

    async def replace(self, *given: Any, **named: Any) -> Any:
        await self.free.wait()
        return await super().replace(*given, **named)

    async def update(self, *given: Any, **named: Any) -> Any:
        await self.free.wait()
        return await super().update(*given, **named)


def _adding() -> Iterator[tuple[str, str]]:
    """The unary calls that take a request id, and the field of the items that do, if they do."""
    for service in SERVICES.values():
        for method in service.methods:
            fields = method.input_type.fields_by_name
            items = fields.get("items")
            name = f"{service.name}.{method.name}"
            if "request_id" in fields:
                yield name, ""
            elif items is not None and "request_id" in items.message_type.fields_by_name:
                yield name, "items"


ADDING = dict(_adding())


def test_every_call_that_adds_takes_a_request_id():
    assert len(ADDING) == 21
    assert ADDING.keys() <= EXAMPLES.keys()


async def _rows(lot: Lot, store: HeldStore) -> dict[str, int]:
    beside = {META, REQUESTS}
    names = [spec.name for spec in REGISTRY.collection_specs(1) if spec.name not in beside]
    return {name: await store.count(name, lot.namespace) for name in names}


def _request(lot: Lot, name: str, request_id: str) -> Message:
    request = example(name, lot.namespace)
    for item in request.items if ADDING[name] else [request]:
        item.request_id = request_id
    return request  # type: ignore[no-any-return]


@pytest.mark.parametrize("request_id", ["r", ""], ids=["named", "unnamed"])
@pytest.mark.parametrize("name", ADDING)
async def test_a_repeat_of_a_call_that_is_still_carried_out_finds_it(name, request_id):
    clock = FixedClock()
    store = HeldStore(clock)
    async with serving(store, clock=clock) as lot:
        assert lot.server is not None
        held = lot.server._inflight._calls
        await prepare(lot)
        made = method_of(name).output_type._concrete_class.FromString

        async def call(on: Lot, seconds: float) -> Any:
            raw = _request(on, name, request_id).SerializeToString()
            return made(await on.raw(path_of(name))(raw, timeout=seconds))

        store.free.clear()
        given_up = asyncio.create_task(call(lot, 30))
        await until(lambda: any(one.work for one in held))
        given_up.cancel()
        await until(lambda: all(one.abandoned for one in held))
        again = asyncio.create_task(call(lot, 30))
        await until(lambda: len(held) == 2 and all(one.work for one in held))
        store.free.set()
        answer = await again
        once = await _rows(lot, store)
        if request_id:
            assert _ids(await call(lot, 30)) == _ids(answer)
            assert await _rows(lot, store) == once
        other = lot.on("other")
        await prepare(other)
        await call(other, 30)
        assert await _rows(other, store) == once


def _ids(answer: Any) -> list[tuple[str, str]]:
    """The ids that an answer gives, at any depth."""
    found = []
    for field, value in answer.ListFields():
        if field.name.endswith("_id") and isinstance(value, str):
            found.append((field.name, value))
        elif isinstance(value, Message):
            found += _ids(value)
    return found


async def test_two_callers_who_both_wait_add_two():
    async with serving() as lot:
        memory = {"content": "the same"}
        made = await asyncio.gather(*(lot.memories.CreateMemory(memory=memory) for _ in range(3)))
        assert len({one.memory.memory_id for one in made}) == 3


class SpyEmbedder(FastembedEmbedder):
    """Remembers the work that each call is part of."""

    works: list[Work | None]

    async def embed_documents(self, texts: Sequence[str]) -> list[Embedding]:
        self.works.append(current_work())
        return await super().embed_documents(texts)


async def test_a_save_goes_before_writes_whose_callers_have_left():
    encoder = GatedEncoder()
    contract = EmbeddingContract("fake", 2, "cosine", "query: ", "", "", "")
    embedder = SpyEmbedder(encoder, contract, threads=1, cache_entries=0)
    works: list[Any] = []
    embedder.works = works
    async with serving(embedder=embedder) as lot:

        async def save(text: str) -> None:
            request = CreateMemoryRequest(memory=Memory(content=text))
            create = lot.raw(path_of("MemoryService.CreateMemory"))
            await create(request.SerializeToString(), timeout=30)

        leaving = [asyncio.create_task(save(f"left {number}")) for number in range(30)]
        await until(lambda: len(works) == 30)
        for caller in leaving:
            caller.cancel()
        await until(lambda: not any(work.waiting for work in works))
        saved = asyncio.create_task(save("awaited"))
        await until(lambda: len(works) == 31)
        encoder.gate.set()
        await saved
        assert encoder.seen.index("awaited") == 1  # behind the one that the model was at
        await until(lambda: len(encoder.seen) == 31)  # and none is dropped
    await embedder.close()
