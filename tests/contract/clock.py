"""A clock that stands still until it is moved."""

from lot_grpc.ports import Micros

SECOND: Micros = 1_000_000


class FixedClock:
    def __init__(self, now: Micros = 1_700_000_000 * SECOND) -> None:
        self._now = now

    def now(self) -> Micros:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += int(seconds * SECOND)
