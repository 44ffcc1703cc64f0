"""The schedule of a replay."""

from __future__ import annotations

_MICROS = 1_000_000


class Schedule:
    """The times of a replay, measured from the first event that is sent.

    ``speed``: 1 as it happened, 2 twice as fast, 0 without any waiting.
    """

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._first: int | None = None

    def due(self, event_time: int) -> float:
        """Seconds after the first event at which one of ``event_time`` (microseconds) is due.

        The first call is for the first event. Never less than 0: an event with an earlier time than
        the first is due at once. May be infinite at a speed near 0.
        """
        if self._first is None:
            self._first = event_time
        if not self._speed:
            return 0.0
        return max(0.0, (event_time - self._first) / _MICROS / self._speed)
