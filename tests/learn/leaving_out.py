"""The numbers of ranking fitted on all sets but one, and how the one left out fares with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import product

from lot_grpc.domain.context_stats import Fading
from lot_grpc.domain.ranking import RankingWeights
from tests.learn.measuring import BALANCED, Wanted, replayed
from tests.learn.replaying import Course
from tests.learn.report import GAIN_NEVER, WAY_AFTER, WAY_ASKED
from tests.learn.served import Pools
from tests.learn.tasks import TaskSet
from tests.learn.worlds import Chances, Halving, drawn, mean, oracle, share, way

FITTED_ON = (21, 22)
"""Seeds of the draws that the numbers are chosen by; what is reported is on others."""
_ENOUGH = 0.05
"""Of the way: a target that is met by more counts no more."""
_HARM = 5.0
"""What a gain counts for, as of the way."""
SearchFields = tuple[TaskSet, Pools]


@dataclass(frozen=True)
class Reached:
    """What BALANCED comes to on a set, in the mean of the draws and halved as is worse for it."""

    way: float
    gain: float
    again: float

    @property
    def margin(self) -> float:
        """By how much the target that is nearest to being missed is met; below 0 it is missed."""
        harm = _HARM * (self.gain - GAIN_NEVER)
        return min(self.way - WAY_ASKED, self.again - WAY_AFTER, harm)


@dataclass(frozen=True)
class LeftOut:
    """A set, the numbers that the others chose, and what it reaches with them and as served."""

    name: str
    chosen: RankingWeights
    reached: Reached
    served: Reached


def tried() -> list[RankingWeights]:
    """The numbers that are tried, the served ones first."""
    served = RankingWeights()
    numbers = product((0.3, 0.45, 0.6), (5.0, 20.0), (0.04, 0.06), (0.9, 0.93))
    all_of_them = [
        RankingWeights(
            kernel_width=width, fading=Fading(decay=decay), neutral=neutral, expected_tried=hits
        )
        for neutral, hits, width, decay in numbers
    ]
    return [served, *(one for one in all_of_them if one != served)]


def best(rows: Sequence[Sequence[Reached]]) -> int:
    """The row that is best, a row being what all sets reach: for the worst set first."""
    margins = [[min(_ENOUGH, one.margin) for one in row] for row in rows]
    return max(range(len(rows)), key=lambda row: min(margins[row]) + 0.3 * mean(margins[row]))


def leave_out(
    sets: Sequence[SearchFields], asks: int, seeds: Sequence[int], workers: Executor
) -> Iterator[LeftOut]:
    """Each set in turn; ``seeds`` are those that are reported."""
    numbers = tried()
    fitted = [_reached(one, numbers, asks, FITTED_ON, workers) for one in sets]
    for place, (tasks, pools) in enumerate(sets):
        others = [column for at, column in enumerate(fitted) if at != place]
        chosen = numbers[best(list(zip(*others, strict=True)))]
        pair = _reached((tasks, pools), [chosen, RankingWeights()], asks, seeds, workers)
        yield LeftOut(tasks.name, chosen, *pair)


def _reached(
    searched: SearchFields,
    numbers: Sequence[RankingWeights],
    asks: int,
    seeds: Sequence[int],
    workers: Executor,
) -> list[Reached]:
    """What each of the numbers leads to."""
    tasks, pools = searched
    halvings = [[drawn(tasks, seed, halving) for seed in seeds] for halving in Halving]
    if all(one.asked == other.asked for one, other in zip(*halvings, strict=True)):
        halvings.pop()
    wanted = Wanted(asks, tuple(seeds))
    courses = (
        Course(asks, 0, (asks,)),
        Course(wanted.asks_with_change, wanted.change_at, (wanted.asks_with_change,)),
    )
    runs = {
        (row, halved, trial.seed): workers.submit(
            replayed, trial, pools, weights, BALANCED, courses
        )
        for row, weights in enumerate(numbers)
        for halved, trials in enumerate(halvings)
        for trial in trials
    }
    found = []
    for row in range(len(numbers)):
        halves = []
        for halved, trials in enumerate(halvings):
            figures = []
            for trial in trials:
                [steady], [changed] = runs[row, halved, trial.seed].result()
                relevance, ceiling = _bounds(pools, trial.before, trial.asked)
                never, _ = _bounds(pools, trial.before, trial.never)
                after = _bounds(pools, trial.after, trial.asked)
                figures.append(
                    (
                        way(steady.asked, relevance, ceiling),
                        steady.never - never,
                        way(changed.asked, *after),
                    )
                )
            halves.append([mean(column) for column in zip(*figures, strict=True)])
        found.append(Reached(*(min(column) for column in zip(*halves, strict=True))))
    return found


def _bounds(pools: Pools, chances: Chances, queries: Sequence[int]) -> tuple[float, float]:
    """What RELEVANCE reaches, and the oracle."""

    def first(query: int) -> list[int | None]:
        hits = pools.hits[query]
        return [hits[0].pattern if hits else None]

    return share(chances, queries, first), oracle(chances, queries)
