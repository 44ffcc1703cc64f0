from __future__ import annotations

import pytest

from tests.services.world import World, open_world


@pytest.fixture
async def world() -> World:
    """One process over an empty store."""
    return await open_world()
