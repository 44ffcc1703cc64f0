from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.errors import (
    PatternNotFoundError,
    RequestIdReusedError,
    RequestInvalidError,
)
from lot_grpc.domain.feedback import FeedbackCounts, adjustment_of, moved
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.services.patterns import feedback as module
from lot_grpc.services.patterns.feedback import FeedbackDraft
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.records.collections import FEEDBACK
from lot_grpc.testing.faults import FaultInjectingStore, InjectedFault, When
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.invariants import check_invariants
from tests.services.world import (
    NS,
    Interleaving,
    SharedStore,
    World,
    feedback,
    open_world,
    outcome,
    payloads,
    save,
)


async def test_feedback_moves_the_confidence_and_leaves_the_etag_alone(world):
    made = (await save(world)).pattern
    world.clock.advance(5)
    after = await feedback(world, made.pattern_id, helpful=True)
    assert after.content.confidence == 0.6
    assert after.feedback == FeedbackCounts(1, 1, 0, world.clock.now())
    assert (after.etag, after.update_time) == (made.etag, made.update_time)
    after = await feedback(world, made.pattern_id, helpful=False, confidence_adjustment=-0.7)
    assert after.content.confidence == 0
    assert after == await world.services.patterns.patterns.get(NS, made.pattern_id)
    await check_invariants(world.store, NS)


async def test_the_history_tells_what_was_said_and_how_it_counted_newest_first(world, monkeypatch):
    monkeypatch.setattr(module, "HISTORY", 3)
    made = (await save(world, confidence=0.25)).pattern
    other = (await save(world, "other")).pattern
    await feedback(world, other.pattern_id, helpful=True)
    for n in range(4):
        await feedback(world, made.pattern_id, helpful=n % 2 == 0, text=f"text {n}")
    history = await world.services.patterns.feedback.history(NS, made.pattern_id)
    assert [(one.given.text, one.given.helpful, one.step.sequence) for one in history] == [
        ("text 3", False, 4), ("text 2", True, 3), ("text 1", False, 2),
    ]  # fmt: skip
    assert [one.step.confidence_after for one in history] == [0.25, 0.35, 0.25]
    assert await world.services.patterns.feedback.history("elsewhere", made.pattern_id) == []


async def test_feedback_of_nothing_or_that_says_nothing_is_kept_nowhere(world):
    made = (await save(world)).pattern
    for request_id in ("", "r"):
        with pytest.raises(PatternNotFoundError):
            await feedback(world, "nope", helpful=True, request_id=request_id)
    with pytest.raises(PatternNotFoundError):
        await world.services.patterns.feedback.give(
            "elsewhere", FeedbackDraft(made.pattern_id, True)
        )
    with pytest.raises(RequestInvalidError):
        await feedback(world, made.pattern_id, text="only words")
    with pytest.raises(RequestInvalidError):
        await feedback(world, made.pattern_id, confidence_adjustment=2.0)
    assert await payloads(world, FEEDBACK) == []
    # The request that failed was not remembered: it may be right once the pattern is there.
    await save(world, "now it is", pattern_id="nope")
    assert (await feedback(world, "nope", helpful=True, request_id="r")).content.confidence == 0.6


async def test_a_repeat_by_request_id_counts_once_and_other_content_is_refused(world):
    made = (await save(world)).pattern
    for _ in range(3):
        after = await feedback(world, made.pattern_id, helpful=True, request_id="r")
    assert after.content.confidence == 0.6
    with pytest.raises(RequestIdReusedError):
        await feedback(world, made.pattern_id, helpful=False, request_id="r")
    assert len(await payloads(world, FEEDBACK)) == 1


async def test_a_late_repeat_does_not_count_for_another_pattern_of_the_id(world):
    await save(world, "old", pattern_id="mine")
    said = {"helpful": True, "request_id": "r"}
    await feedback(world, "mine", **said)
    await world.services.patterns.patterns.delete(NS, "mine", "")
    assert await payloads(world, FEEDBACK) == []
    world.clock.advance(1)
    await save(world, "new", pattern_id="mine")
    with pytest.raises(PatternNotFoundError, match="it was deleted after this request"):
        await feedback(world, "mine", **said)
    assert (await world.services.patterns.patterns.get(NS, "mine")).content.confidence == 0.5


async def test_a_retry_counts_what_the_first_try_wrote_at_its_time():
    clock = FixedClock()
    faulty = FaultInjectingStore(InMemoryStore(clock))
    world = await open_world(faulty, clock)
    made = (await save(world)).pattern
    faulty.fail_at(2, When.AFTER)  # the row of the request, then the fact
    with pytest.raises(InjectedFault):
        await feedback(world, made.pattern_id, helpful=True, request_id="r")
    faulty.revive()
    first = clock.now()
    clock.advance(60)
    after = await feedback(world.another_process(), made.pattern_id, helpful=True, request_id="r")
    assert after.feedback == FeedbackCounts(1, 1, 0, first)
    assert after.content.confidence == 0.6
    await check_invariants(faulty, NS)


