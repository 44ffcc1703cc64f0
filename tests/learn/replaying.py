"""The replay: ask, take what comes first, tell how it went; now and then look how good it would be.

How good is the expected share of successes over all queries, not the share of the coins that fell.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from tests.learn.worlds import Chances, Trial, share

Progress = Callable[[int], None]
"""Told how many asks were done."""


class Learner(Protocol):
    """What answers and learns: the services, or their formulas alone."""

    async def first(self, query: int, seed: int) -> int | None:
        """The pattern that comes first; None without any. ``seed`` is for what samples."""

    async def took(self, query: int, seed: int) -> int | None:
        """As ``first``, and the outcome is going to be told."""

    async def tell(self, query: int, pattern: int, *, success: bool) -> None:
        """How it went with what ``took`` gave last."""


@dataclass(frozen=True)
class Point:
    """Expected shares of successes after so many asks."""

    asks: int
    asked: float
    never: float


@dataclass(frozen=True)
class Course:
    """How a replay goes. ``change_at`` 0: the chances stay. ``looks``: after how many asks to look.

    ``start``: so many asks the learner has had already.

    ``samples``: answers to a query that a look takes the mean of; more than one for what samples.
    """

    asks: int
    change_at: int = 0
    looks: Collection[int] = ()
    samples: int = 1
    start: int = 0


async def replay(trial: Trial, learner: Learner, course: Course, progress: Progress) -> list[Point]:
    """One replay; the points are those of ``course.looks``."""
    points: list[Point] = []
    chances = trial.before
    if 0 in course.looks and not course.start:
        points.append(await look(trial, learner, chances, 0, course.samples))
    for ask in islice(trial.asks(course.asks), course.start, None):
        if course.change_at and ask.number == course.change_at:
            chances = trial.after
        pattern = await learner.took(ask.query, ask.number)
        if pattern is not None:
            success = ask.coin < chances.success(ask.query, pattern)
            await learner.tell(ask.query, pattern, success=success)
        done = ask.number + 1
        progress(done)
        if done in course.looks:
            points.append(await look(trial, learner, chances, done, course.samples))
    return points


async def look(
    trial: Trial, learner: Learner, chances: Chances, asks: int, samples: int = 1
) -> Point:
    """How good it is now. Nothing is told, so nothing is learned."""
    draw = random.Random(f"look {trial.seed} {asks}")
    shares = []
    for queries in (trial.asked, trial.never):
        taken: dict[int, Sequence[int | None]] = {}
        for query in queries:
            seeds = [draw.randrange(2**31) for _ in range(samples)]
            taken[query] = [await learner.first(query, seed) for seed in seeds]
        shares.append(share(chances, queries, taken.__getitem__))
    return Point(asks, *shares)
