"""What was derived by other rules is derived anew, once, and found by them."""

from __future__ import annotations

import pytest

from lot_grpc.domain.error_solution import ErrorSolutionContent
from lot_grpc.domain.query import Legs
from lot_grpc.ports import Equals
from lot_grpc.services.derived_data import needs_rebuild, rebuild_derived_data
from lot_grpc.services.errors.drafts import ErrorSolutionEdit
from lot_grpc.services.errors.error_finder import ErrorQuery
from lot_grpc.services.records.collections import (
    ERROR_SOLUTIONS,
    PATTERNS,
)
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.store_metadata import (
    DERIVATION,
    DERIVATION_VERSION,
    open_store,
    read_metadata,
    update_metadata,
)
from lot_grpc.testing.faults import FaultInjectingStore
from lot_grpc.testing.hashing import HashingEmbedder
from tests.contract.clock import FixedClock
from tests.services.derived.old_stores import (
    BRIEF,
    EARLIER,
    LIVING,
    ON_EDGE_TOO,
    Make,
    answers,
    fill,
    has_old_terms,
    make_old,
    never,
    old_store,
)
from tests.services.world import (
    NS,
    Interrupted,
    SharedStore,
    open_world,
    rows,
)


@ON_EDGE_TOO
async def test_terms_and_signatures_of_other_rules_are_derived_anew(make: Make) -> None:
    old = await old_store(make(clock := FixedClock()), clock)
    told: list[tuple[str, int, int]] = []
    assert await needs_rebuild(old.store)
    done = await rebuild_derived_data(old.store, REGISTRY, lambda *told_now: told.append(told_now))
    assert done == LIVING
    await old.assert_up_to_date()
    assert {len(r.vectors) for r in old.want[PATTERNS]} == {2, 3}
    assert told[0] == ("bringing the store up to date", 0, LIVING)
    assert told[-1] == ("bringing the store up to date", LIVING, LIVING)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert len(told) > 3 * 2


async def test_what_lapsed_is_left_alone(make: Make) -> None:
    old = await old_store(make(clock := FixedClock()), clock)
    await rebuild_derived_data(old.store, REGISTRY)
    clock.advance(-2 * BRIEF)
    found = await old.store.scroll(PATTERNS, None, (), limit=99, vectors=True)
    assert len(found) == 14
    assert sum(map(has_old_terms, found)) == 2


async def test_a_store_that_is_up_to_date_is_not_written_to(make: Make) -> None:
    old = await old_store(make(clock := FixedClock()), clock)
    await rebuild_derived_data(old.store, REGISTRY)
    old.store.writes.clear()
    assert await rebuild_derived_data(old.store, REGISTRY) == 0
    assert old.store.writes == []


async def test_a_new_store_has_nothing_to_do(make: Make) -> None:
    store = FaultInjectingStore(make(FixedClock()))
    await open_store(store, REGISTRY, HashingEmbedder().contract)
    store.writes.clear()
    assert not await needs_rebuild(store)
    assert await rebuild_derived_data(store, REGISTRY, never) == 0
    assert store.writes == []
    assert (await read_metadata(store))[DERIVATION] == DERIVATION_VERSION


@pytest.mark.parametrize("derivation", [EARLIER, None])
async def test_an_old_store_without_records_only_gets_the_new_name(
    make: Make, derivation: str | None
) -> None:
    store = FaultInjectingStore(make(FixedClock()))
    await open_store(store, REGISTRY, HashingEmbedder().contract)
    await update_metadata(store, {DERIVATION: derivation})
    assert await needs_rebuild(store)
    assert await rebuild_derived_data(store, REGISTRY, never) == 0
    assert not await needs_rebuild(store)


async def test_an_error_signed_by_other_rules_is_found_by_those_of_today(make: Make) -> None:
    old = await old_store(make(clock := FixedClock()), clock)
    question = ErrorQuery(error_message="KeyError: 'b'")
    answer = await old.world.services.errors.finder.find(NS, question)
    same = [Equals("signatures", answer.signature)]
    assert await old.store.count(ERROR_SOLUTIONS, NS, same) == 0
    await rebuild_derived_data(old.store, REGISTRY)
    assert await old.store.count(ERROR_SOLUTIONS, NS, same) == 7
    answer = await old.world.services.errors.finder.find(NS, question)
    assert {hit.error_solution.signature for hit in answer.hits} == {answer.signature}


async def test_an_error_that_is_edited_while_it_is_signed_has_the_signature_of_the_edit() -> None:
    clock = FixedClock()
    store = Interrupted(SharedStore(clock))
    old = await old_store(store, clock)
    solutions = old.world.services.errors.solutions

    content = ErrorSolutionContent("TypeError: 'z'", resolution="use get")
    change = ErrorSolutionEdit(content, frozenset({"error_message"}))

    async def edited() -> None:
        for one in await rows(store, ERROR_SOLUTIONS, None):
            await solutions.update(one.namespace, one.payload["error_solution_id"], change, "")

    store.before("update", ERROR_SOLUTIONS, edited)
    await rebuild_derived_data(store, REGISTRY)
    signatures = {one.payload["signature"] for one in await rows(store, ERROR_SOLUTIONS, None)}
    assert signatures == {content.error.signature}


@pytest.mark.parametrize(
    ("make", "legs"),
    [
        ("in_memory", Legs.BM25),
        ("in_memory", Legs.HYBRID),
        ("edge", Legs.HYBRID),
    ],
    indirect=["make"],
)
async def test_a_store_that_was_rebuilt_answers_like_a_new_one(make: Make, legs: Legs) -> None:
    clock = FixedClock()
    store = make(clock)
    world = await open_world(store, clock)
    await fill(world)
    queries = ["step 3", "page_6.click", "stepNumber", "port 803", "try a thing", "DO STEP"]
    new = [await answers(world, query, legs) for query in queries]
    await make_old(store)
    old = [await answers(world, query, legs) for query in queries]
    assert all(new)
    assert old != new, "it must be seen that something is lacking"
    await rebuild_derived_data(store, REGISTRY)
    now = [await answers(world, query, legs) for query in queries]
    for got, want in zip(now, new, strict=True):
        assert dict(got) == pytest.approx(dict(want))
        assert [score for _, score in got] == pytest.approx([score for _, score in want])
