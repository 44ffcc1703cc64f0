"""Chooses whether a text that is embedded alone runs on one thread or several.

Several threads are faster only if their cores are idle and close to each other. The process can
see neither: other processes take cores, and a virtual machine may move between cores. Measured on
two cores: a query of 24 tokens takes 2.3 ms on one thread; on two threads it takes 1.65 ms for some
seconds and 3.0 ms for the next few. So the way that was faster recently is used.
"""

from __future__ import annotations

import statistics
from collections import deque

_REMEMBERED = 5
_TRY_AFTER, _TRY_AFTER_AT_MOST = 16, 128
"""Texts until one is run the other way as a trial; doubled after each trial that is not faster."""


class ThreadChoice:
    """Compares the time per token of one trial with the median of the last five texts.

    May be called from several threads; losing a measurement does no harm.
    """

    def __init__(self) -> None:
        self._several = True
        self._recent: deque[float] = deque(maxlen=_REMEMBERED)
        self._interval = _TRY_AFTER
        self._until_trial = 2

    def several(self) -> bool:
        """Whether the next text should run on several threads."""
        self._until_trial -= 1
        return self._several != (self._until_trial <= 0)

    def record(self, *, several: bool, seconds: float, tokens: int) -> None:
        """Record how long a text of ``tokens`` tokens took."""
        time = seconds / tokens
        if several == self._several:
            self._recent.append(time)
            return
        if self._recent and time < statistics.median(self._recent):
            self._several = several
            self._recent.clear()
            self._recent.append(time)
            self._interval = _TRY_AFTER
        else:
            self._interval = min(2 * self._interval, _TRY_AFTER_AT_MOST)
        self._until_trial = self._interval
