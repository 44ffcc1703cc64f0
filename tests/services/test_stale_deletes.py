"""A delete, a sweep or a clear that rests on a read spares what another caller wrote since."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import (
    EtagMismatchError,
    NamespaceClearingError,
)
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.services.clearing.clear_registry import ClearRegistry
from lot_grpc.services.distillation.distiller import DistillDefaults
from lot_grpc.services.errors.error_outcomes import ErrorOutcomeDraft
from lot_grpc.services.learning.decisions import DecisionOutcomeDraft
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.preferences.preferences import PreferenceDraft
from lot_grpc.services.records.collections import (
    DECISIONS,
    ERROR_SOLUTIONS,
    META,
    OUTCOMES,
    PATTERNS,
    PREFERENCE_REVISIONS,
    SESSIONS,
    SORT_KEY,
)
from lot_grpc.services.runtime import PatternLearning
from lot_grpc.services.unique_content import UniqueContentIndex
from tests.contract.clock import FixedClock
from tests.services.session_steps import SECOND
from tests.services.session_steps import put as put_value
from tests.services.world import (
    DAY,
    MINUTE,
    NS,
    Interrupted,
    SharedStore,
    World,
    decision,
    error_solution,
    open_world,
    outcome,
    payloads,
    save,
)


@pytest.fixture
async def world() -> World:
    """A process on a shared store in which others may come first."""
    clock = FixedClock()
    learning = PatternLearning(distill=DistillDefaults(0.7), interval=10 * MINUTE)
    return await open_world(Interrupted(SharedStore(clock)), clock, learning)


async def edit(world: World, pattern_id: str = "p", **changes: Any) -> None:
    content = replace(PatternContent("unused"), **changes)
    await world.services.patterns.patterns.update(
        NS, pattern_id, PatternEdit(content, frozenset(changes)), ""
    )


# --- deletes ----------------------------------------------------------------------------------


async def pattern(world: World) -> None:
    await save(world, pattern_id="x", ttl=SECOND * MINUTE)
    await outcome(world, "x")


async def solution(world: World) -> None:
    draft = error_solution(error_solution_id="x", ttl=SECOND * MINUTE)
    await world.services.errors.solutions.save(NS, draft)
    await world.services.outcomes.of_errors.record(NS, ErrorOutcomeDraft("x", Outcome.SUCCESS))


async def preference(world: World) -> None:
    for value in ("one", "two"):
        await world.services.preferences.put(NS, PreferenceDraft("x", value))


BELONGINGS = [
    (ResourceKind.PATTERN, pattern, OUTCOMES),
    (ResourceKind.ERROR_SOLUTION, solution, OUTCOMES),
    (ResourceKind.PREFERENCE, preference, PREFERENCE_REVISIONS),
]


async def test_a_decision_that_got_an_outcome_is_not_deleted_by_the_etag_from_before(world):
    decisions = world.services.learning.decisions
    made, _ = await decisions.record(NS, decision(decision_id="d"))
    draft = DecisionOutcomeDraft("d", Outcome.SUCCESS)
    world.store.before("delete", DECISIONS, lambda: decisions.record_outcome(NS, draft))
    with pytest.raises(EtagMismatchError):
        await decisions.delete(NS, "d", made.etag)
    assert await world.store.count(DECISIONS, NS) == 1


async def used(world: World) -> None:
    await world.services.outcomes.of_errors.record(NS, ErrorOutcomeDraft("x", Outcome.SUCCESS))


async def test_a_solution_that_was_used_since_it_was_seen_is_spared(world):
    await solution(world)
    solutions = world.services.errors.solutions
    record = await solutions.find_record(NS, "x")
    assert record is not None
    await used(world)
    assert not await solutions.delete_as_seen(record)
    assert await world.store.count(ERROR_SOLUTIONS, NS) == 1


async def test_a_delete_that_an_edit_preceded_deletes_what_was_edited_unless_it_has_an_etag(world):
    etag = (await save(world, pattern_id="p")).pattern.etag
    delete = world.services.patterns.patterns.delete
    world.store.before("delete", PATTERNS, lambda: edit(world, title="edited"))
    with pytest.raises(EtagMismatchError):
        await delete(NS, "p", etag)
    assert await world.store.count(PATTERNS, NS) == 1
    world.store.before("delete", PATTERNS, lambda: edit(world, title="again"))
    await delete(NS, "p")
    assert await world.store.count(PATTERNS, NS) == 0


@pytest.mark.parametrize(("kind", "make", "belongings"), BELONGINGS)
async def test_a_delete_spares_what_belongs_to_another_that_took_the_id(
    world, kind, make, belongings
):
    resources = world.services.resources.of(kind)
    collection = resources.spec.collection.name
    await make(world)
    world.clock.advance(1)

    async def gone() -> None:
        world.store.before("get", collection, lambda: make(world.another_process()))

    world.store.before("delete", collection, gone)
    await resources.delete(NS, "x")
    assert await world.store.count(belongings, NS) == 1


@pytest.mark.parametrize(("kind", "make", "belongings"), BELONGINGS[:2])
@pytest.mark.parametrize("swept", [OUTCOMES, ""])
async def test_a_sweep_spares_what_took_the_id_of_an_expired_one(
    world, kind, make, belongings, swept
):
    resources = world.services.resources.of(kind)
    collection = resources.spec.collection.name
    await make(world)
    world.clock.advance(MINUTE + 1)
    world.store.before("delete", swept or collection, lambda: make(world.another_process()))
    await world.services.housekeeping.drop_expired()
    assert await world.store.count(collection, NS) == await world.store.count(belongings, NS) == 1


@pytest.mark.parametrize(("kind", "make", "belongings"), BELONGINGS[:2])
async def test_a_save_over_an_expired_one_forgets_no_outcome_that_came_since(
    world, kind, make, belongings
):
    await make(world)
    world.clock.advance(MINUTE + 1)
    record = world.services.outcomes.of_errors if kind is ResourceKind.ERROR_SOLUTION else None

    async def counted() -> None:
        if record is None:
            await outcome(world, "x")
        else:
            await record.record(NS, ErrorOutcomeDraft("x", Outcome.SUCCESS))

    world.store.before("delete", OUTCOMES, counted)
    await make(world)
    assert await world.store.count(belongings, NS) == 2


async def test_inserted_patterns_forget_no_outcome_of_others_nor_one_that_came_since(world):
    await pattern(world)
    await save(world, "another", pattern_id="y")
    patterns = world.services.patterns.patterns
    copy = await patterns.find_record(NS, "y", vectors=True)
    assert copy is not None
    await patterns.delete(NS, "y", "")
    copy.payload[SORT_KEY] = world.services.runtime.time.sort_key()
    world.store.before("delete", OUTCOMES, lambda: outcome(world, "y"))
    await patterns.insert(NS, [copy])
    found = await payloads(world, OUTCOMES)
    assert sorted(one["resource_id"] for one in found) == ["x", "y"]


async def test_a_sweep_spares_a_session_that_was_begun_again(world):
    await put_value(world, "former", ttl=SECOND)
    world.clock.advance(DAY)
    world.store.before("delete", SESSIONS, lambda: put_value(world.another_process(), "first"))
    await world.services.sessions.sessions.sweep()
    session = await world.services.sessions.sessions.get(NS, "s", 0)
    assert sorted(session.values) == ["first"]


async def test_a_claim_on_a_content_that_is_given_up_late_is_that_of_another_by_then(world):
    index = UniqueContentIndex(world.store, world.services.runtime.time)
    await index.take(NS, {"claim": "p"})
    await index.move(NS, "claim", "p", "q")
    await index.release(NS, "claim", "p")
    assert await index.owner(NS, "claim", "r") == "q"


# --- clears -----------------------------------------------------------------------------------


def registry(world: World) -> ClearRegistry:
    """That of a process of its own."""
    return ClearRegistry(world.store, world.services.runtime.time, 0.0)


async def test_of_two_that_begin_a_clear_at_once_one_is_refused(world):
    async def other() -> None:
        clears = registry(world)
        await clears.end(await clears.begin(NS, ()), 0)

    await other()
    world.store.before("replace", META, other)
    with pytest.raises(NamespaceClearingError):
        await registry(world).begin(NS, ())
    assert (await registry(world).begin(NS, ())).generation == 3


async def test_a_clear_that_ended_or_has_another_holder_is_not_taken_over(world):
    one, other = registry(world), registry(world)
    begun = await one.begin(NS, ())
    held = await one.hold(begun)
    assert await other.hold(begun) is None
    await other.end(begun, 0)
    assert [clear.at_work for clear in await other.at_work()] == [True]
    assert held is not None
    await one.end(held, 0)
    assert await other.hold(held) is None
    again = await one.begin(NS, ())
    assert await other.hold(replace(again, generation=1)) is None
