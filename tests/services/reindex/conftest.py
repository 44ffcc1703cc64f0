"""Stores to be reindexed, and batches so small that there are several."""

from __future__ import annotations

from pathlib import Path

import pytest

from lot_grpc.services.reindex import reindexer as reindexing
from lot_grpc.services.reindex import vector_rebuild as rebuilding
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.reindex.switching import PLACES, Place
from tests.services.world import Interleaving


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuilding, "_BATCH", 5)
    monkeypatch.setattr(reindexing, "_PROGRESS_SECONDS", 0.001)


@pytest.fixture(params=[*PLACES, pytest.param("edge", marks=pytest.mark.exhaustive)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    clock = FixedClock()
    match request.param:
        case "edge":
            return Place(EdgeStore(tmp_path / "data", clock, min_free_bytes=0), clock)
        case "interleaving":
            return Place(Interleaving(InMemoryStore(clock)), clock)
        case _:
            return Place(InMemoryStore(clock), clock)
