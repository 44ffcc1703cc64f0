"""Long work on the event loop: in pieces, so that other calls go on meanwhile."""

from __future__ import annotations

import asyncio
import time

_LONGEST_SECONDS = 0.005
"""How long a piece may take before others go first. Well under the 20 ms that long calls may hold
the loop, since the piece that is at work is finished first."""


_BREATH_SECONDS = 0.002
_PAUSE_SECONDS = 0.001


class Breath:
    """For work in a thread, which shares the interpreter with the event loop.

    ``pause()`` between small pieces lets go of the interpreter every few ms, so that the loop need
    not wait until the thread is made to.
    """

    def __init__(self) -> None:
        self._since = time.perf_counter()

    def pause(self) -> None:
        """Let others go first, if this turn has lasted long enough."""
        if time.perf_counter() - self._since >= _BREATH_SECONDS:
            time.sleep(_PAUSE_SECONDS)
            self._since = time.perf_counter()


class Pace:
    """Gives way once its turn has lasted; ``await pace.give_way()`` between small pieces."""

    def __init__(self) -> None:
        self._since = time.perf_counter()

    async def give_way(self) -> None:
        """Let others go first, if this turn has lasted long enough."""
        if time.perf_counter() - self._since >= _LONGEST_SECONDS:
            await asyncio.sleep(0)
            self._since = time.perf_counter()
