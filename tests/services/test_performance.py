"""Trends and reports over a store: every figure recomputed from the episodes themselves."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from dataclasses import dataclass

import pytest

from lot_grpc.domain.episode import EpisodeEnd, EpisodeStart, EpisodeStatus
from lot_grpc.domain.performance import AdviceKind, InsightKind, PerformanceReport
from lot_grpc.domain.query import EpisodeFilter
from lot_grpc.domain.trends import CategoryTrend, NamedCount, TrendDirection, TrendOptions
from lot_grpc.services.episodes.drafts import EpisodeDraft
from lot_grpc.services.records.collections import EPISODES
from lot_grpc.services.records.episodes import episode_point
from lot_grpc.storage.edge import EdgeStore
from tests.contract.clock import FixedClock
from tests.services.world import NS, World, open_world

SECOND = 1_000_000
EVERY = EpisodeFilter()


@dataclass(frozen=True)
class Run:
    """An episode to record. Times in seconds since 1970."""

    succeeded: bool = True
    category: str = "ops"
    seconds: int = 0
    end: int = 1_000_000
    approach: str = ""
    factors: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


async def record(world: World, *runs: Run, namespace: str = NS) -> None:
    for run in runs:
        status = EpisodeStatus.SUCCEEDED if run.succeeded else EpisodeStatus.FAILED
        end_time = run.end * SECOND
        start = EpisodeStart(
            "t",
            category=run.category,
            approach=run.approach,
            start_time=end_time - run.seconds * SECOND,
        )
        end = EpisodeEnd(
            status, success_factors=run.factors, tools_used=run.tools, end_time=end_time
        )
        await world.services.episodes.creator.record(namespace, EpisodeDraft(start, end=end))


def drawn(seed: int, count: int) -> list[Run]:
    by = random.Random(seed)
    return [
        Run(
            succeeded=by.random() < 0.6,
            category=by.choice(("", "ops", "ui", "backend")),
            seconds=by.choice((0, 0, 7, 60, 900)),
            end=1_000_000 + 60 * number,
            approach=by.choice(("", "plan", "dive", "ask")),
            factors=tuple(by.sample(("tests", "small steps", "review"), by.randrange(3))),
            tools=tuple(by.sample(("git", "make", "jq"), by.randrange(3))),
        )
        for number in by.sample(range(count), count)
    ]


async def trends(
    world: World, asked: EpisodeFilter = EVERY, **named: int
) -> dict[str, CategoryTrend]:
    found = await world.services.learning.performance.trends(NS, asked, TrendOptions(**named))
    return {trend.category: trend for trend in found}


async def report(world: World, asked: EpisodeFilter = EVERY) -> PerformanceReport:
    return await world.services.learning.performance.report(NS, asked, 20)


@pytest.mark.parametrize(("seed", "embedded"), [(0, False), (1, False), (2, False), (3, True)])
async def test_every_figure_is_what_the_episodes_say(seed, embedded, tmp_path):
    store = EdgeStore(tmp_path / "data", FixedClock(), min_free_bytes=0) if embedded else None
    world = await open_world(store)
    runs = drawn(seed, 260)
    await record(world, *runs)
    found = await world.services.learning.performance.trends(
        NS, EVERY, TrendOptions(sample_size=15, interval=3600 * SECOND, max_points=3)
    )
    groups = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.end):
        groups[run.category].append(run)
    order = sorted(groups, key=lambda name: (-len(groups[name]), name))
    assert [trend.category for trend in found] == order
    for trend in found:
        theirs = groups[trend.category]
        sample = theirs[-15:]
        assert (trend.total, trend.sample_count) == (len(theirs), 15)
        assert trend.success_rate == sum(run.succeeded for run in sample) / 15
        times = [run.seconds for run in sample if run.seconds]
        assert trend.average_duration == pytest.approx(sum(times) / len(times))
        names = Counter(run.approach for run in sample if run.succeeded and run.approach)
        assert {(one.name, one.count) for one in trend.best_approaches} <= set(names.items())
        assert [one.count for one in trend.best_approaches] == sorted(names.values())[::-1][:3]
        half = len(theirs) // 2
        assert trend.change.earlier_rate == sum(r.succeeded for r in theirs[:half]) / half
        hours = defaultdict(list)
        for run in theirs:
            hours[run.end // 3600 * 3600].append(run)
        assert [(point.start_time, point.count, point.success_count) for point in trend.points] == [
            (hour * SECOND, len(hours[hour]), sum(run.succeeded for run in hours[hour]))
            for hour in sorted(hours)[-3:]
        ]

    whole = await report(world)
    assert (whole.total, whole.successes) == (260, sum(run.succeeded for run in runs))
    times = [run.seconds for run in runs if run.seconds]
    assert whole.average_duration == pytest.approx(sum(times) / len(times))
    assert {trend.category: trend.total for trend in whole.trends} == {
        name: len(theirs) for name, theirs in groups.items()
    }
    by_category = await trends(world)
    assert list(whole.trends) == list(by_category.values())
    good = [run for run in runs if run.succeeded]
    factors = Counter(name for run in good for name in run.factors)
    tools = Counter(name for run in good for name in run.tools)
    approaches = Counter(run.approach for run in good if run.approach)
    insights = {(one.kind, one.name, one.count) for one in whole.insights}
    best = max(approaches.values())
    assert sum(kind is InsightKind.APPROACH for kind, _, _ in insights) == 1
    assert all(count == best for kind, _, count in insights if kind is InsightKind.APPROACH)
    assert {i for i in insights if i[0] is not InsightKind.APPROACH} == {
        *((InsightKind.SUCCESS_FACTOR, name, count) for name, count in factors.items()),
        *((InsightKind.TOOL, name, count) for name, count in tools.items()),
    }
    await world.store.close()


async def test_what_has_not_ended_does_not_count():
    world = await open_world()
    await record(world, Run(), Run(succeeded=False))
    start = EpisodeStart("t", category="ops")
    for name in ("running", "left"):
        await world.services.episodes.creator.start(NS, EpisodeDraft(start, name))
    left = {"status": EpisodeStatus.ABANDONED.value}
    assert await world.store.update(EPISODES, NS, episode_point(NS, "left"), set=left)
    assert (await trends(world))["ops"].total == 2
    assert (await report(world)).total == 2
    running = EpisodeFilter(statuses=(EpisodeStatus.RUNNING, EpisodeStatus.ABANDONED))
    assert await trends(world, running) == {}
    assert (await report(world, running)).total == 0


async def test_the_order_is_that_of_the_ends_not_of_the_recording():
    world = await open_world()
    ends = [*range(100, 110), *range(200, 210)]
    runs = [Run(succeeded=end >= 200, end=end) for end in ends]
    await record(world, *reversed(runs))
    trend = (await trends(world, sample_size=10))["ops"]
    assert trend.success_rate == 1.0
    assert trend.change.direction is TrendDirection.IMPROVING
    assert (trend.change.earlier_rate, trend.change.later_rate) == (0.0, 1.0)
    assert trend.change.significant


async def test_a_filter_narrows_and_namespaces_are_apart():
    world = await open_world()
    await record(world, Run(approach="plan"), Run(approach="dive"), Run(category="ui"))
    await record(world, Run(), namespace="other")
    assert list(await trends(world)) == ["ops", "ui"]
    assert {name: one.total for name, one in (await trends(world)).items()} == {"ops": 2, "ui": 1}
    narrowed = await report(world, EpisodeFilter(approaches=("plan",)))
    assert narrowed.total == 1
    assert [trend.category for trend in narrowed.trends] == ["ops"]


async def test_of_many_categories_the_100_most_frequent_are_shown_and_all_count():
    world = await open_world()
    await record(world, *(Run(category=f"c{n:03}") for n in range(120)))
    await record(world, Run(category="c119"), Run(category=""), Run(category=""))
    found = await trends(world)
    assert len(found) == 100
    assert list(found)[:3] == ["", "c119", "c000"]
    whole = await report(world)
    assert whole.total == 123
    assert [trend.category for trend in whole.trends] == list(found)


async def test_without_episodes_there_is_nothing_to_tell():
    world = await open_world()
    assert await trends(world) == {}
    empty = await report(world)
    assert (empty.total, empty.success_rate, empty.average_duration) == (0, None, None)
    assert [one.kind for one in empty.advice] == [AdviceKind.STABLE]
    assert empty.insights == ()


async def test_insights_come_from_ten_episodes_on():
    world = await open_world()
    for number in range(9):
        await record(world, Run(approach="plan", factors=("tests",), end=100 + number))
    assert (await report(world)).insights == ()
    await record(world, Run(succeeded=False, approach="dive", factors=("luck",), end=200))
    insights = (await report(world)).insights
    assert [(one.kind, one.name, one.count) for one in insights] == [
        (InsightKind.APPROACH, "plan", 9),
        (InsightKind.SUCCESS_FACTOR, "tests", 9),
    ]


async def test_equally_frequent_insights_come_by_name():
    world = await open_world()
    runs = [Run(factors=(name,), end=100 + n) for n, name in enumerate("edcbaedcba")]
    await record(world, *runs)
    assert [one.name for one in (await report(world)).insights] == ["a", "b", "c"]


async def test_others_go_on_while_a_report_reads(monkeypatch):
    world = await open_world()
    await record(world, *drawn(5, 400))
    monkeypatch.setattr("lot_grpc.services.time_slice._LONGEST_SECONDS", 0.0)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    await report(world)
    seen, turns = turns, 0
    await trends(world)
    beside.cancel()
    assert seen >= 400
    assert turns >= 80


async def test_reading_stops_where_nothing_more_can_change(monkeypatch):
    world = await open_world()
    await record(world, *(Run(end=1000 + n) for n in range(700)))
    monkeypatch.setattr("lot_grpc.domain.trends.COMPARED_AT_MOST", 250)
    read = 0
    scroll = world.store.scroll

    async def counted(*given, **named):
        nonlocal read
        found = await scroll(*given, **named)
        read += len(found)
        return found

    monkeypatch.setattr(world.store, "scroll", counted)
    trend = (await trends(world))["ops"]
    assert (trend.total, trend.compared_count) == (700, 250)
    assert read == 300  # one batch


async def test_the_report_names_what_to_improve():
    world = await open_world()
    good = [Run(category="good", end=100 + n) for n in range(10)]
    weak = [Run(category="weak", succeeded=n < 6, end=100 + n) for n in range(10)]
    slow = [Run(category="slow", seconds=301, end=1000 + n) for n in range(2)]
    await record(world, *good, *weak, *slow)
    whole = await report(world)
    assert [(one.kind, one.category) for one in whole.advice] == [
        (AdviceKind.LOW_SUCCESS, "weak"),
        (AdviceKind.DECLINING, "weak"),
        (AdviceKind.SLOW, "slow"),
    ]
    assert whole.trends[0].best_approaches == ()
    assert NamedCount("x", 1) not in whole.trends[0].best_approaches
