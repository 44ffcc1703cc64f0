"""Advice, insights, and the page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.performance import (
    AdviceKind,
    InsightKind,
    PerformanceReport,
    advice_on,
    insights_of,
)
from lot_grpc.domain.performance_page import page_of
from lot_grpc.domain.spans import span
from lot_grpc.domain.trends import CategoryTrend, Change, NamedCount, TrendDirection

DECLINING = Change(TrendDirection.DECLINING, 0.9, 0.7, 0.582)


def trend(
    category: str = "ops",
    successes: int = 20,
    seconds: float | None = None,
    change: Change | None = None,
    best: tuple[NamedCount, ...] = (),
) -> CategoryTrend:
    return CategoryTrend(category, 1234, 20, successes, seconds, best, 20, change or Change())


def report(*trends: CategoryTrend, total: int = 1234, **named: object) -> PerformanceReport:
    return PerformanceReport(
        **{
            "namespace": "team",
            "generate_time": 1_700_000_000_000_000,
            "total": total,
            "successes": total // 2,
            "average_duration": 42.0 if total else None,
            "trends": trends,
            "advice": advice_on(trends),
            "insights": (),
            **named,
        }  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("given", "kinds"),
    [
        (trend(successes=14), [AdviceKind.STABLE]),  # .7 is not under .7
        (trend(successes=13), [AdviceKind.LOW_SUCCESS]),
        (trend(seconds=300.0), [AdviceKind.STABLE]),
        (trend(seconds=300.1), [AdviceKind.SLOW]),
        (trend(change=DECLINING), [AdviceKind.DECLINING]),
        (trend(change=Change(TrendDirection.IMPROVING, 0.1, 0.9, 0.001)), [AdviceKind.STABLE]),
        (
            trend(successes=1, seconds=999, change=DECLINING),
            [AdviceKind.LOW_SUCCESS, AdviceKind.DECLINING, AdviceKind.SLOW],
        ),
    ],
)
def test_advice_follows_the_seeds_bounds(given, kinds):
    assert [one.kind for one in advice_on([given])] == kinds


def test_advice_says_what_it_is_about_and_whether_it_may_be_chance():
    low, declining = advice_on([trend("", successes=10, change=DECLINING)])
    assert low.category == ""
    assert low.message == (
        "Improve tasks without a category: 10 of the latest 20 succeeded (50.0%; 95 % interval "
        "29.9% to 70.1%)."
    )
    assert declining.message.endswith(
        "success rate of 90.0%, the newer half of 70.0%; that may be chance (p = 0.58)."
    )
    sure = Change(TrendDirection.DECLINING, 0.9, 0.2, 0.001)
    assert "chance" not in advice_on([trend(change=sure)])[0].message


def test_insights_are_one_approach_three_factors_three_tools():
    names = [NamedCount(name, 9) for name in "abcd"]
    insights = insights_of(names, names, names)
    assert [(one.kind, one.name) for one in insights] == [
        (InsightKind.APPROACH, "a"),
        *((InsightKind.SUCCESS_FACTOR, name) for name in "abc"),
        *((InsightKind.TOOL, name) for name in "abc"),
    ]
    assert insights[0].message == 'Most successful approach: "a" (9).'


def test_the_page_is_a_page():
    shown = trend(
        "ops", 13, 75.0, Change(TrendDirection.DECLINING, 0.9, 0.4, 0.057), (NamedCount("x", 9),)
    )
    names = [NamedCount("plan", 600)]
    page = page_of(report(shown, trend(""), insights=insights_of(names, [], [])))
    assert page == (
        """# Performance of team

2023-11-14 22:13 UTC. Ended: 1,234; succeeded: 617 (50.0%); 42 s on average.

## Categories

| category | | success | 95 % interval | change | average time | ended | best approach |
| --- | --- | ---: | --- | --- | ---: | ---: | --- |
| ops | ↓ | 65.0% of 20 | 43.3% to 81.9% | 90.0% to 40.0%, p = 0.057 | 1 min 15 s | 1,234 | x (9) |
| (none) | · | 100.0% of 20 | 83.9% to 100.0% |  |  | 1,234 |  |

↑ improving, ↓ declining, → stable, · under 10 episodes; a change with p of 0.05 or more may be """
        """chance.

## Advice

- Improve "ops" tasks: 13 of the latest 20 succeeded (65.0%; 95 % interval 43.3% to 81.9%).
- Look into "ops" tasks: of the latest 20, the older half had a success rate of 90.0%, the newer """
        """half of 40.0%; that may be chance (p = 0.06).

## What worked

- Most successful approach: "plan" (600).
"""
    )


def test_the_page_of_nothing_says_so():
    assert "No episode has ended." in page_of(report(total=0))


@given(st.text(max_size=200), st.text(max_size=200))
def test_no_name_breaks_the_page(category, approach):
    page = page_of(report(trend(category, best=(NamedCount(approach, 3),))))
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert len(rows) == 3
    bars = [row.replace("\\\\", "").replace("\\|", "").count("|") for row in rows]
    assert bars == [9, 9, 9]


def test_a_name_is_no_markup():
    page = page_of(report(trend("<b>[x](y) | `z`\n# h")))
    assert "\\<b\\>\\[x\\](y) \\| \\`z\\` \\# h" in page


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0123, "0.012 s"),
        (3.14, "3.1 s"),
        (42.4, "42 s"),
        (59.6, "1 min"),
        (250, "4 min 10 s"),
        (3600, "1 h"),
        (3660, "1 h 1 min"),
        (90_000, "1 d 1 h"),
        (86_400 * 2000, "2,000 d"),
    ],
)
def test_spans_are_said_as_people_do(seconds, said):
    assert span(seconds) == said
