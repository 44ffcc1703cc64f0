from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import Pattern, PatternKind, PatternType
from lot_grpc.domain.query import PatternFilter
from tests.services.world import NS, open_world, outcome, save

drafts = st.fixed_dictionaries(
    {
        "language": st.sampled_from(["", "python", "go"]),
        "category": st.sampled_from(["", "web"]),
        "task_type": st.sampled_from(["", "api", "etl"]),
        "kind": st.sampled_from(PatternKind),
        "pattern_type": st.sampled_from(PatternType),
        "pinned": st.booleans(),
        "initial_success_rate": st.sampled_from([0.0, 0.3, 0.5005, 1.0]),
    }
)
uses = st.lists(st.sampled_from(Outcome), max_size=3)
filters = st.builds(
    PatternFilter,
    languages=st.sampled_from([(), ("python",)]),
    kinds=st.sampled_from([(), (PatternKind.TASK, PatternKind.CODE)]),
    min_usage_count=st.integers(0, 1),
    pinned=st.none() | st.booleans(),
)


def counted(patterns: list[Pattern], name: str) -> dict[str, int]:
    values = (getattr(pattern.content, name) for pattern in patterns)
    return dict(Counter(str(value) for value in values if value))


def mean(patterns: list[Pattern]) -> Any:
    if not patterns:
        return None
    rates = [pattern.outcomes.success_rate for pattern in patterns]
    return pytest.approx(sum(rates) / len(rates), abs=0.0011)


@given(st.lists(st.tuples(drafts, uses), max_size=6), filters)
def test_sums_are_what_reading_all_patterns_comes_to(made, asked):
    async def run() -> None:
        world = await open_world()
        for number, (fields, outcomes) in enumerate(made):
            await save(world, f"task {number}", pattern_id=f"p{number}", **fields)
            for one in outcomes:
                await outcome(world, f"p{number}", outcome=one)
        page = await world.services.patterns.patterns.list_page(NS, asked, 100, None)
        there = page.items
        stats = await world.services.patterns.patterns.stats(NS, asked)
        used = [pattern for pattern in there if pattern.outcomes.usage_count]
        rates = [pattern.outcomes.success_rate for pattern in there]
        assert (stats.total, stats.used) == (len(there), len(used))
        assert stats.pinned == sum(pattern.content.pinned for pattern in there)
        assert stats.average_success_rate == mean(there)
        assert stats.average_used_success_rate == mean(used)
        if rates:
            assert stats.min_success_rate == pytest.approx(min(rates), abs=0.0005001)
            assert stats.max_success_rate == pytest.approx(max(rates), abs=0.0005001)
        for name in ("usage", "success", "failure", "partial"):
            total = sum(getattr(pattern.outcomes, f"{name}_count") for pattern in there)
            assert getattr(stats, f"total_{name}") == total
        if used:
            shares = sum(pattern.outcomes.weighted_successes for pattern in there)
            assert stats.success_share == pytest.approx(shares / stats.total_usage)
            most = max(pattern.outcomes.usage_count for pattern in there)
            newest = next(p for p in there if p.outcomes.usage_count == most)
            assert stats.most_used_pattern_id == newest.pattern_id
        else:
            assert (stats.success_share, stats.most_used_pattern_id) == (None, "")
        for name in ("language", "category", "kind", "pattern_type", "task_type"):
            assert getattr(stats, f"by_{name}") == counted(there, name)

    asyncio.run(run())
