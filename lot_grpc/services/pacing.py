"""Long work on the event loop: in pieces, so that other calls go on meanwhile."""

from __future__ import annotations

import asyncio
import time

_LONGEST_SECONDS = 0.005
"""How long a piece may take before others go first. Well under the 20 ms that long calls may hold
the loop, since the piece that is at work is finished first."""

_LONGEST_REST_SECONDS = 0.02
"""A turn in which something was waited for looks longer than it was."""


class Pace:
    """Gives way once its turn has lasted; ``await pace.give_way()`` between small pieces.

    ``rest``: how long it then waits, as a multiple of its turn. 0 takes the next turn as soon as
    all that is ready had one; work that may take its time leaves more to others.
    """

    def __init__(self, rest: float = 0.0) -> None:
        self._rest = rest
        self._since = time.perf_counter()

    async def give_way(self) -> None:
        """Let others go first, if this turn has lasted long enough."""
        turn = time.perf_counter() - self._since
        if turn >= _LONGEST_SECONDS:
            await asyncio.sleep(min(self._rest * turn, _LONGEST_REST_SECONDS))
            self._since = time.perf_counter()
