"""The replay over a part of the carried set, with the hashing embedder and a store in memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lot_grpc.bootstrap import Opened
from lot_grpc.domain.query import Ranking
from lot_grpc.domain.ranking import RankingWeights
from tests.learn.carried import FORMS
from tests.learn.formulas import ByCell, ByPattern, Formulas, WilsonBoost
from tests.learn.kinds import KINDS
from tests.learn.made import POOLS, ROWS
from tests.learn.measuring import MARGINS, Measuring, Wanted
from tests.learn.report import targets
from tests.learn.served import Near, Pools, Served, read_pools, save_all, weights_told
from tests.learn.tasks import carried_set
from tests.learn.worlds import drawn
from tests.services.world import open_world

TASKS = carried_set(FORMS[:4])


@pytest.fixture
async def serving() -> Opened:
    world = await open_world()
    return Opened(world.store, world.embedder, world.services)


def silent(task: str, done: int, total: int) -> None:
    """No progress to show."""


async def test_it_runs_and_every_ranking_is_measured(serving):
    told: list[tuple[str, int, int]] = []
    pools = await read_pools(serving, TASKS, silent)
    measuring = Measuring(serving, TASKS, pools, lambda *one: told.append(one))
    report = await measuring.run(Wanted(60, (1,)))
    [measured] = report.measured
    assert list(measured.learned) == ROWS[1:-1]
    for learned in measured.learned.values():
        assert [point.asks for point in learned.steady] == list(report.wanted.steady)
        assert [point.asks for point in learned.changed] == list(report.wanted.changed)
    relevance, oracle = measured.before.relevance, measured.before.oracle
    balanced = measured.learned["BALANCED"].steady
    assert balanced[0].asked == pytest.approx(relevance.asked)
    assert relevance.asked < balanced[-1].asked < oracle.asked
    by_margin = {one.margin: one for one in measured.margins}
    assert by_margin[0.0].weighted.asked <= by_margin[0.1].weighted.asked
    assert report.checks.overtaken == 0
    assert {(what, done) for what, done, total in told if done == total} >= {
        ("patterns, Beta mean, seed 1, by query", 1),
        ("patterns, Wilson boost, seed 1, by query", 1),
        ("patterns, BALANCED, seed 1, by query", 60),
        ("patterns, BALANCED, seed 1, by query through the change", 70),
        ("margins, seed 1", len(MARGINS)),
    }


async def test_the_formulas_alone_make_no_recall(serving):
    measuring = Measuring(serving, TASKS, await read_pools(serving, TASKS, silent), silent)
    report = await measuring.run(Wanted(40, (1, 2), formulas=True))
    assert [one.seed for one in report.measured] == [1, 2]
    assert report.checks.checked == 0
    balanced = report.measured[0].learned["BALANCED"].steady
    assert balanced[-1].asked > report.measured[0].before.relevance.asked
    assert len(targets(report)) == 3


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("ranking", [Ranking.BALANCED, Ranking.RELIABLE])
async def test_the_formulas_choose_as_the_services_do(serving, ranking, kind):
    tasks = replace(TASKS, kind=kind)
    pools = await read_pools(serving, tasks, silent)
    weights = await weights_told(serving, tasks)
    assert weights.learned == RankingWeights().learned
    await save_all(serving, "served", tasks)
    served = Served(serving, "served", ranking, tasks, pools, weights.reorder_margin)
    formulas = Formulas(pools, ByCell(pools, weights), weights, ranking)
    trial, same = drawn(tasks, 2), 0
    for ask in trial.asks(120):
        pattern = await served.took(ask.query, ask.number)
        same += pattern == await formulas.took(ask.query, ask.number)
        assert pattern is not None
        success = ask.coin < trial.before.success(ask.query, pattern)
        await served.tell(ask.query, pattern, success=success)
        await formulas.tell(ask.query, pattern, success=success)
    assert same >= 118  # equal scores go by id, which differs


async def test_a_hit_that_is_overtaken_is_counted(serving):
    pools = await read_pools(serving, TASKS, silent)
    await save_all(serving, "served", TASKS)
    served = Served(serving, "served", Ranking.BALANCED, TASKS, pools, margin=-1.0)
    query = next(n for n, hits in enumerate(pools.hits) if len(hits) > 1)
    first = await served.took(query, 0)
    assert (served.checked, served.overtaken) == (1, 0)
    assert first is not None
    while await served.took(query, 0) == first:
        assert served.checked < 20
        await served.tell(query, first, success=False)
    assert served.checked > 2
    assert served.overtaken == 1


def test_who_leads_by_more_than_the_gate_is_the_leader():
    assert [POOLS.leader(query, 0.1) for query in range(4)] == [None, None, 2, 2]
    assert POOLS.leader(1, 0.04) == 1


async def test_where_nothing_is_learned_the_formulas_leave_equals_as_the_pool_has_them():
    pools = Pools(((Near(10, 0.5), Near(9, 0.5), Near(2, 0.5)),), ((1.0, 0.0),))
    for ranking in (Ranking.RELEVANCE, Ranking.BALANCED, Ranking.RELIABLE):
        assert await Formulas(pools, ByPattern(), RankingWeights(), ranking).first(0, 0) == 10


async def test_plain_counts_forget_what_was_asked_and_cells_do_not():
    weights = RankingWeights()
    plain = Formulas(POOLS, ByPattern(), weights, Ranking.BALANCED)
    all_stats = Formulas(POOLS, ByCell(POOLS, weights), weights, Ranking.BALANCED)
    for learner in (plain, all_stats):
        assert await learner.first(1, 0) == 1
        for _ in range(10):
            await learner.tell(3, 1, success=False)
    assert await plain.first(1, 0) == 0
    assert await all_stats.first(1, 0) == 1


async def test_the_wilson_boost_lets_success_anywhere_win_everywhere_and_failure_cost_nothing():
    boosted = WilsonBoost(POOLS, ByPattern())
    assert await boosted.first(3, 0) == 2
    for _ in range(10):
        await boosted.tell(3, 2, success=False)
    assert await boosted.first(0, 0) == 2
    for _ in range(10):
        await boosted.tell(1, 0, success=True)
    assert [await boosted.first(query, 0) for query in (0, 1)] == [0, 0]
