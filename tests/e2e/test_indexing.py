"""SIGKILL while a long memory is indexed: the next start resumes it."""

from __future__ import annotations

import asyncio
import json
import random

from lot_grpc.pb.lot.v1 import memory_pb2
from tests.e2e.process import PATIENCE, run
from tests.server.service import Lot, reaching

PENDING, COMPLETE = memory_pb2.INDEXING_STATE_PENDING, memory_pb2.INDEXING_STATE_COMPLETE
LAST_WORD = "zanzibarite"


def long_content(seed: int) -> str:
    """A few hundred passages: seconds of work for the model."""
    dice = random.Random(seed)
    words = ("ledger", "harbour", "barrels", "rope", "tar", "sails", "pay", "men")
    sentences = [f"Entry {seed}.{n}: {' '.join(dice.choices(words, k=14))}." for n in range(1_500)]
    return " ".join([*sentences, LAST_WORD])


async def state(lot: Lot) -> int:
    return int((await lot.memories.GetMemory(memory_id="m")).memory.indexing)


async def test_an_indexing_that_is_killed_is_resumed_by_the_next_start(serve, data):
    dice = random.Random(7)
    server = serve(data)
    async with reaching(server.address) as lot:
        namespace = lot.namespace
        created = await lot.memories.CreateMemory(
            memory={"content": long_content(1)}, memory_id="m", request_id="r"
        )
        assert created.memory.indexing == PENDING
        found = await lot.memories.SearchMemories(query=LAST_WORD)
        assert [hit.memory.memory_id for hit in found.hits] == ["m"]
    for _ in range(3):
        await asyncio.sleep(dice.uniform(0, 1))
        server.kill()
        server = serve(data)
    async with reaching(server.address) as lot:
        lot = lot.on(namespace)
        assert (await lot.memories.GetMemory(memory_id="m")).memory.content == long_content(1)
        edited = await lot.memories.UpdateMemory(
            memory_id="m", memory={"content": long_content(2)}, etag=created.memory.etag
        )
        assert edited.memory.indexing == PENDING
    await asyncio.sleep(dice.uniform(0, 1))
    server.kill()
    checked = json.loads(run(data, "check", "--json").stdout)
    [indexing] = [one["detail"] for one in checked["checks"] if one["name"] == "indexing"]
    assert indexing == "memories still to be indexed: 1"
    server = serve(data)
    async with reaching(server.address) as lot:
        lot = lot.on(namespace)
        repeated = await lot.memories.CreateMemory(
            memory={"content": long_content(1)},
            memory_id="m",
            request_id="r",
            wait_for_index=True,
            timeout=PATIENCE,
        )
        assert repeated.memory.indexing == COMPLETE
        assert repeated.memory.etag == edited.memory.etag
        hits = (await lot.memories.SearchMemories(query="the pay of the men on the ropes")).hits
        assert hits[0].memory.content == long_content(2)
        assert hits[0].passage.text in long_content(2)
        assert await state(lot) == COMPLETE
    assert server.stop() == 0
