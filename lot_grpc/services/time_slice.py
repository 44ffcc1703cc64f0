"""Cooperative yielding: long work in slices, so that other calls continue."""

from __future__ import annotations

import asyncio
import time

_LONGEST_SECONDS = 0.005
"""How long a piece may take before others go first. Well under the 20 ms that long calls may hold
the loop, since the piece that is at work is finished first."""

_SHORT_SECONDS = 0.002
"""The same of work that rests, and of work in a thread."""

_PAUSE_SECONDS = 0.001

_LONGEST_REST_SECONDS = 0.02
"""A turn in which something was waited for looks longer than it was."""


class ThreadTimeSlice:
    """For work in a thread, which shares the interpreter with the event loop.

    ``pause()`` between small pieces lets go of the interpreter every few ms, so that the loop need
    not wait until the thread is made to.
    """

    def __init__(self) -> None:
        self._since = time.perf_counter()

    def pause(self) -> None:
        """Let others go first, if this turn has lasted long enough."""
        if time.perf_counter() - self._since >= _SHORT_SECONDS:
            time.sleep(_PAUSE_SECONDS)
            self._since = time.perf_counter()


class TimeSlice:
    """Gives way once its turn has lasted; ``await time_slice.give_way()`` between small pieces.

    ``rest``: how long it then waits, as a multiple of its turn. 0 takes the next turn as soon as
    all that is ready had one. For work of many seconds that is not enough: another call comes back
    to the loop several times and would wait for a turn each time. So such work takes shorter turns
    and rests as long as each lasted (1).
    """

    def __init__(self, rest: float = 0.0) -> None:
        self._rest = rest
        self._longest = _SHORT_SECONDS if rest else _LONGEST_SECONDS
        self._since = time.perf_counter()

    async def give_way(self) -> None:
        """Let others go first, if this turn has lasted long enough."""
        turn = time.perf_counter() - self._since
        if turn >= self._longest:
            await asyncio.sleep(min(self._rest * turn, _LONGEST_REST_SECONDS))
            self._since = time.perf_counter()
