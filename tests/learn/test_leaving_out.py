"""Numbers of ranking fitted with one set left out."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from lot_grpc.domain.ranking import RankingWeights
from tests.learn import leaving_out
from tests.learn.__main__ import main
from tests.learn.leaving_out import Reached, best, leave_out, tried
from tests.learn.made import POOLS, TASKS


def test_the_served_numbers_are_tried_first_and_once():
    numbers = tried()
    assert numbers[0] == RankingWeights()
    assert numbers.count(RankingWeights()) == 1


def test_the_worst_set_decides_first_and_what_is_met_by_far_counts_no_more():
    fine, poor, far = Reached(0.75, 0.01, 0.6), Reached(0.6, 0.0, 0.6), Reached(0.9, 0.2, 0.9)
    assert best([[fine, poor], [fine, fine]]) == 1
    assert best([[poor, far], [fine, fine]]) == 1
    assert best([[fine, fine], [far, far]]) == 0


@pytest.mark.parametrize("missed", [Reached(0.6, 0, 0.6), Reached(0.7, -0.02, 0.6)])
def test_each_target_counts(missed):
    assert missed.margin < 0 < Reached(0.7, 0.0, 0.6).margin


def test_a_set_is_told_with_what_the_others_chose(monkeypatch):
    """Two sets that are one: what one chooses, the other would have chosen too."""
    numbers = [RankingWeights(), RankingWeights(learned=0.0)]
    monkeypatch.setattr(leaving_out, "tried", lambda: numbers)
    other = replace(TASKS, name="other")
    with ThreadPoolExecutor(1) as workers:
        sets = [(TASKS, POOLS), (other, POOLS)]
        done = list(leave_out(sets, 60, (1,), workers))
    assert [one.name for one in done] == ["tiny", "other"]
    assert all(one.chosen == RankingWeights() for one in done)
    assert all(one.reached == one.served for one in done)


def test_one_set_cannot_be_left_out(capsys):
    assert main(["--leave-one-out"]) == 2
    assert "twice" in capsys.readouterr().err
