"""Texts of more than eight passages are long, and failures are repeated at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lot_grpc.services import indexer
from lot_grpc.services.memories import indexing as indexing_module
from lot_grpc.storage.edge import EdgeStore
from tests.contract.clock import FixedClock
from tests.services.long_memories import Meanwhile
from tests.services.world import World, open_world


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
