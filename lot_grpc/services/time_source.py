"""Time as the services use it: now, and keys that order what is created."""

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
        """The clock's now."""
        return self._clock.now()

    def sort_key(self, after: int = 0) -> int:
        """The next sort key. It is behind ``after``, whatever the clock of who made that says."""
        self._last_key = max(self._clock.now(), self._last_key + 1, after + 1)
        return self._last_key
