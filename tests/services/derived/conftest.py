"""Stores of two kinds, and batches so small that there are several."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lot_grpc.ports import VectorStore
from lot_grpc.services import derived_data
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.derived.old_stores import Make


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived_data, "_BATCH", 4)


@pytest.fixture
async def make(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Make]:
    """Makes stores of one kind, each a new one."""
    numbers = itertools.count()
    opened: list[VectorStore] = []

    def new(clock: FixedClock) -> VectorStore:
        folder = tmp_path / f"data-{next(numbers)}"
        edge = getattr(request, "param", "") == "edge"
        store = EdgeStore(folder, clock, min_free_bytes=0) if edge else InMemoryStore(clock)
        opened.append(store)
        return store

    yield new
    for store in opened:
        await store.close()
