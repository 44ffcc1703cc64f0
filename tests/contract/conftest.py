from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lot_grpc.ports import VectorStore
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.storage.qdrant import QdrantStore
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.contract.generated import LOG, THINGS
from tests.contract.interleaving import InterleavingClient
from tests.contract.known_gaps import KNOWN_GAPS

SERVER_URL = os.environ.get("LOT_TEST_QDRANT_URL")
BACKENDS = ["in_memory", "edge", "qdrant_memory"] + (["qdrant_server"] if SERVER_URL else [])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "category(name): an ability that a store may lack")


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    for marker in request.node.iter_markers("category"):
        reason = KNOWN_GAPS[name].get(marker.args[0])
        if reason:
            pytest.skip(f"{name} cannot do {marker.args[0]}: {reason}")
    return name


@pytest.fixture
async def store(backend: str, clock: FixedClock, tmp_path: Path) -> AsyncIterator[VectorStore]:
    """An open, empty store of each kind with the two collections."""
    opened: VectorStore
    match backend:
        case "in_memory":
            opened = InMemoryStore(clock)
        case "edge":
            opened = EdgeStore(tmp_path / "data", clock, min_free_bytes=0)
        case "qdrant_memory":
            opened = QdrantStore(clock, location=":memory:")
            opened._client = InterleavingClient(opened._client)  # type: ignore[assignment]
        case _:
            assert SERVER_URL is not None
            opened = QdrantStore(clock, SERVER_URL, prefix=f"lot_test_{uuid.uuid4().hex}_")
    await opened.ensure_collections([THINGS, LOG])
    yield opened
    if backend == "qdrant_server":
        assert isinstance(opened, QdrantStore)
        for spec in (THINGS, LOG):
            await opened._client.delete_collection(opened._collections[spec.name].name)
    await opened.close()


@pytest.fixture
async def oracle(clock: FixedClock) -> VectorStore:
    """The reference, with the same clock."""
    reference = InMemoryStore(clock)
    await reference.ensure_collections([THINGS, LOG])
    return reference
