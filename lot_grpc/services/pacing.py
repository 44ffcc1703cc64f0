"""Long work on the event loop: in pieces, so that other calls go on meanwhile."""

from __future__ import annotations

import asyncio
import time

_LONGEST_SECONDS = 0.005
"""How long a piece may take before others go first. Well under the 20 ms that long calls may hold
the loop, since the piece that is at work is finished first."""


class Pace:
    """Gives way once its turn has lasted; ``await pace.give_way()`` between small pieces."""

    def __init__(self) -> None:
        self._since = time.perf_counter()

    async def give_way(self) -> None:
        """Let others go first, if this turn has lasted long enough."""
        if time.perf_counter() - self._since >= _LONGEST_SECONDS:
            await asyncio.sleep(0)
            self._since = time.perf_counter()
