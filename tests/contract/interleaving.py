"""A client whose every call lets the others go first, as a network would."""

from __future__ import annotations

import asyncio
import random
from typing import Any


class InterleavingClient:
    """qdrant-client's memory mode never waits, so without this no two calls would ever meet."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._rng = random.Random(7)

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)

        async def interleaved(*arguments: Any, **named: Any) -> Any:
            await self._wait()
            result = await call(*arguments, **named)
            await self._wait()
            return result

        return interleaved

    async def _wait(self) -> None:
        for _ in range(self._rng.randrange(4)):
            await asyncio.sleep(0)
