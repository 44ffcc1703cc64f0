"""A performance report as a Markdown page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from lot_grpc.domain.adoption import Adoption, HoldoutArm, HoldoutComparison, adoption_text
from lot_grpc.domain.counting import share_text
from lot_grpc.domain.holdout import gain_text
from lot_grpc.domain.performance import PerformanceReport
from lot_grpc.domain.spans import span
from lot_grpc.domain.trends import CategoryTrend, Change, TrendDirection

ARROWS = {
    TrendDirection.IMPROVING: "↑",
    TrendDirection.DECLINING: "↓",
    TrendDirection.STABLE: "→",
    TrendDirection.INSUFFICIENT_DATA: "·",
}
_LONGEST_NAME = 60
"""Of a name in a table; the rest is cut, with a sign."""
_MARKED = re.compile(r"([\\`*_{}\[\]<>|~#&])")


def page_of(report: PerformanceReport) -> str:
    """The whole report. Names given by callers are escaped."""
    blocks = [f"# Performance of {_plain(report.namespace)}", _in_all(report)]
    if report.trends:
        blocks.append("## Categories\n\n" + "\n".join(_table(report.trends)))
        blocks.append(
            "↑ improving, ↓ declining, → stable, · under 10 episodes; a change with p of 0.05 or "
            "more may be chance."
        )
    blocks.append("## Advice\n\n" + _items(one.message for one in report.advice))
    if report.insights:
        blocks.append("## What worked\n\n" + _items(one.message for one in report.insights))
    if report.adoption is not None and report.adoption.retrievals:
        blocks.append("## Use of what was recalled\n\n" + "\n".join(_adopted(report.adoption)))
    if report.holdout is not None:
        blocks.append(f"## What learning gains\n\n{_compared(report.holdout)}")
    return "\n\n".join(blocks) + "\n"


def _adopted(adoption: Adoption) -> Iterator[str]:
    first, last = (f"{_time(one):%Y-%m-%d}" for one in (adoption.period.start, adoption.period.end))
    made = adoption_text(adoption.retrievals, adoption.with_outcome, truncated=adoption.truncated)
    yield f"{first} to {last}: {made}"
    yield ""
    yield "| kind | shown | used | helped |"
    yield "| --- | ---: | ---: | ---: |"
    for one in adoption.kinds:
        used, helped = share_text(one.used, one.shown), share_text(one.helped, one.used)
        yield f"| {one.resource_kind} | {one.shown:,} | {used} | {helped} |"


def _compared(comparison: HoldoutComparison) -> str:
    arms = (
        f"Recalls with learning: {_arm(comparison.learned)}. Held out: {_arm(comparison.holdout)}."
    )
    return f"{arms} {gain_text(comparison.gain)}"


def _arm(arm: HoldoutArm) -> str:
    mean = arm.values.mean
    went = "" if mean is None else f", mean value {mean:.3f}"
    return f"{arm.retrievals:,}, {arm.values.count:,} with an outcome{went}"


def _time(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)


def _in_all(report: PerformanceReport) -> str:
    heading = f"{_time(report.generate_time):%Y-%m-%d %H:%M} UTC. "
    if report.success_rate is None:
        return heading + "No episode has ended."
    heading += (
        f"Ended: {report.total:,}; succeeded: {report.successes:,} ({report.success_rate:.1%})"
    )
    if report.average_duration is not None:
        heading += f"; {span(report.average_duration)} on average"
    return heading + "."


def _table(trends: Iterable[CategoryTrend]) -> Iterator[str]:
    yield "| category | | success | 95 % interval | change | average time | ended | best approach |"
    yield "| --- | --- | ---: | --- | --- | ---: | ---: | --- |"
    for trend in trends:
        low, high = trend.interval
        best = trend.best_approaches[:1]
        cells = (
            _plain(trend.category) or "(none)",
            ARROWS[trend.change.direction],
            f"{trend.success_rate:.1%} of {trend.sample_count}",
            f"{low:.1%} to {high:.1%}",
            _changed(trend.change),
            "" if trend.average_duration is None else span(trend.average_duration),
            f"{trend.total:,}",
            "".join(f"{_plain(one.name)} ({one.count})" for one in best),
        )
        yield f"| {' | '.join(cells)} |"


def _changed(change: Change) -> str:
    if change.p_value is None:
        return ""
    return f"{change.earlier_rate:.1%} to {change.later_rate:.1%}, p = {change.p_value:.2g}"


def _items(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {_escaped(sentence)}" for sentence in sentences)


def _plain(name: str) -> str:
    """A name in one short line."""
    line = " ".join(name.split())
    cut = line if len(line) <= _LONGEST_NAME else f"{line[: _LONGEST_NAME - 1]}…"
    return _escaped(cut)


def _escaped(text: str) -> str:
    return _MARKED.sub(r"\\\1", " ".join(text.split()))
