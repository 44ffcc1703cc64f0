from __future__ import annotations

from dataclasses import replace

import pytest

from lot_grpc.evaluation.errors import EvalDataError
from tests.learn.made import TASKS
from tests.learn.tasks import carried_set
from tests.learn.worlds import Chances, Halving, drawn, oracle, share, way

CHANCES = Chances(TASKS, (0.2, 0.7, 0.5))


def test_only_a_pattern_of_the_querys_template_may_succeed():
    assert [CHANCES.success(0, pattern) for pattern in (0, 1, 2)] == [0.2, 0.7, 0.0]
    assert CHANCES.success(0, None) == 0.0


def test_the_oracle_takes_the_best_of_the_template():
    assert oracle(CHANCES, (0, 2)) == pytest.approx((0.7 + 0.5) / 2)


def test_the_share_is_expected_over_what_may_be_taken():
    taken = {0: [0, 1], 2: [2]}
    assert share(CHANCES, (0, 2), taken.__getitem__) == pytest.approx((0.45 + 0.5) / 2)


def test_a_trial_asks_one_half_and_never_the_other():
    tasks = carried_set()
    trial = drawn(tasks, 3)
    assert sorted(trial.asked + trial.never) == list(range(len(tasks.queries)))
    assert len(trial.asked) == len(tasks.queries) // 2
    asked = {ask.query for ask in trial.asks(2_000)}
    assert asked == set(trial.asked)


def test_a_trial_is_the_same_again_and_another_for_another_seed():
    tasks = carried_set()
    trial, again, other = drawn(tasks, 3), drawn(tasks, 3), drawn(tasks, 4)
    assert trial == again
    assert list(trial.asks(50)) == list(again.asks(50))
    assert trial.asked != other.asked
    assert list(trial.asks(50)) != list(other.asks(50))


def test_the_chances_are_uniform_and_all_drawn_anew():
    trial = drawn(carried_set(), 3)
    for chances in (trial.before, trial.after):
        assert 0.4 < sum(chances.of) / len(chances.of) < 0.6
        assert min(chances.of) < 0.1
        assert max(chances.of) > 0.9
    assert not set(trial.before.of) & set(trial.after.of)


def test_the_way_goes_from_relevance_to_the_oracle():
    assert way(0.6, 0.4, 0.8) == pytest.approx(0.5)
    assert way(0.3, 0.4, 0.8) < 0
    assert way(0.8, 0.8, 0.8) == 0


def test_halved_by_template_no_right_pattern_is_of_both_halves():
    tasks = carried_set()
    trial = drawn(tasks, 3, Halving.TEMPLATE)
    assert sorted(trial.asked + trial.never) == list(range(len(tasks.queries)))
    assert len(trial.asked) == len(tasks.queries) // 2
    of = [
        {one for query in half for one in tasks.right[query]} for half in (trial.asked, trial.never)
    ]
    assert not of[0] & of[1]
    by_query = drawn(tasks, 3)
    of = [
        {one for query in half for one in tasks.right[query]}
        for half in (by_query.asked, by_query.never)
    ]
    assert of[0] & of[1]


def test_queries_that_share_a_pattern_through_others_stay_together():
    linked = replace(
        TASKS, right=(frozenset({0}), frozenset({1}), frozenset({0, 1}), frozenset({2}))
    )
    trial = drawn(linked, 1, Halving.TEMPLATE)
    assert {trial.asked, trial.never} == {(0, 1, 2), (3,)}
    with pytest.raises(EvalDataError, match="halved"):
        drawn(replace(TASKS, right=(frozenset({0}),) * 4), 1, Halving.TEMPLATE)
