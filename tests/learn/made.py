"""Small worlds for the tests of the replay."""

from __future__ import annotations

from lot_grpc.domain.pattern import PatternContent
from lot_grpc.domain.query import PatternFilter
from lot_grpc.domain.ranking import RankingWeights
from tests.learn.measuring import (
    BALANCED,
    LEARNING,
    NOT_SERVED,
    RELEVANCE,
    AtMargin,
    Bounds,
    Checks,
    Learned,
    Measured,
    Report,
    Wanted,
)
from tests.learn.replaying import Point
from tests.learn.report import ORACLE
from tests.learn.served import Near, Pools
from tests.learn.tasks import TaskSet

TASKS = TaskSet(
    "tiny",
    stored=tuple(map(PatternContent, ("bake bread", "bake cake", "mend tyre"))),
    queries=("make a loaf", "make a cake", "flat tyre", "puncture"),
    right=(frozenset({0, 1}), frozenset({0, 1}), frozenset({2}), frozenset({2})),
    filters=(PatternFilter(),) * 4,
)
POOLS = Pools(
    hits=(
        (Near(2, 0.62), Near(0, 0.6), Near(1, 0.58)),
        (Near(1, 0.7), Near(0, 0.65)),
        (Near(2, 0.8), Near(0, 0.5)),
        (Near(2, 0.9),),
    ),
    vectors=((1.0, 0.0, 0.0), (0.9, 0.4, 0.0), (0.0, 1.0, 0.0), (0.0, 0.9, 0.4)),
)

ROWS = [RELEVANCE, *NOT_SERVED, *LEARNING, ORACLE]


def reported(
    *, asked: float = 0.6, never: float = 0.45, again: float = 0.6, overtaken: int = 0
) -> Report:
    """A run in which BALANCED came to these shares; RELEVANCE is at .4, the oracle at .8."""
    wanted = Wanted(60, (1, 2))
    bounds = Bounds(Point(0, 0.4, 0.4), Point(0, 0.8, 0.8))
    steady = tuple(Point(asks, asked, never) for asks in wanted.steady)
    changed = tuple(Point(asks, again, never) for asks in wanted.changed)
    other = Learned(tuple(Point(asks, 0.5, 0.4) for asks in wanted.steady), changed)
    learned = dict.fromkeys(ROWS[1:-1], other) | {BALANCED: Learned(steady, changed)}
    margins = (
        AtMargin(0.0, Point(60, 0.4, 0.4), Point(60, 0.4, 0.4)),
        AtMargin(2.0, Point(60, 0.6, 0.5), Point(60, 0.5, 0.2)),
    )
    measured = tuple(Measured(seed, bounds, bounds, learned, margins) for seed in wanted.seeds)
    return Report(TASKS, wanted, RankingWeights(), measured, Checks(30, overtaken), 12.0)
