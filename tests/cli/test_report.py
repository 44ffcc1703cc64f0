"""`lot-grpc report` against a server that answers as it is told."""

# ruff: noqa: N802 - methods are named like their RPCs

from __future__ import annotations

import json
from dataclasses import replace

import grpc
import pytest
from rich.cells import cell_len

from lot_grpc.cli.app import app as command_line
from lot_grpc.domain.adoption import (
    DAY,
    Adoption,
    HoldoutArm,
    HoldoutComparison,
    KindAdoption,
    Period,
)
from lot_grpc.domain.holdout import Arm
from lot_grpc.domain.performance import PerformanceReport, advice_on, insights_of
from lot_grpc.domain.trends import CategoryTrend, Change, NamedCount, TrendDirection
from lot_grpc.pb.lot.v1 import learning_service_pb2_grpc as pb_grpc
from lot_grpc.pb.lot.v1 import performance_pb2 as pb
from lot_grpc.server.codec.learning import report_to_pb
from tests.cli.scripted import NASTY, served
from tests.cli.test_episodes import steering


def _trend(category: str, successes: int, change: Change, best: str = "") -> CategoryTrend:
    approaches = (NamedCount(best, 9),) if best else ()
    return CategoryTrend(category, 1500, 20, successes, 75.0, approaches, 1000, change)


TRENDS = (
    _trend("[red]ops", 20, Change(TrendDirection.IMPROVING, 0.5, 0.9, 0.001), "[b]plan"),
    _trend("", 13, Change(TrendDirection.DECLINING, 0.9, 0.7, 0.58)),
    _trend("ui", 20, Change(TrendDirection.STABLE, 1.0, 1.0, 1.0)),
    _trend("new", 20, Change()),
)
PLAN = [NamedCount("[b]plan", 900)]
FULL = PerformanceReport(
    "team", 1, 6000, 5000, 42.0, TRENDS, advice_on(TRENDS), insights_of(PLAN, [], [])
)
EMPTY = PerformanceReport("team", 1, 0, 0, None, (), advice_on(()), ())


class LearningService(pb_grpc.LearningServiceServicer):
    """Answers with one report, or fails with one code."""

    def __init__(self) -> None:
        self.report = FULL
        self.fails: grpc.StatusCode | None = None
        self.requests: list[pb.GetPerformanceReportRequest] = []

    def GetPerformanceReport(self, request, context):
        self.requests.append(request)
        if self.fails:
            context.abort(self.fails, "what to do next")
        return pb.GetPerformanceReportResponse(report=report_to_pb(self.report))


@pytest.fixture
def service():
    return LearningService()  # type: ignore[abstract]  # the rest is not asked


@pytest.fixture
def address(service):
    with served(pb_grpc.add_LearningServiceServicer_to_server, service) as address:
        yield address


def test_people_see_rates_with_arrows_and_names_as_they_are(runner, service, address):
    result = runner.invoke(command_line, ["report", "-a", address, "-n", "team", "--sample", "7"])
    assert result.exit_code == 0, result
    assert (service.requests[0].namespace, service.requests[0].sample_size) == ("team", 7)
    shown = result.stdout
    assert shown.startswith("Performance of team\n")
    assert "6,000 episodes ended, 5,000 succeeded (83.3%); 42 s on average." in shown
    rows = {line.split()[0]: line for line in shown.splitlines() if line.strip()}
    for name, parts in {
        "[red]ops": ("↑ improving", "100.0% of 20", "83.9% to 100.0%", "0.001", "[b]plan (9)"),
        "(none)": ("↓ declining", "65.0% of 20", "0.58", "1 min 15 s", "1,500"),
        "ui": ("→ stable",),
        "new": ("· too few",),
    }.items():
        for part in parts:
            assert part in rows[name]
    assert "Improve tasks without a category" in shown
    assert 'Most successful approach: "[b]plan" (900).' in shown


