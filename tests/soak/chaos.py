"""What goes wrong when: it follows from a seed and a duration."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

Action = Literal["cut", "stall", "kill client", "stop server", "kill server"]

SERVERS_UNTIL = 0.4
"""The part of the run in which the server is stopped; later it stays up, for memory's sake."""

_SERVER_EVERY = 25.0
_EVERY: dict[Action, float] = {"cut": 2.0, "stall": 5.0, "kill client": 5.0}
"""Mean seconds between two."""


@dataclass(frozen=True, order=True)
class Blow:
    """Something that goes wrong, so many seconds after the start.

    ``how`` in [0, 1) says which and how: the same number has the same effect.
    """

    at: float
    action: Action
    how: float


def schedule(seed: int, seconds: float) -> list[Blow]:
    """All blows in order. The server is stopped and killed at least once each."""
    dice = random.Random(seed)
    blows = []
    for action, mean in _EVERY.items():
        at = dice.uniform(0.5, 1.5) * mean
        while at < seconds:
            blows.append(Blow(at, action, dice.random()))
            at += dice.uniform(0.4, 1.6) * mean
    window = seconds * SERVERS_UNTIL
    count = max(2, int(window / _SERVER_EVERY))
    kinds: list[Action] = ["stop server", "kill server"]
    kinds += [dice.choice(kinds[:2]) for _ in range(count - 2)]
    dice.shuffle(kinds)
    for place, action in enumerate(kinds):
        at = window * (place + dice.uniform(0.5, 1.0)) / count
        blows.append(Blow(at, action, dice.random()))
    return sorted(blows)
