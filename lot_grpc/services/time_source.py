"""The time for the services: the clock, and sort keys in order of creation."""

from __future__ import annotations

from lot_grpc.ports import Clock, Micros


class TimeSource:
    """Hands out creation times and sort keys.

    A sort key is the time of creation in microseconds, bumped until it is unique in this process;
    across processes page tokens carry the ids at their edge (``services.paging``).
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_key = 0

    def now(self) -> Micros:
        """The current time."""
        return self._clock.now()

    def sort_key(self, after: int = 0) -> int:
        """The next sort key, greater than ``after``, even if our clock is behind that."""
        self._last_key = max(self._clock.now(), self._last_key + 1, after + 1)
        return self._last_key
