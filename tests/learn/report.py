"""What comes of a run: means over the seeds, and whether the targets are met."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.learn.measuring import BALANCED, EARLY, RELEVANCE, Measured, Report
from tests.learn.replaying import Point
from tests.learn.worlds import mean, way

ORACLE = "oracle"
WAY_ASKED, GAIN_NEVER, WAY_AFTER = 0.65, -0.01, 0.50
"""To be reached with BALANCED: of the way to the oracle, above RELEVANCE, of the way again."""


@dataclass(frozen=True)
class Figures:
    """A ranking's means over the seeds. None: not measured for it.

    ``way`` and ``again`` go from RELEVANCE (0) to the oracle (1) on queries asked before, while
    the chances stay and after they changed; ``gain`` is above RELEVANCE on those never asked.
    ``early``: gains on queries asked, and never asked, after so many asks.
    """

    name: str
    asked: float
    way: float
    never: float
    gain: float
    again: float | None = None
    early: dict[int, tuple[float, float]] | None = None


@dataclass(frozen=True)
class Margin:
    """Where a margin leads, with the weight as it is and with what was learned alone deciding."""

    margin: float
    way: float
    gain: float
    free_way: float
    free_gain: float


@dataclass(frozen=True)
class Target:
    """One thing that has to hold."""

    what: str
    wanted: str
    reached: str
    met: bool


def figures(report: Report) -> list[Figures]:
    """Every ranking, from RELEVANCE to the oracle."""
    rows = [_bound(report, RELEVANCE, lambda one: one.before.relevance)]
    rows += [_learned(report, name) for name in report.measured[0].learned]
    return [*rows, _bound(report, ORACLE, lambda one: one.before.oracle)]


def margins(report: Report) -> list[Margin]:
    """The trade-off, margin by margin."""
    found = []
    for place, first in enumerate(report.measured[0].margins):
        rows = [(one, one.margins[place]) for one in report.measured]
        found.append(
            Margin(
                first.margin,
                mean([_way(one, gated.weighted) for one, gated in rows]),
                mean([_gain(one, gated.weighted) for one, gated in rows]),
                mean([_way(one, gated.free) for one, gated in rows]),
                mean([_gain(one, gated.free) for one, gated in rows]),
            )
        )
    return found


def targets(report: Report) -> list[Target]:
    """What BALANCED has to reach, and what must hold of every recall."""
    balanced = next(row for row in figures(report) if row.name == BALANCED)
    again = balanced.again or 0.0
    after = report.wanted.asks_with_change - report.wanted.change_at
    return [
        Target(
            "queries asked before: of the way from RELEVANCE to the oracle",
            f"≥ {WAY_ASKED:.0%}",
            f"{balanced.way:.1%}",
            balanced.way >= WAY_ASKED,
        ),
        Target(
            "queries never asked: above RELEVANCE",
            f"≥ {GAIN_NEVER:+.3f}",
            f"{balanced.gain:+.3f}",
            balanced.gain >= GAIN_NEVER,
        ),
        Target(
            f"{after:,} asks after the change: of the way again",
            f"≥ {WAY_AFTER:.0%}",
            f"{again:.1%}",
            again >= WAY_AFTER,
        ),
        *_first_stays_first(report),
    ]


def _first_stays_first(report: Report) -> list[Target]:
    """Not for the formulas alone, which recall nothing."""
    if report.wanted.formulas:
        return []
    checks = report.checks
    decay = f"{checks.checked - checks.overtaken:,} of {checks.checked:,} recalls"
    return [
        Target(
            "a hit that leads by more than the margin comes first",
            "always",
            decay if checks.checked else "none led by so much",
            not checks.overtaken,
        )
    ]


def _learned(report: Report, name: str) -> Figures:
    last = [(one, one.learned[name].steady[-1]) for one in report.measured]
    early = {}
    for asks in EARLY:
        points = [(one, _at(one.learned[name].steady, asks)) for one in report.measured]
        found = [(one, point) for one, point in points if point]
        if found:
            asked = mean([point.asked - one.before.relevance.asked for one, point in found])
            early[asks] = asked, mean([_gain(one, point) for one, point in found])
    return Figures(
        name,
        mean([point.asked for _, point in last]),
        mean([_way(one, point) for one, point in last]),
        mean([point.never for _, point in last]),
        mean([_gain(one, point) for one, point in last]),
        mean([_again(one, one.learned[name].changed[-1]) for one in report.measured]),
        early,
    )


def _bound(report: Report, name: str, point_of: Callable[[Measured], Point]) -> Figures:
    points = [(one, point_of(one)) for one in report.measured]
    return Figures(
        name,
        mean([point.asked for _, point in points]),
        mean([_way(one, point) for one, point in points]),
        mean([point.never for _, point in points]),
        mean([_gain(one, point) for one, point in points]),
    )


def _at(points: Sequence[Point], asks: int) -> Point | None:
    return next((point for point in points if point.asks == asks), None)


def _way(one: Measured, point: Point) -> float:
    return way(point.asked, one.before.relevance.asked, one.before.oracle.asked)


def _again(one: Measured, point: Point) -> float:
    return way(point.asked, one.after.relevance.asked, one.after.oracle.asked)


def _gain(one: Measured, point: Point) -> float:
    return point.never - one.before.relevance.never
