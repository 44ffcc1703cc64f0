"""What ``make learn`` measures: every ranking on the same trials, and what comes of it."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

from lot_grpc.bootstrap import Opened
from lot_grpc.domain.query import Ranking
from lot_grpc.domain.ranking import RankingWeights
from lot_grpc.reports import Progress
from tests.learn.formulas import ByCell, ByPattern, Formulas, WilsonBoost
from tests.learn.replaying import Course, Learner, Point, look, replay
from tests.learn.served import Pools, Served, save_all, weights_told
from tests.learn.tasks import TaskSet
from tests.learn.worlds import Halving, Trial, drawn, oracle

RELEVANCE, BETA, WILSON, BALANCED, RELIABLE, EXPLORE = (
    "RELEVANCE",
    "Beta mean",
    "Wilson boost",
    "BALANCED",
    "RELIABLE",
    "EXPLORE",
)
LEARNING = {
    BALANCED: Ranking.BALANCED,
    RELIABLE: Ranking.RELIABLE,
    EXPLORE: Ranking.EXPLORE,
}
NOT_SERVED = (BETA, WILSON)
"""By the formulas alone, as the services have no such rankings."""
MARGINS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 2.0)
"""2 is no margin at all: relevances lie in [0, 1]."""
FREE = 10.0
"""So many times the weight, and what was learned decides alone among what is in the margin."""
EARLY = (50, 500)
_SAMPLES = 2
_STEPS = 6


@dataclass(frozen=True)
class Wanted:
    """How much to measure. The chances change after half of the asks, and 2/3 as many follow.

    ``formulas``: by the formulas alone, over the pools that the services search; no recall is made.
    ``margins``: measure other margins as well, and look more often: what a picture shows.
    """

    asks: int
    seeds: tuple[int, ...]
    formulas: bool = False
    halving: Halving = Halving.QUERY
    margins: bool = True

    @property
    def steady(self) -> tuple[int, ...]:
        """When to look while the chances stay."""
        return _looks(0, self.asks, self._steps)

    @property
    def changed(self) -> tuple[int, ...]:
        """When to look while they change: last at ``change_at`` before, and at the end."""
        before = _looks(0, self.change_at, self._steps)[-3:]
        return before + _looks(self.change_at, self.asks_with_change, self._steps)[1:]

    @property
    def _steps(self) -> int:
        return _STEPS if self.margins else 1

    @property
    def change_at(self) -> int:
        return self.asks // 2

    @property
    def asks_with_change(self) -> int:
        return self.change_at + self.asks * 2 // 3


def _looks(start: int, end: int, steps: int) -> tuple[int, ...]:
    even = {start + (end - start) * step // steps for step in range(steps + 1)}
    return tuple(sorted(even | {early for early in EARLY if start == 0 and early <= end}))


@dataclass(frozen=True)
class Bounds:
    """What learning lies between: RELEVANCE and the oracle, on queries asked and never asked."""

    relevance: Point
    oracle: Point


@dataclass(frozen=True)
class Learned:
    """How a ranking got on: while the chances stay, and through the change."""

    steady: tuple[Point, ...]
    changed: tuple[Point, ...]


@dataclass(frozen=True)
class AtMargin:
    """Where a margin leads: with the weight as it is, and with what was learned alone deciding."""

    margin: float
    weighted: Point
    free: Point


@dataclass(frozen=True)
class Measured:
    """One seed."""

    seed: int
    before: Bounds
    after: Bounds
    learned: dict[str, Learned]
    margins: tuple[AtMargin, ...]


@dataclass
class Checks:
    """Recalls in which a hit led by more than the margin, and in which another came first."""

    checked: int = 0
    overtaken: int = 0


@dataclass(frozen=True)
class Report:
    """All of a run."""

    tasks: TaskSet
    wanted: Wanted
    weights: RankingWeights
    measured: tuple[Measured, ...]
    checks: Checks = field(default_factory=Checks)
    seconds: float = 0.0


class Measuring:
    """Measures over an empty store; ``workers`` run what needs no services, else threads do."""

    def __init__(
        self,
        serving: Opened,
        tasks: TaskSet,
        pools: Pools,
        progress: Progress,
        workers: Executor | None = None,
    ) -> None:
        self._serving = serving
        self._tasks = tasks
        self._pools = pools
        self._progress = progress
        self._workers = workers
        self._weights = RankingWeights()
        self._wanted = Wanted(0, ())
        self._served: list[Served] = []

    async def run(self, wanted: Wanted) -> Report:
        """All seeds, one after the other."""
        started = time.monotonic()
        self._wanted, self._served = wanted, []
        self._weights = await weights_told(self._serving, self._tasks)
        measured = [
            await self._seed(drawn(self._tasks, one, wanted.halving)) for one in wanted.seeds
        ]
        checks = Checks(
            sum(one.checked for one in self._served), sum(one.overtaken for one in self._served)
        )
        seconds = time.monotonic() - started
        return Report(self._tasks, wanted, self._weights, tuple(measured), checks, seconds)

    async def _seed(self, trial: Trial) -> Measured:
        # The order without outcomes: by relevance, and by importance where there is any.
        relevance = Formulas(self._pools, ByPattern(), self._weights, Ranking.BALANCED)
        before, after = [
            Bounds(
                await look(trial, relevance, chances, 0),
                Point(0, oracle(chances, trial.asked), oracle(chances, trial.never)),
            )
            for chances in (trial.before, trial.after)
        ]
        names = [*NOT_SERVED, *LEARNING]
        if self._wanted.formulas:
            found = await asyncio.gather(*(self._learned(trial, name) for name in names))
        else:
            found = [await self._learned(trial, name) for name in names]
        learned = dict(zip(names, found, strict=True))
        margins = await self._gates(trial) if self._wanted.margins else ()
        return Measured(trial.seed, before, after, learned, margins)

    async def _learned(self, trial: Trial, name: str) -> Learned:
        """Both courses, each by a learner that knows nothing yet."""
        wanted, points = self._wanted, []
        samples = _SAMPLES if name == EXPLORE else 1
        courses = (
            Course(wanted.asks, 0, wanted.steady, samples),
            Course(wanted.asks_with_change, wanted.change_at, wanted.changed, samples),
        )
        what = f"{self._tasks.kind}, {name}, seed {trial.seed}, by {wanted.halving}"
        if wanted.formulas or name in NOT_SERVED:
            self._progress(what, 0, 1)
            points = await self._alone(trial, name, courses)
            self._progress(what, 1, 1)
        else:
            for course in courses:
                learner = await self._serve(
                    trial, f"{name}-{bool(course.change_at)}", LEARNING[name]
                )
                told = self._told(what + " through the change" * bool(course.change_at), course)
                points.append(await replay(trial, learner, course, told))
        return Learned(tuple(points[0]), tuple(points[1]))

    async def _gates(self, trial: Trial) -> tuple[AtMargin, ...]:
        """BALANCED behind other margins, by the formulas alone."""
        course = Course(self._wanted.asks, 0, (self._wanted.asks,))
        what, found = f"margins, seed {trial.seed}", []
        for place, margin in enumerate(MARGINS):
            self._progress(what, place, len(MARGINS))
            weights = replace(self._weights, reorder_margin=margin)
            both = (weights, replace(weights, learned=FREE * weights.learned))
            points = await asyncio.gather(
                *(self._alone(trial, BALANCED, (course,), one) for one in both)
            )
            found.append(AtMargin(margin, *(one for [[one]] in points)))
        self._progress(what, len(MARGINS), len(MARGINS))
        return tuple(found)

    async def _alone(
        self,
        trial: Trial,
        name: str,
        courses: Sequence[Course],
        weights: RankingWeights | None = None,
    ) -> list[list[Point]]:
        """Replays by the formulas alone."""
        given = trial, self._pools, weights or self._weights, name, courses
        return await asyncio.get_running_loop().run_in_executor(self._workers, replayed, *given)

    async def _serve(self, trial: Trial, name: str, ranking: Ranking) -> Learner:
        """The services with a namespace of its own, which knows nothing yet."""
        namespace = f"{name}-{trial.seed}-{self._wanted.halving}".lower().replace(" ", "-")
        await save_all(self._serving, namespace, self._tasks)
        served = Served(
            self._serving,
            namespace,
            ranking,
            self._tasks,
            self._pools,
            self._weights.reorder_margin,
        )
        self._served.append(served)
        return served

    def _told(self, what: str, course: Course) -> Callable[[int], None]:
        def told(done: int) -> None:
            if done % 100 == 0 or done == course.asks:
                self._progress(what, done, course.asks)

        return told


def replayed(
    trial: Trial,
    pools: Pools,
    weights: RankingWeights,
    name: str,
    courses: Sequence[Course],
) -> list[list[Point]]:
    """Courses by one learner each; what they have in common, up to the change, is played once."""
    memory = ByPattern() if name in NOT_SERVED else ByCell(pools, weights)

    def played(memory: ByPattern | ByCell, course: Course) -> list[Point]:
        learner: Learner
        if name == WILSON:
            learner = WilsonBoost(pools, memory)
        else:
            ranking = LEARNING.get(name, Ranking.BALANCED)
            learner = Formulas(pools, memory, weights, ranking)
        return asyncio.run(replay(trial, learner, course, lambda _: None))

    common = max(course.change_at for course in courses)
    looks = {look for course in courses for look in course.looks if look <= common}
    shared = played(memory, Course(common, 0, looks, courses[0].samples)) if common else []
    found = []
    for course in courses:
        own = played(copy.deepcopy(memory), replace(course, start=common))
        found.append([point for point in shared if point.asks in course.looks] + own)
    return found
