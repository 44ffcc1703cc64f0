"""Measures when a memory of 1 MB is acknowledged and indexed, and how much this slows recalls."""

from __future__ import annotations

import asyncio
import time
from itertools import count as counter
from pydoc_data.topics import topics
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from lot_grpc.pb.lot.v1 import memory_pb2, memory_service_pb2
from tests.bench.agents import recall_on
from tests.bench.processes import BenchError, Client, Server
from tests.bench.report import Figure, median, milliseconds, percentile

SIZE = 1_000_000
WINDOW_SECONDS = 10.0
DEADLINE = 180.0
_LOOK_SECONDS = 0.25
_MEMORIES = "/lot.v1.MemoryService/"


def english(number: int) -> str:
    """``SIZE`` characters of English; texts of different numbers have no passage in common."""
    paragraphs = [part for topic in topics.values() for part in topic.split("\n\n")]
    written: list[str] = []
    length = 0
    for place in counter():
        written.append(f"({number}.{place}) {paragraphs[place % len(paragraphs)]}")
        length += len(written[-1]) + 2
        if length > SIZE:
            break
    return "\n\n".join(written).encode()[:SIZE].decode(errors="ignore")


async def recalls(channel: Any, path: str, first: int, seconds: float) -> dict[str, Any]:
    """Distinct recalls of one client for ``seconds``."""
    recalling = asyncio.create_task(recall_on(channel.unary_unary(path), first, 1))
    await asyncio.sleep(seconds)
    recalling.cancel()
    return {"recalls": [taken for _, taken in await recalling]}


async def create(channel: Any, path: str, number: int, first: int) -> dict[str, Any]:
    """Create a memory of 1 MB and wait until it is indexed, while one client recalls."""
    request = memory_service_pb2.CreateMemoryRequest(
        memory=memory_pb2.Memory(content=english(number)), memory_id=f"bench-{number}"
    ).SerializeToString()
    look = memory_service_pb2.ListMemoriesRequest(
        page_size=1, read_mask=FieldMask(paths=["indexing"])
    ).SerializeToString()
    recalling = asyncio.create_task(recall_on(channel.unary_unary(path), first, 1))
    started = time.perf_counter()
    await channel.unary_unary(f"{_MEMORIES}CreateMemory")(request, timeout=DEADLINE)
    acknowledged = time.perf_counter() - started
    listing = channel.unary_unary(f"{_MEMORIES}ListMemories")
    while time.perf_counter() - started < DEADLINE:
        raw = await listing(look, timeout=DEADLINE)
        [memory] = memory_service_pb2.ListMemoriesResponse.FromString(raw).memories
        if memory.indexing == memory_pb2.INDEXING_STATE_COMPLETE:
            break
        await asyncio.sleep(_LOOK_SECONDS)
    else:
        raise RuntimeError("the memory was not indexed in time")
    complete = time.perf_counter() - started
    recalling.cancel()
    taken = [taken for _, taken in await recalling]
    return {"acknowledged": acknowledged, "complete": complete, "recalls": taken}


def measure(client: Client, server: Server, rounds: int) -> list[Figure]:
    """In each round, recall alone, then while a memory is created and indexed."""
    alone: list[float] = []
    beside: list[float] = []
    made: list[dict[str, Any]] = []
    for number in range(-1, rounds):
        first = 7_000_000 + 200_000 * (number + 1)
        address = server.address
        asked = {"address": address, "first": first, "seconds": WINDOW_SECONDS}
        before = client.do("recalls_for", **asked)["recalls"]
        if number < 0:  # warm-up
            continue
        later = first + 100_000
        made.append(client.do("create_long_memory", address=address, number=number, first=later))
        alone += before
        beside += made[-1]["recalls"]
    if not alone or not beside:
        raise BenchError("no recall was answered")
    acknowledged = median([one["acknowledged"] for one in made])
    complete = median([one["complete"] for one in made])
    p99, p99_alone = percentile(beside, 0.99), percentile(alone, 0.99)
    ratio = p99 / p99_alone
    medians = f"p50 {milliseconds(median(beside))}, {milliseconds(median(alone))} without"
    return [
        Figure(
            "CreateMemory, 1 MB, acknowledged, while one client recalls",
            f"{acknowledged:.2f} s",
            "≤ 1 s",
            acknowledged <= 1,
            values={"seconds": acknowledged},
        ),
        Figure(
            "CreateMemory, 1 MB, indexed, while one client recalls",
            f"{complete:.1f} s",
            values={"seconds": complete},
        ),
        Figure(
            "RecallPatterns, one client, while 1 MB is indexed",
            f"p99 {ratio:.2f} x without",
            "≤ 2",
            ratio <= 2,
            f"p99 {milliseconds(p99)}, {milliseconds(p99_alone)} without; {medians}",
            {"ratio": ratio, "p99": p99, "p99_alone": p99_alone},
        ),
    ]
