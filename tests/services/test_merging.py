"""Saves with ``dedupe`` SEMANTIC."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import Action, PatternKind, PatternType
from lot_grpc.services.outcomes.outcomes import OutcomeDraft
from lot_grpc.services.patterns.drafts import Dedupe, Saved
from lot_grpc.services.patterns.feedback import FeedbackDraft
from lot_grpc.services.records.collections import FEEDBACK, OUTCOMES, PATTERNS
from lot_grpc.services.runtime import PatternLearning
from lot_grpc.testing.faults import FaultInjectingStore, InjectedFault
from tests.services.world import (
    MINUTE,
    NS,
    Interleaving,
    World,
    draft,
    open_world,
    payloads,
    save,
)

TASK = "Log in to the web shop of the customer and open the list of orders"
NEAR = "Log in to the web shop of the customer and open the list of all orders"
FAR = "Export a quarterly sales report"


@pytest.fixture
async def world() -> World:
    return await open_world(learning=PatternLearning(merge_similarity=0.9))


async def merge(world: World, task: str = NEAR, **named: Any) -> Saved:
    return await save(world, task, dedupe=Dedupe.SEMANTIC, **named)


async def test_what_means_nearly_the_same_counts_as_one_success_of_it(world):
    first = await save(world, TASK, initial_success_rate=0.5)
    merged = await merge(world, initial_success_rate=0.1, title="another")
    assert not merged.created
    assert merged.pattern.pattern_id == first.pattern.pattern_id
    assert merged.merged_at is not None
    assert 0.9 <= merged.merged_at < 1
    assert merged.unchanged_fields == ("title",)
    assert merged.pattern.content == first.pattern.content
    assert merged.pattern.etag == first.pattern.etag
    assert merged.pattern.outcomes.usage_count == merged.pattern.outcomes.success_count == 1
    assert merged.pattern.outcomes.success_rate == pytest.approx(0.65)
    assert await world.store.count(PATTERNS, NS) == 1


async def test_what_is_near_to_nothing_is_stored_and_claims_its_content(world):
    await save(world, TASK)
    stored = await merge(world, FAR)
    assert (stored.created, stored.merged_at) == (True, None)
    again = await save(world, FAR)
    assert (again.created, again.pattern.pattern_id) == (False, stored.pattern.pattern_id)


async def test_the_same_content_is_a_repeat_as_with_exact_and_no_merge(world):
    first = await save(world, TASK)
    again = await merge(world, TASK.upper())
    assert (again.created, again.merged_at) == (False, None)
    assert again.pattern.pattern_id == first.pattern.pattern_id
    assert again.pattern.outcomes.usage_count == 1


async def test_the_nearest_one_is_merged_with(world):
    await save(world, NEAR + " of today")
    nearer = await save(world, NEAR + " here")
    merged = await merge(world)
    assert merged.pattern.pattern_id == nearer.pattern.pattern_id


@pytest.mark.parametrize(
    "other",
    [
        {"language": "python"},
        {"kind": PatternKind.LEARNED},
        {"pattern_type": PatternType.FAILURE},
    ],
)
async def test_only_the_same_kind_type_and_language_are_merged(world, other):
    await save(world, TASK, **other)
    assert (await merge(world)).created


@pytest.mark.parametrize(
    ("stored", "given"),
    [
        ("Cancel the order 1234 of the customer now", "Cancel the order 1235 of the customer now"),
        ("Open the page /a/orders of the shop now", "Open the page /b/orders of the shop now"),
        ('Search the shop for "red shoes" now', 'Search the shop for "red shoe" now'),
        ("Book a flight from Paris to Rome today", "Book a flight from Rome to Paris today"),
        ("Scale up the web deployment now", "Scale down the web deployment now"),
        (
            "Find files that contain a licence header",
            "Find files that do not contain such a header",
        ),
    ],
)
async def test_what_differs_in_a_literal_or_says_the_opposite_is_never_merged(stored, given):
    world = await open_world(learning=PatternLearning(merge_similarity=0.1))
    await save(world, stored)
    assert (await merge(world, given)).created
    assert (await merge(world, f"{stored} please")).merged_at is not None


async def test_code_must_be_near_as_well(world):
    code = "def add(one, other):\n    return one + other"
    await save(world, TASK, kind=PatternKind.CODE, code=code)
    assert (await merge(world, kind=PatternKind.CODE)).created
    other = "class Parser:\n    def parse(self): ..."
    assert (await merge(world, kind=PatternKind.CODE, code=other)).created
    assert not (await merge(world, kind=PatternKind.CODE, code=code)).created


async def test_superseded_and_expired_patterns_are_not_merged_with(world):
    old = await save(world, TASK, ttl=MINUTE * 1_000_000)
    await save(world, FAR, supersedes=old.pattern.pattern_id, pattern_id="new")
    first = await merge(world)
    assert first.created
    await world.services.patterns.patterns.delete(NS, first.pattern.pattern_id, "")
    await world.services.patterns.patterns.delete(NS, "new", "")
    assert (await merge(world)).pattern.pattern_id == old.pattern.pattern_id
    world.clock.advance(MINUTE)
    assert (await merge(world)).created


async def test_actions_of_its_own_are_told_as_kept(world):
    await save(world, TASK, actions=(Action("a"),))
    merged = await merge(world, actions=(Action("b"),))
    assert merged.unchanged_fields == ("actions",)


async def test_another_namespace_is_not_looked_at(world):
    await world.services.patterns.writer.save("other", draft(TASK))
    assert (await merge(world)).created


async def test_a_request_again_counts_for_the_same_pattern_though_another_is_nearer_now(world):
    first = await save(world, TASK)
    merged = await merge(world, request_id="r")
    await save(world, f"{NEAR} ", pattern_id="nearer")
    again = await merge(world, request_id="r")
    assert again == merged
    assert again.pattern.pattern_id == first.pattern.pattern_id
    (logged,) = await payloads(world, OUTCOMES)
    assert logged["from_repeated_save"]


@pytest.mark.parametrize("write", range(1, 6))
async def test_a_request_again_counts_for_no_other_pattern_of_the_id_it_merged_with(world, write):
    """The first try died, at one of its writes behind the plan."""
    await save(world, TASK, pattern_id="x")
    store = FaultInjectingStore(world.store)
    dying = await open_world(store, world.clock, world.learning)
    store.fail_at(write)
    with pytest.raises(InjectedFault):
        await merge(dying, request_id="r")
    await world.services.patterns.patterns.delete(NS, "x", "")
    world.clock.advance(1)
    other = await save(world, FAR, pattern_id="x")
    assert (await merge(world, request_id="r")).created
    assert await world.services.patterns.patterns.get(NS, "x") == other.pattern


async def test_items_of_a_batch_see_those_before_them(world):
    results = await world.services.patterns.writer.save_many(
        NS, [draft(task, dedupe=Dedupe.SEMANTIC) for task in (TASK, FAR, NEAR, FAR)]
    )
    saved = [one for one in results if isinstance(one, Saved)]
    assert [one.created for one in saved] == [True, True, False, False]
    assert saved[2].pattern.pattern_id == saved[0].pattern.pattern_id
    assert [one.merged_at is not None for one in saved] == [False, False, True, False]


@pytest.mark.parametrize("seed", range(5))
async def test_the_same_text_at_once_from_two_processes_is_one_pattern(seed):
    world = await open_world()
    world.store = Interleaving(world.store, seed)
    one, other = world.another_process(), world.another_process()
    results = await asyncio.gather(*(merge(w, TASK) for w in (one, other) * 4))
    assert len({result.pattern.pattern_id for result in results}) == 1
    assert sum(result.created for result in results) == 1
    assert await world.store.count(PATTERNS, NS) == 1
    found = await world.services.patterns.patterns.get(NS, results[0].pattern.pattern_id)
    assert found.outcomes.success_count == 7


async def test_what_is_recorded_of_a_pattern_comes_behind_it_by_any_clock(world):
    """Whoever takes an expired id again drops the older log: it must not drop what is new."""
    ahead, behind = world.another_process(), world.another_process()
    for number in range(20):
        await save(ahead, f"{FAR} {number}", pattern_id=f"before{number}")
    await save(ahead, TASK, pattern_id="x")
    await behind.services.outcomes.recorder.record(NS, OutcomeDraft(("x",), Outcome.SUCCESS))
    await behind.services.patterns.feedback.give(NS, FeedbackDraft("x", helpful=True))
    (pattern,) = [one for one in await payloads(world, PATTERNS) if one["pattern_id"] == "x"]
    for collection in (OUTCOMES, FEEDBACK):
        (recorded,) = await payloads(world, collection)
        assert recorded["sort_key"] > pattern["sort_key"], collection
