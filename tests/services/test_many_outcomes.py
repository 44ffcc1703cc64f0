"""A thousand outcomes from eight clients at once, and from two processes: counts equal the log."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lot_grpc.domain.outcomes import Outcome
from lot_grpc.services.resources import REGISTRY
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.storage.qdrant import QdrantStore
from tests.contract.clock import FixedClock
from tests.services.invariants import check_invariants
from tests.services.world import NS, Interleaving, SharedStore, World, open_world, outcome, save

SERVER_URL = os.environ.get("LOT_TEST_QDRANT_URL")
CLIENTS, PATTERNS = 8, 5
KINDS = (Outcome.SUCCESS, Outcome.FAILURE, Outcome.PARTIAL)


@pytest.fixture(params=["own", "shared", *(["server"] if SERVER_URL else [])])
async def processes(request: Any, tmp_path: Path) -> AsyncIterator[list[World]]:
    """One process over an embedded store, or two over a store that they share."""
    clock = FixedClock()
    store: Any
    if request.param == "own":
        store = EdgeStore(tmp_path / "data", clock, min_free_bytes=0)
    elif request.param == "shared":
        store = Interleaving(SharedStore(clock))
    else:
        assert SERVER_URL is not None
        store = QdrantStore(clock, SERVER_URL, prefix=f"lot_test_{uuid.uuid4().hex}_")
    world = await open_world(store, clock)
    yield [world] if request.param == "own" else [world, world.another_process()]
    if request.param == "server":
        for spec in REGISTRY.collection_specs(384):
            await store._client.delete_collection(store._name(spec))
    await store.close()


@pytest.mark.parametrize("by_request", [False, True])
async def test_counts_equal_the_log_exactly(processes: list[World], by_request: bool) -> None:
    world = processes[0]
    count = 1_000 if len(processes) == 1 else 200
    ids = [(await save(world, f"way {n} to do it")).pattern.pattern_id for n in range(PATTERNS)]
    told: dict[str, Counter[Outcome]] = {one: Counter() for one in ids}

    async def client(number: int) -> None:
        process = processes[number % len(processes)]
        for n in range(number, count, CLIENTS):
            pattern_id, kind = ids[n * 7 % PATTERNS], KINDS[n % 3]
            told[pattern_id][kind] += 1
            request_id = f"r{n}" if by_request else ""
            for _ in range(1 + (by_request and n % 4 == 0)):  # every fourth is sent twice
                await outcome(
                    process, pattern_id, outcome=kind, query=f"q{n % 3}", request_id=request_id
                )

    await asyncio.gather(*(client(number) for number in range(CLIENTS)))
    for pattern_id in ids:
        counted = (await world.services.patterns.patterns.get(NS, pattern_id)).outcomes
        assert counted.success_count == told[pattern_id][Outcome.SUCCESS]
        assert counted.failure_count == told[pattern_id][Outcome.FAILURE]
        assert counted.partial_count == told[pattern_id][Outcome.PARTIAL]
    await check_invariants(world.store, NS)