async def test_feedback_of_what_expired_goes_with_it_and_before_its_id_is_taken_again(world):
    for task in ("swept", "taken again"):
        await save(world, task, pattern_id=task[:5], ttl=10_000_000)
        await feedback(world, task[:5], helpful=True)
    world.clock.advance(11)
    await save(world, "another", pattern_id="taken")
    assert [row["pattern_id"] for row in await payloads(world, FEEDBACK)] == ["swept"]
    await world.services.housekeeping.drop_expired()
    assert await payloads(world, FEEDBACK) == []


# --- beside edits -----------------------------------------------------------------------------


async def edit(world: World, pattern_id: str, etag: str = "", **changes: object) -> tuple[str, ...]:
    """What a client does that writes back what it read, changed; returns what was kept."""
    implicit = bool(changes.pop("implicit", False))
    content = PatternContent("as read", **changes)  # type: ignore[arg-type]
    wanted = PatternEdit(content, frozenset(changes), sets_confidence=not implicit)
    return (
        await world.services.patterns.patterns.update(NS, pattern_id, wanted, etag)
    ).unchanged_fields


async def test_an_edit_of_the_rest_keeps_what_feedback_moved(world):
    made = (await save(world)).pattern
    await feedback(world, made.pattern_id, helpful=True)
    unchanged_fields = await edit(
        world, made.pattern_id, made.etag, title="T", confidence=0.5, implicit=True
    )
    assert unchanged_fields == ("confidence",)
    found = await world.services.patterns.patterns.get(NS, made.pattern_id)
    assert (found.content.title, found.content.confidence) == ("T", 0.6)
    assert found.feedback.feedback_count == 1
    await feedback(world, made.pattern_id, helpful=True)
    await check_invariants(world.store, NS)


async def test_an_edit_that_names_the_confidence_sets_it_and_feedback_goes_on_from_there(world):
    made = (await save(world)).pattern
    await feedback(world, made.pattern_id, helpful=True)
    assert await edit(world, made.pattern_id, made.etag, confidence=0.2) == ()
    after = await feedback(world, made.pattern_id, helpful=True)
    assert after.content.confidence == 0.3
    history = await world.services.patterns.feedback.history(NS, made.pattern_id)
    assert [(e.step.confidence_before, e.step.confidence_after) for e in history] == [
        (0.2, 0.3), (0.5, 0.6),
    ]  # fmt: skip
    await check_invariants(world.store, NS)


async def test_without_feedback_any_edit_sets_the_confidence(world):
    made = (await save(world)).pattern
    assert await edit(world, made.pattern_id, confidence=0.9, implicit=True) == ()
    assert (
        await world.services.patterns.patterns.get(NS, made.pattern_id)
    ).content.confidence == 0.9


@pytest.mark.parametrize("make", [InMemoryStore, SharedStore])
@pytest.mark.parametrize("seed", [7, 100, 102])
async def test_feedback_outcomes_and_edits_at_once_all_count(make: type[InMemoryStore], seed: int):
    clock = FixedClock()
    first = await open_world(Interleaving(make(clock), seed), clock)
    worlds = [first, first.another_process(), first.another_process()]
    made = (await save(first)).pattern
    one = made.pattern_id
    await asyncio.gather(
        *(feedback(worlds[n % 3], one, confidence_adjustment=0.01) for n in range(20)),
        *(feedback(worlds[n % 3], one, helpful=True, request_id="r") for n in range(3)),
        *(outcome(worlds[n % 3], one) for n in range(10)),
        *(edit(worlds[n % 3], one, title=f"T{n}") for n in range(5)),
    )
    found = await first.services.patterns.patterns.get(NS, one)
    assert found.content.confidence == 0.8
    assert found.feedback.feedback_count == 21
    assert found.outcomes.usage_count == 10
    assert found.revision == 6
    await check_invariants(first.store, NS)


sayings = st.tuples(st.none() | st.booleans(), st.none() | st.floats(-1, 1)).filter(
    lambda pair: pair != (None, None)
)


@given(st.floats(0, 1), st.lists(sayings, max_size=8))
def test_the_confidence_is_the_replay_of_its_feedback(start, log):
    async def run() -> None:
        world = await open_world()
        made = (await save(world, confidence=start)).pattern
        expected = start
        for helpful, adjustment in log:
            await feedback(
                world, made.pattern_id, helpful=helpful, confidence_adjustment=adjustment
            )
            expected = moved(expected, adjustment_of(helpful, adjustment))
        found = await world.services.patterns.patterns.get(NS, made.pattern_id)
        assert found.content.confidence == expected
        assert found.feedback.feedback_count == len(log)
        await check_invariants(world.store, NS)

    asyncio.run(run())
