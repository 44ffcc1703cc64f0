from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lot_grpc.storage.edge import EdgeStore
from tests.contract.clock import FixedClock
from tests.storage.samples import SPEC


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
async def store(folder: Path, clock: FixedClock) -> AsyncIterator[EdgeStore]:
    opened = EdgeStore(folder, clock, min_free_bytes=0)
    await opened.ensure_collections([SPEC])
    yield opened
    await opened.close()
