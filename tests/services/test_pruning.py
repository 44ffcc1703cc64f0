from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lot_grpc.domain.errors import RequestInvalidError
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.domain.query import PatternFilter
from lot_grpc.ports import Record
from lot_grpc.services.patterns import pruner as module
from lot_grpc.services.patterns import ranked
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.patterns.pruner import Pruned, PruneDraft
from lot_grpc.services.patterns.ranked import all_but_the_best
from lot_grpc.services.records.collections import (
    FEEDBACK,
    OUTCOMES,
    PATTERNS,
    REQUESTS,
    TOMBSTONES,
)
from tests.services.invariants import check_invariants
from tests.services.world import NS, World, feedback, open_world, outcome, payloads, save


def prune(**named: Any) -> PruneDraft:
    criteria = named.pop("criteria", PatternFilter())
    return PruneDraft(criteria, **named)


async def used(world: World, pattern_id: str, kinds: str, **named: Any) -> None:
    """A pattern with outcomes: ``s``, ``f`` and ``p`` for each."""
    await save(world, f"task {pattern_id}", pattern_id=pattern_id, **named)
    outcomes = {"s": Outcome.SUCCESS, "f": Outcome.FAILURE, "p": Outcome.PARTIAL}
    for kind in kinds:
        await outcome(world, pattern_id, outcome=outcomes[kind])


async def left(world: World) -> list[str]:
    return sorted(row["pattern_id"] for row in await payloads(world, PATTERNS))


async def five(world: World) -> None:
    """From good to bad; one was never used, and the worst is pinned."""
    await used(world, "good", "ssss")
    await used(world, "fair", "sf")
    await used(world, "bad", "ff", language="python")
    await used(world, "new", "")
    await used(world, "pinned", "ffff", pinned=True)


async def test_what_is_bad_goes_and_what_is_pinned_or_untried_stays(world):
    await five(world)
    pruned = await world.services.patterns.pruner.prune(NS, prune(max_success_rate=0.6))
    assert (pruned.deleted, pruned.skipped, pruned.remaining) == (1, 0, 4)
    assert pruned.pattern_ids == ("bad",)
    assert await left(world) == ["fair", "good", "new", "pinned"]
    await check_invariants(world.store, NS)


async def test_a_rate_that_is_just_the_bound_goes(world):
    for name, rate in (("at", 0.3), ("above", 0.31)):
        await save(world, name, pattern_id=name, initial_success_rate=rate)
    pruned = await world.services.patterns.pruner.prune(NS, prune(max_success_rate=0.3))
    assert pruned.pattern_ids == ("at",)


async def test_only_those_tried_often_enough_are_touched(world):
    await five(world)
    prune_all = prune(max_success_rate=1.0, min_usage_count=2)
    pruned = await world.services.patterns.pruner.prune(NS, prune_all)
    assert pruned.pattern_ids == ("bad", "fair", "good")
    assert await left(world) == ["new", "pinned"]


async def test_the_best_are_kept_by_reliability_then_rate_then_newness(world):
    await five(world)
    await used(world, "newer", "")
    pruned = await world.services.patterns.pruner.prune(NS, prune(max_remaining=2, dry_run=True))
    assert pruned.pattern_ids == ("bad", "new", "newer")
    pruned = await world.services.patterns.pruner.prune(NS, prune(max_remaining=3))
    assert pruned.pattern_ids == ("bad", "new")
    assert await left(world) == ["fair", "good", "newer", "pinned"]
    # Those used less than asked for are not touched, nor do they take a place.
    pruned = await world.services.patterns.pruner.prune(
        NS, prune(max_remaining=1, min_usage_count=1)
    )
    assert pruned.pattern_ids == ("fair",)


async def test_both_criteria_delete_the_bad_and_the_surplus_of_the_rest(world):
    await five(world)
    pruned = await world.services.patterns.pruner.prune(
        NS, prune(max_success_rate=0.6, max_remaining=1)
    )
    assert pruned.pattern_ids == ("bad", "new", "fair")
    assert await left(world) == ["good", "pinned"]


async def test_only_what_the_filter_lets_through_and_no_other_namespace(world):
    await five(world)
    criteria = PatternFilter(languages=("py",))
    pruned = await world.services.patterns.pruner.prune(
        NS, prune(max_success_rate=1.0, criteria=criteria)
    )
    assert (pruned.pattern_ids, pruned.remaining) == (("bad",), 0)
    for other in (prune(max_success_rate=1.0), prune(max_remaining=1)):
        assert (await world.services.patterns.pruner.prune("elsewhere", other)).deleted == 0
    pinned = PatternFilter(pinned=True)
    pruned = await world.services.patterns.pruner.prune(
        NS, prune(max_success_rate=1.0, criteria=pinned)
    )
    assert (pruned.deleted, pruned.remaining) == (0, 1)


async def test_a_dry_run_says_what_a_run_does_and_deletes_nothing(world, monkeypatch):
    monkeypatch.setattr(module, "IDS_REPORTED", 2)
    await five(world)
    rows = await payloads(world, PATTERNS)

    def told(pruned: Pruned) -> tuple[Any, ...]:
        return (pruned.deleted, pruned.remaining, pruned.pattern_ids, pruned.oldest_remaining_time)

    dry = await world.services.patterns.pruner.prune(NS, prune(max_remaining=1, dry_run=True))
    assert await payloads(world, PATTERNS) == rows
    assert await payloads(world, TOMBSTONES) == []
    run = await world.services.patterns.pruner.prune(NS, prune(max_remaining=1))
    assert told(run) == told(dry)
    assert run.deleted == 3
    assert run.pattern_ids == ("bad", "new")


