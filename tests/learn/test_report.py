from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from tests.learn import report, tables
from tests.learn.made import ROWS, reported
from tests.learn.measuring import Wanted


def verdicts(**named) -> list[bool]:
    return [one.met for one in report.targets(reported(**named))]


def test_the_targets_are_met_from_their_bounds_on():
    assert verdicts(asked=0.661, never=0.391, again=0.601) == [True] * 4


@pytest.mark.parametrize(
    ("place", "named"),
    [(0, {"asked": 0.65}), (1, {"never": 0.389}), (2, {"again": 0.59}), (3, {"overtaken": 1})],
)
def test_each_target_can_be_missed(place, named):
    reached = {"asked": 0.7, "never": 0.45, "again": 0.7}
    assert [n for n, met in enumerate(verdicts(**{**reached, **named})) if not met] == [place]


def test_figures_are_means_over_the_seeds():
    rows = {row.name: row for row in report.figures(reported(asked=0.6, again=0.5))}
    assert list(rows) == ROWS
    balanced = rows["BALANCED"]
    assert (balanced.asked, balanced.way) == pytest.approx((0.6, 0.5))
    assert balanced.gain == pytest.approx(0.05)
    assert balanced.again == pytest.approx(0.25)
    assert (balanced.early or {})[50] == pytest.approx((0.2, 0.05))
    assert (rows["RELEVANCE"].way, rows["oracle"].way) == pytest.approx((0.0, 1.0))


def test_a_gate_is_told_with_the_weight_and_without():
    none = report.margins(reported())[-1]
    assert (none.way, none.gain) == pytest.approx((0.5, 0.1))
    assert (none.free_way, none.free_gain) == pytest.approx((0.25, -0.2))


def test_the_tables_name_every_ranking_and_every_target():
    told = io.StringIO()
    console = Console(file=told, width=120)
    tables.show([reported(overtaken=2)], console)
    console.print(tables.targets_table([reported(overtaken=2)]))
    text = told.getvalue()
    for name in ROWS:
        assert name in text
    assert text.count("missed") == 3
    assert "28 of 30 recalls" in text
    assert "by the formulas alone" in " ".join(text.split())


def test_json_has_all_of_it():
    told = json.loads(tables.as_json([reported()]))["runs"][0]
    assert told["settings"]["reorder_margin"] == 0.15
    assert [one["name"] for one in told["rankings"]][3] == "BALANCED"
    assert len(told["measured"]) == 2
    assert told["asks"] == 60


def test_looks_are_at_the_ends_and_at_the_change():
    wanted = Wanted(15_000, (1,))
    assert wanted.steady[:3] == (0, 50, 500)
    assert wanted.steady[-1] == 15_000
    assert wanted.change_at in wanted.changed
    assert wanted.changed[-1] == 17_500
    assert list(wanted.changed) == sorted(set(wanted.changed))
    few = Wanted(2, (1,))
    assert (few.steady[-1], few.changed[-1]) == (2, 2)
