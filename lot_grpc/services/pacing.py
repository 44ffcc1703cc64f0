"""Waiting: long work in pieces, so that other calls go on meanwhile, and a pause before a retry."""

from __future__ import annotations

import asyncio
import random
import time

_LONGEST_SECONDS = 0.005
"""How long a piece may take before others go first. Well under the 20 ms that long calls may hold
the loop, since the piece that is at work is finished first."""

_LONGEST_PAUSE = 0.2


class Pace:
    """Gives way once its turn has lasted; ``await pace.give_way()`` between small pieces."""

    def __init__(self) -> None:
        self._since = time.perf_counter()

    async def give_way(self) -> None:
        """Let others go first, if this turn has lasted long enough."""
        if time.perf_counter() - self._since >= _LONGEST_SECONDS:
            await asyncio.sleep(0)
            self._since = time.perf_counter()


async def pause_before_retry(attempt: int) -> None:
    """Wait a little, at random and longer each time, before the next compare-and-set."""
    await asyncio.sleep(random.uniform(0, min(_LONGEST_PAUSE, 0.001 * 2**attempt)))  # noqa: S311