async def test_the_oldest_that_is_kept_is_told(world):
    begun = world.clock.now()
    await used(world, "old", "f")
    world.clock.advance(10)
    await used(world, "young", "s")
    draft = prune(max_success_rate=0.8, dry_run=True)
    assert (
        await world.services.patterns.pruner.prune(NS, draft)
    ).oldest_remaining_time == begun + 10_000_000
    await world.services.patterns.pruner.prune(NS, prune(max_success_rate=0.8))
    pruned = await world.services.patterns.pruner.prune(NS, prune(max_success_rate=0.8))
    assert (pruned.deleted, pruned.oldest_remaining_time) == (0, begun + 10_000_000)
    assert (
        await world.services.patterns.pruner.prune(NS, prune(max_success_rate=1.0))
    ).remaining == 0
    pruned = await world.services.patterns.pruner.prune(
        NS, prune(max_success_rate=1.0, dry_run=True)
    )
    assert pruned.oldest_remaining_time is None


async def test_no_criterion_is_refused_with_what_to_do(world):
    await five(world)
    for draft in (
        prune(),
        prune(min_usage_count=2),
        prune(criteria=PatternFilter(languages=("go",))),
    ):
        with pytest.raises(
            RequestInvalidError, match="set max_success_rate, max_remaining or both"
        ):
            await world.services.patterns.pruner.prune(NS, draft)
    assert len(await left(world)) == 5


async def test_all_that_hangs_on_a_pattern_goes_with_it(world):
    made = (await save(world, "by content")).pattern
    await outcome(world, made.pattern_id, outcome=Outcome.FAILURE)
    await feedback(world, made.pattern_id, helpful=False)
    await world.services.patterns.pruner.prune(NS, prune(max_success_rate=0.9))
    for collection in (PATTERNS, OUTCOMES, FEEDBACK, REQUESTS):
        assert await payloads(world, collection) == []
    assert (await save(world, "by content")).created


@pytest.mark.parametrize("change", ["edit", "outcome", "feedback", "pin"])
async def test_what_is_changed_while_it_is_at_work_is_spared(world, monkeypatch, change):
    await used(world, "a", "ff")
    await used(world, "b", "f")
    delete: Callable[[Record], Awaitable[bool]] = world.services.patterns.patterns.delete_as_seen

    async def changed_before(record: Record) -> bool:
        if record.payload["pattern_id"] == "b":
            if change == "outcome":
                await outcome(world, "b")
            elif change == "feedback":
                await feedback(world, "b", helpful=True)
            else:
                content = PatternContent("task b", title="new", pinned=change == "pin")
                edit = PatternEdit(content, frozenset({"title", "pinned"}))
                await world.services.patterns.patterns.update(NS, "b", edit, "")
        return await delete(record)

    monkeypatch.setattr(
        type(world.services.patterns.patterns),
        "delete_as_seen",
        lambda _, record: changed_before(record),
    )
    pruned = await world.services.patterns.pruner.prune(NS, prune(max_success_rate=0.9))
    assert (pruned.deleted, pruned.skipped, pruned.remaining) == (1, 1, 1)
    assert pruned.pattern_ids == ("a",)
    assert await left(world) == ["b"]
    await check_invariants(world.store, NS)


# --- laws -------------------------------------------------------------------------------------

made_patterns = st.lists(
    st.tuples(st.text("sfp", max_size=4), st.booleans(), st.floats(0, 1)), max_size=6
)
drafts = st.builds(
    prune,
    max_success_rate=st.none() | st.floats(0, 1),
    max_remaining=st.integers(0, 4),
    min_usage_count=st.integers(0, 3),
).filter(lambda draft: draft.max_success_rate is not None or draft.max_remaining)


@given(made_patterns, drafts)
def test_twice_changes_nothing_the_second_time_and_the_pinned_stay(patterns, draft):
    async def run() -> None:
        world = await open_world()
        for number, (kinds, pinned, rate) in enumerate(patterns):
            await used(world, f"p{number}", kinds, pinned=pinned, initial_success_rate=rate)
        await world.services.patterns.pruner.prune(NS, draft)
        rows = await payloads(world, PATTERNS)
        there = {row["pattern_id"] for row in rows}
        touchable = [
            row for row in rows if not row["pinned"] and row["usage_count"] >= draft.min_usage_count
        ]
        assert {f"p{n}" for n, (_, pinned, _) in enumerate(patterns) if pinned} <= there
        assert {
            f"p{n}" for n, (k, _, _) in enumerate(patterns) if len(k) < draft.min_usage_count
        } <= there
        if draft.max_success_rate is not None:
            assert all(row["success_rate"] > draft.max_success_rate for row in touchable)
        if draft.max_remaining:
            assert len(touchable) <= draft.max_remaining
        again = await world.services.patterns.pruner.prune(NS, draft)
        assert (again.deleted, again.remaining) == (0, len(rows))
        assert await payloads(world, PATTERNS) == rows
        await check_invariants(world.store, NS)

    asyncio.run(run())


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(0, 12))
@settings(deadline=None)
def test_all_but_the_best_are_the_smallest_in_order(ranks, keep):
    async def records():
        for number, rank in enumerate(ranks):
            yield Record(f"{number:03}", NS, {"rank": rank})

    async def run() -> list[int]:
        worst = await all_but_the_best(records(), lambda payload: (payload["rank"],), keep)
        return [record.payload["rank"] for record in worst]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranked, "_RUN", 4)
        assert asyncio.run(run()) == sorted(ranks)[: max(0, len(ranks) - keep)]