@pytest.mark.parametrize("width", [50, 110])
def test_nothing_of_a_stored_text_steers_the_terminal(runner, service, address, width):
    trends = (_trend(NASTY, 13, Change(TrendDirection.DECLINING, 0.9, 0.7, 0.58), NASTY),)
    service.report = PerformanceReport(
        f"team{NASTY}", 1, 6000, 5000, 42.0, trends, advice_on(trends),
        insights_of([NamedCount(NASTY, 900)], [], []),
    )  # fmt: skip
    options = ["-a", address, "-n", f"t{NASTY}"]
    result = runner.invoke(command_line, ["report", *options], env={"COLUMNS": str(width)})
    assert result.exit_code == 0, result
    assert steering(result.output) == []
    assert "\\x1b]0;owned\\x07" in result.stdout
    page = runner.invoke(
        command_line, ["report", "--markdown", *options], env={"FORCE_COLOR": "1", "TERM": "xterm"}
    )
    assert steering(page.output) == []
    assert max(cell_len(line) for line in result.stdout.splitlines()) <= width


def test_json_has_every_field(runner, address):
    result = runner.invoke(command_line, ["report", "-a", address, "--json"])
    report = json.loads(result.stdout)
    assert report["total_count"] == "6000"
    assert report["by_category"]["ui"] == "1500"
    assert report["trends"][3]["direction"] == "TREND_DIRECTION_INSUFFICIENT_DATA"
    assert "change_p_value" not in report["trends"][3]
    assert report["trends"][0]["change_significant"] is True
    assert report["trends"][1]["change_significant"] is False


def test_markdown_is_the_page_of_the_server(runner, address):
    result = runner.invoke(command_line, ["report", "-a", address, "--markdown"])
    assert result.stdout == report_to_pb(FULL).markdown


def test_without_episodes_it_says_so(runner, service, address):
    service.report = EMPTY
    result = runner.invoke(command_line, ["report", "-a", address])
    assert result.exit_code == 0
    assert "Performance of your own namespace\n  No episode has ended.\n" in result.stdout
    assert "category" not in result.stdout.split("Advice")[0]


def test_json_and_markdown_exclude_each_other(runner, service, address):
    result = runner.invoke(command_line, ["report", "-a", address, "--json", "--markdown"])
    assert result.exit_code == 2
    assert "mutually exclusive" in result.stderr
    assert service.requests == []


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, ""),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "--timeout waits longer"),
    ],
)
def test_a_refusal_is_told_as_the_server_says_it(runner, service, address, code, hint):
    service.fails = code
    result = runner.invoke(command_line, ["report", "-a", address])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert f"error: {address}: {code.name}: what to do next\n" in result.stderr
    assert hint in result.stderr


def test_a_server_that_is_not_there_is_told_with_a_hint(runner, service, address, monkeypatch):
    service.fails = grpc.StatusCode.UNAVAILABLE
    monkeypatch.setenv("LOT_ADDRESS", address)
    result = runner.invoke(command_line, ["report"])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {address}: UNAVAILABLE\nhint: is the server running")


def test_adoption_and_the_gain_are_shown(runner, service, address):
    kinds = (KindAdoption("pattern", 40, 10, 9), KindAdoption("memory", 5, 0, 0))
    arms = HoldoutArm(90, Arm(80, 60.0, 60.0)), HoldoutArm(30, Arm(20, 10.0, 10.0))
    service.report = replace(
        EMPTY,
        adoption=Adoption(Period(0, 7 * DAY), 45, 12, True, kinds, ()),
        holdout=HoldoutComparison(*arms),
    )
    options = ["--after", "2026-03-01T12:00Z", "--before", "2026-03-02T12:00Z"]
    result = runner.invoke(command_line, ["report", "-a", address, *options])
    assert result.exit_code == 0, result
    [request] = service.requests
    assert request.end_time.seconds - request.start_time.seconds == 24 * 3600
    shown = result.stdout
    assert ": 45 retrievals, 12 with an outcome; only the latest are counted." in shown
    rows = {line.split()[0]: line.split()[1:] for line in shown.splitlines() if line.split()}
    assert rows["pattern"] == ["40", "10", "(25.0%)", "9", "(90.0%)"]
    assert rows["memory"] == ["5", "0", "(0.0%)", "0"]
    assert rows["held"][-3:] == ["30", "20", "0.500"]
    assert "Gain: +0.250 (95 % interval" in shown


def test_without_outcomes_in_both_arms_there_is_no_gain(runner, service, address):
    none = HoldoutArm(3, Arm())
    service.report = replace(EMPTY, holdout=HoldoutComparison(none, none))
    result = runner.invoke(command_line, ["report", "-a", address])
    assert "The gain is unknown until both have outcomes." in result.stdout
