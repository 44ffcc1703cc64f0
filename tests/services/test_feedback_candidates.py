from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.feedback import teaching_score
from lot_grpc.domain.pattern import PatternKind
from lot_grpc.domain.query import PatternFilter
from lot_grpc.ports import Record
from lot_grpc.services.patterns import feedback_candidates as module
from lot_grpc.services.records.collections import PATTERNS
from lot_grpc.services.records.patterns import pattern_point
from tests.services.world import NS, World, feedback, open_world, outcome, save


async def used(world: World, pattern_id: str, times: int, **named) -> None:
    """A pattern used so often: written as its outcomes would have it, without their log."""
    await save(world, pattern_id, pattern_id=pattern_id, **named)
    await world.store.update(
        PATTERNS, NS, pattern_point(NS, pattern_id), set={"usage_count": times}
    )


async def find(world: World, limit: int = 10, **asked) -> list[str]:
    found = await world.services.patterns.feedback_candidates.find(
        NS, PatternFilter(**asked), limit
    )
    return [pattern.pattern_id for pattern, _ in found.patterns]


async def test_the_more_used_and_the_less_sure_come_first(world):
    await used(world, "much", 100)
    await used(world, "little", 4)
    await used(world, "surer", 100, confidence=0.9)
    await used(world, "sure", 100, confidence=1.0)
    await used(world, "not", 100, confidence=0.0)
    await used(world, "unused", 0)
    found = await world.services.patterns.feedback_candidates.find(NS, PatternFilter(), 10)
    assert [(p.pattern_id, round(score, 6)) for p, score in found.patterns] == [
        ("much", 10), ("surer", 2), ("little", 2),
    ]  # fmt: skip
    assert (found.examined, found.exact) == (5, True)


async def test_what_got_feedback_goes_back(world):
    for name in ("one", "two"):
        await save(world, name, pattern_id=name)
        await outcome(world, name)
    assert await find(world) == ["two", "one"]
    await feedback(world, "two", helpful=True)
    assert await find(world) == ["one", "two"]


async def test_the_filter_holds_and_no_other_namespace_is_looked_at(world):
    await used(world, "python", 3, language="python")
    await used(world, "go", 5, language="go", kind=PatternKind.CODE)
    assert await find(world, languages=("py",)) == ["python"]
    assert await find(world, kinds=(PatternKind.CODE,)) == ["go"]
    assert await find(world, min_usage_count=4) == ["go"]
    assert (
        await world.services.patterns.feedback_candidates.find("x", PatternFilter(), 9)
    ).patterns == []


async def test_no_more_is_read_than_can_matter_and_what_is_not_is_said(world, monkeypatch):
    monkeypatch.setattr(module, "_BATCH", 4)
    monkeypatch.setattr(module, "MOST_EXAMINED", 12)
    for number in range(30):
        await used(world, f"p{number:02}", 100 - number)
    few = await world.services.patterns.feedback_candidates.find(NS, PatternFilter(), 3)
    assert [p.pattern_id for p, _ in few.patterns] == ["p00", "p01", "p02"]
    assert (few.examined, few.exact) == (4, True)
    many = await world.services.patterns.feedback_candidates.find(NS, PatternFilter(), 20)
    assert [p.pattern_id for p, _ in many.patterns] == [f"p{n:02}" for n in range(12)]
    assert (many.examined, many.exact) == (12, False)
    all_of_them = await world.services.patterns.feedback_candidates.find(
        NS, PatternFilter(min_usage_count=90), 20
    )
    assert (all_of_them.examined, all_of_them.exact) == (11, True)


made = st.lists(st.tuples(st.integers(0, 6), st.sampled_from([0.0, 0.3, 0.5, 0.9])), max_size=14)


@given(made, st.integers(1, 5))
def test_the_early_stop_finds_what_looking_at_all_finds(patterns, limit):
    async def run() -> None:
        world = await open_world()
        for number, (times, confidence) in enumerate(patterns):
            await used(world, f"p{number:02}", times, confidence=confidence)
        found = await world.services.patterns.feedback_candidates.find(NS, PatternFilter(), limit)
        scored = [
            (teaching_score(times, confidence), times, number)
            for number, (times, confidence) in enumerate(patterns)
        ]
        best = sorted((one for one in scored if one[0] > 0), reverse=True)[:limit]
        assert [(p.pattern_id, score) for p, score in found.patterns] == [
            (f"p{number:02}", score) for score, _, number in best
        ]
        assert found.exact

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BATCH", 3)
        asyncio.run(run())


def test_a_record_that_leaves_the_confidence_out_has_the_default():
    best = module._Best(1, [])
    best.add(Record("x", NS, {"usage_count": 4, "sort_key": 1, "pattern_id": "p"}))
    assert best.worst() == 2
