"""A simulated fleet of agents, to see whether the interval of a holdout covers the true gain.

A share of the recalls is ranked without what was learned. Every outcome is learned, whichever
recall it came from, and is reported after other agents have made requests. The true gain of a run
is the mean over its requests of how much better the first hit works, in expectation, with what was
learned by then than without it.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import deque
from concurrent.futures import Executor
from dataclasses import dataclass

from lot_grpc.domain.holdout import Arm, Gain, gain, in_holdout
from lot_grpc.domain.query import Ranking
from lot_grpc.domain.ranking import RankingWeights
from tests.learn.formulas import ByCell, Formulas
from tests.learn.served import Pools
from tests.learn.tasks import TaskSet
from tests.learn.worlds import drawn, mean

RUNS, REQUESTS, SHARE, AGENTS = 200, 300, 0.2, 5
PARTLY = 0.2
"""The chance that a pattern of the query's template that does not succeed does so in part."""
COVERED = 0.95
"""The share of runs in which the interval should have the true gain."""


@dataclass(frozen=True)
class Run:
    """One run: the true gain, and what the holdout says of it."""

    true: float
    measured: Gain

    @property
    def covered(self) -> bool:
        """Whether the interval has the true gain."""
        return self.measured.lower <= self.true <= self.measured.upper


@dataclass(frozen=True)
class Fleet:
    """All runs over one set."""

    name: str
    requests: int
    runs: tuple[Run, ...]

    @property
    def covered(self) -> int:
        """In how many runs the interval has the true gain."""
        return sum(run.covered for run in self.runs)

    @property
    def enough(self) -> bool:
        """Whether it does so in 95 % of them, but for what chance takes off in 1 % of cases."""
        runs = len(self.runs)
        return self.covered >= COVERED * runs - 2.33 * math.sqrt(COVERED * (1 - COVERED) * runs)


def simulated(
    tasks: TaskSet,
    pools: Pools,
    workers: Executor,
    runs: int = RUNS,
    requests: int = REQUESTS,
) -> Fleet:
    """Runs with the seeds from 1 on."""
    each = [workers.submit(simulate, tasks, pools, seed + 1, requests) for seed in range(runs)]
    return Fleet(tasks.name, requests, tuple(one.result() for one in each))


def simulate(tasks: TaskSet, pools: Pools, seed: int, requests: int) -> Run:
    """One run, by the formulas of ranking; each seed has other chances, queries and coins."""
    return asyncio.run(_run(tasks, pools, seed, requests))


async def _run(tasks: TaskSet, pools: Pools, seed: int, requests: int) -> Run:
    trial, weights = drawn(tasks, seed), RankingWeights()
    memory = ByCell(pools, weights)
    ranked = Formulas(pools, memory, weights, Ranking.BALANCED)
    unlearned = Formulas(pools, memory, weights, Ranking.RELEVANCE)
    plain_firsts: dict[int, int | None] = {}  # by query: what is learned does not move these
    draw = random.Random(f"fleet {seed}")
    learned_arm, holdout_arm, gains = Arm(), Arm(), []
    reports: deque[tuple[int, int, float]] = deque()
    for ask in trial.asks(requests):
        while len(reports) > draw.randrange(AGENTS):
            memory.record(*reports.popleft())
        learned = await ranked.first(ask.query, ask.number)
        if ask.query not in plain_firsts:
            plain_firsts[ask.query] = await unlearned.first(ask.query, ask.number)
        plain = plain_firsts[ask.query]
        if learned is None or plain is None:
            continue  # nothing was found, so no outcome is reported
        chance, plain_chance = [trial.before.success(ask.query, one) for one in (learned, plain)]
        gains.append(_expected(chance) - _expected(plain_chance))
        if in_holdout(f"{draw.getrandbits(128):032x}", SHARE):
            value = _outcome(plain_chance, ask.coin, draw)
            holdout_arm = holdout_arm.record(value)
            reports.append((ask.query, plain, value))
        else:
            value = _outcome(chance, ask.coin, draw)
            learned_arm = learned_arm.record(value)
            reports.append((ask.query, learned, value))
    measured = gain(learned_arm, holdout_arm)
    assert measured is not None
    return Run(mean(gains), measured)


def _expected(chance: float) -> float:
    """The expected value of an outcome."""
    return chance + (1 - chance) * PARTLY / 2 * (chance > 0)


def _outcome(chance: float, coin: float, draw: random.Random) -> float:
    if coin < chance:
        return 1.0
    return 0.5 if chance and draw.random() < PARTLY else 0.0
