"""What ``make learn`` measures: every ranking on the same trials, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from lot_grpc.domain.query import Ranking
from lot_grpc.domain.ranking import RankingWeights
from lot_grpc.opening import Opened
from lot_grpc.reports import Progress
from tests.learn.formulas import ByCell, ByPattern, Formulas, cosines
from tests.learn.replaying import Course, Learner, Point, look, replay
from tests.learn.served import Pools, Served, read_pools, save_all, weights_told
from tests.learn.tasks import TaskSet
from tests.learn.worlds import Trial, drawn, oracle

RELEVANCE, BETA, BALANCED, RELIABLE, EXPLORE = (
    "RELEVANCE",
    "Beta mean",
    "BALANCED",
    "RELIABLE",
    "EXPLORE",
)
LEARNING = {
    BALANCED: Ranking.BALANCED,
    RELIABLE: Ranking.RELIABLE,
    EXPLORE: Ranking.EXPLORE,
}
GATES = (0.0, 0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 2.0)
"""2 is no gate at all: relevances lie in [0, 1]."""
FREE = 10.0
"""So many times the weight, and what was learned decides alone among what the gate lets through."""
EARLY = (50, 500)
_SAMPLES = 2
_STEPS = 6


@dataclass(frozen=True)
class Wanted:
    """How much to measure. The chances change after half of the asks, and 2/3 as many follow.

    ``formulas``: by the formulas alone, over the pools that the services search; no recall is made.
    """

    asks: int
    seeds: tuple[int, ...]
    formulas: bool = False

    @property
    def steady(self) -> tuple[int, ...]:
        """When to look while the chances stay."""
        return _looks(0, self.asks)

    @property
    def changed(self) -> tuple[int, ...]:
        """When to look while they change: last at ``change_at`` before, and at the end."""
        return _looks(0, self.change_at)[-3:] + _looks(self.change_at, self.asks_with_change)[1:]

    @property
    def change_at(self) -> int:
        return self.asks // 2

    @property
    def asks_with_change(self) -> int:
        return self.change_at + self.asks * 2 // 3


def _looks(start: int, end: int) -> tuple[int, ...]:
    even = {start + (end - start) * step // _STEPS for step in range(_STEPS + 1)}
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
class Gated:
    """Where a gate leads: with the weight as it is, and with what was learned alone deciding."""

    gate: float
    weighted: Point
    free: Point


@dataclass(frozen=True)
class Measured:
    """One seed."""

    seed: int
    before: Bounds
    after: Bounds
    learned: dict[str, Learned]
    gates: tuple[Gated, ...]


@dataclass
class Checks:
    """Recalls in which a hit led by more than the gate, and in which another came first."""

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
    """Measures over an empty store."""

    def __init__(
        self,
        serving: Opened,
        tasks: TaskSet,
        wanted: Wanted,
        progress: Progress,
    ) -> None:
        self._serving = serving
        self._tasks = tasks
        self._weights = RankingWeights()
        self._wanted = wanted
        self._progress = progress
        self._served: list[Served] = []

    async def run(self) -> Report:
        """All seeds, one after the other."""
        pools = await read_pools(self._serving, self._tasks, self._progress)
        self._weights = await weights_told(self._serving, self._tasks)
        measured = [await self._seed(drawn(self._tasks, one), pools) for one in self._wanted.seeds]
        checks = Checks(
            sum(one.checked for one in self._served), sum(one.overtaken for one in self._served)
        )
        return Report(self._tasks, self._wanted, self._weights, tuple(measured), checks)

    async def _seed(self, trial: Trial, pools: Pools) -> Measured:
        relevance = await self._learner(trial, RELEVANCE, Ranking.RELEVANCE, pools)
        before, after = [
            Bounds(
                await look(trial, relevance, chances, 0),
                Point(0, oracle(chances, trial.asked), oracle(chances, trial.never)),
            )
            for chances in (trial.before, trial.after)
        ]
        learned = {
            BETA: await self._learned(
                trial,
                BETA,
                [Formulas(pools, ByPattern(), self._weights, Ranking.BALANCED) for _ in range(2)],
            )
        }
        for name, ranking in LEARNING.items():
            learners = [
                await self._learner(trial, f"{name}-{course}", ranking, pools)
                for course in ("steady", "changed")
            ]
            samples = _SAMPLES if ranking is Ranking.EXPLORE else 1
            learned[name] = await self._learned(trial, name, learners, samples)
        return Measured(trial.seed, before, after, learned, await self._gates(trial, pools))

    async def _learned(
        self, trial: Trial, name: str, learners: Sequence[Learner], samples: int = 1
    ) -> Learned:
        """Both courses, each by a learner that knows nothing yet."""
        wanted = self._wanted
        steady = Course(wanted.asks, 0, wanted.steady, samples)
        changed = Course(wanted.asks_with_change, wanted.change_at, wanted.changed, samples)
        points = []
        for learner, course in zip(learners, (steady, changed), strict=True):
            what = f"{name}{' through the change' if course.change_at else ''}, seed {trial.seed}"
            points.append(await replay(trial, learner, course, self._told(what, course)))
        return Learned(tuple(points[0]), tuple(points[1]))

    async def _gates(self, trial: Trial, pools: Pools) -> tuple[Gated, ...]:
        """BALANCED behind other gates, by the formulas alone."""
        between = cosines(pools)
        course = Course(self._wanted.asks, 0, (self._wanted.asks,))
        what, of = f"gates, seed {trial.seed}", 2 * len(GATES)
        found: list[Gated] = []
        for gate in GATES:
            weighted = replace(self._weights, gate=gate)
            points: list[Point] = []
            for weights in (weighted, replace(weighted, learned=FREE * weighted.learned)):
                memory = ByCell(between, weights)
                learner = Formulas(pools, memory, weights, Ranking.BALANCED)
                self._progress(what, 2 * len(found) + len(points), of)
                points += await replay(trial, learner, course, _untold)
            found.append(Gated(gate, *points))
        self._progress(what, of, of)
        return tuple(found)

    async def _learner(self, trial: Trial, name: str, ranking: Ranking, pools: Pools) -> Learner:
        """One that knows nothing yet: the services with a namespace of its own, or the formulas."""
        if self._wanted.formulas:
            memory = ByCell(cosines(pools), self._weights)
            return Formulas(pools, memory, self._weights, ranking)
        namespace = f"{name}-{trial.seed}".lower()
        await save_all(self._serving, namespace, self._tasks)
        served = Served(self._serving, namespace, ranking, self._tasks, pools, self._weights.gate)
        self._served.append(served)
        return served

    def _told(self, what: str, course: Course) -> Callable[[int], None]:
        def told(done: int) -> None:
            if done % 100 == 0 or done == course.asks:
                self._progress(what, done, course.asks)

        return told


def _untold(done: int) -> None:
    """Of progress that is told more coarsely."""
