"""How many threads a text that is alone runs on: one or several, whichever was faster lately.

Several are only faster if their cores are idle and near each other. Neither can be seen from here:
other processes take cores, and a virtual machine may move its own between places. Measured on one
of two cores: a query of 24 tokens takes 2.3 ms on one thread; on two it takes 1.65 ms for some
seconds and 3.0 for the next ones.
"""

from __future__ import annotations

import statistics
from collections import deque

_REMEMBERED = 5
_TRY_AFTER, _TRY_AFTER_AT_MOST = 16, 128
"""Texts until one runs the other way, to measure that; twice as many after each time in vain."""


class ThreadChoice:
    """Chooses by time per token: that of one trial against the median of the last five texts.

    May be called from several threads; a lost measurement does no harm.
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
        """Tell how long a text of so many tokens took."""
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
