from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lot_grpc.domain.error_solution import ErrorSolutionFilter
from lot_grpc.domain.errors import (
    ErrorSolutionIdInUseError,
    ErrorSolutionNotFoundError,
    RequestIdReusedError,
    RequestInvalidError,
)
from lot_grpc.services.errors.drafts import SavedErrorSolution
from lot_grpc.services.records.collections import ERROR_SOLUTIONS, SPARSE_VECTOR, TOMBSTONES
from tests.services.world import DAY, NS, World, error_solution, open_world, payloads, rows

EVERY = ErrorSolutionFilter()


async def save(world: World, message: str = "KeyError: 'a'", **named: Any) -> SavedErrorSolution:
    return await world.services.errors.solutions.save(NS, error_solution(message, **named))


async def test_a_solution_is_there_as_it_was_given_with_its_signature(world):
    made = await save(
        world, steps=("look", "fix"), categories=("io",), tags=("t",), labels={"a": "b"},
        metadata={"n": [1.5, None]}, language="python", context="at start", pinned=True,
        source_episode_ids=("e",),
    )  # fmt: skip
    assert made.created
    solution = made.error_solution
    assert await world.services.errors.solutions.get(NS, solution.error_solution_id) == solution
    assert solution.signature == "KeyError: '<name>'"
    assert (solution.outcomes.success_rate, solution.outcomes.usage_count) == (1.0, 0)


@pytest.mark.parametrize(
    ("worked", "given", "expected"),
    [(True, None, 1.0), (False, None, 0.0), (True, 0.4, 0.4), (False, 0.3, 0.3), (True, 0.0, 0.0)],
)
async def test_the_first_rate_is_the_one_given_or_says_whether_it_worked(
    world, worked, given, expected
):
    made = await save(world, worked=worked, initial_success_rate=given)
    assert made.error_solution.outcomes.success_rate == expected


async def test_the_same_solution_of_the_same_error_is_stored_once(world):
    first = await save(world, "KeyError: 'a'", resolution="Use  get", context="here")
    world.clock.advance(5)
    repeated = "2026-01-02T03:04:05Z KeyError: 'a'"
    again = await save(world, repeated, resolution="Use get", context="there", tags=("x",))
    assert (first.created, again.created) == (True, False)
    assert again.error_solution == first.error_solution
    assert set(again.unchanged_fields) == {"error_message", "context", "tags"}
    assert (await save(world, "KeyError: 'a'", resolution="Use get")).unchanged_fields == ()
    assert len(await payloads(world, ERROR_SOLUTIONS)) == 1


@pytest.mark.parametrize(
    "other",
    [{"message": "ValueError: a"}, {"resolution": "another"}, {"steps": ("one",)},
     {"language": "go"}, {"worked": False}],
)  # fmt: skip
async def test_another_error_or_another_solution_of_it_is_stored_beside(world, other):
    await save(world)
    assert (await save(world, **{"message": "KeyError: 'a'", **other})).created
    assert len(await payloads(world, ERROR_SOLUTIONS)) == 2


async def test_solutions_saved_at_once_are_one(world):
    made = await asyncio.gather(*(save(world) for _ in range(10)))
    assert sum(one.created for one in made) == 1
    assert len(await payloads(world, ERROR_SOLUTIONS)) == 1


async def test_a_solution_has_the_vectors_that_it_is_found_by(world):
    await save(world)
    (record,) = await world.store.scroll(ERROR_SOLUTIONS, NS, [], limit=1, vectors=True)
    assert set(record.vectors) == {"text", "solved", SPARSE_VECTOR}


async def test_an_id_of_its_own_stores_it_beside_the_same(world):
    await save(world)
    assert (await save(world, error_solution_id="mine")).created
    again = await save(world, error_solution_id="mine")
    assert (again.created, again.error_solution.error_solution_id) == (False, "mine")
    assert len(await payloads(world, ERROR_SOLUTIONS)) == 2


@pytest.mark.parametrize("request_id", ["", "r"])
async def test_an_id_in_use_by_another_solution_is_refused_every_time(world, request_id):
    await save(world, error_solution_id="mine")
    for _ in range(2):
        with pytest.raises(ErrorSolutionIdInUseError):
            await save(world, tags=("x",), error_solution_id="mine", request_id=request_id)
    assert len(await payloads(world, ERROR_SOLUTIONS)) == 1


async def test_a_request_again_answers_alike(world):
    first = await save(world, request_id="r", ttl=60_000_000)
    world.clock.advance(5)
    assert await save(world, request_id="r", ttl=60_000_000) == first
    repeat = await save(world, request_id="r2")
    assert (await save(world, request_id="r2")).created is repeat.created is False
    with pytest.raises(RequestIdReusedError):
        await save(world, "another", request_id="r")
    with pytest.raises(RequestIdReusedError):
        await save(world, request_id="r", ttl=60_000_000, initial_success_rate=0.5)


async def test_a_late_retry_never_brings_back_what_was_deleted(world):
    made = await save(world, request_id="r")
    world.clock.advance(1)
    solution_id = made.error_solution.error_solution_id
    await world.services.errors.solutions.delete(NS, solution_id)
    with pytest.raises(ErrorSolutionNotFoundError, match="it was deleted after this request"):
        await save(world, request_id="r")
    assert (await save(world, request_id="r2")).error_solution.error_solution_id == solution_id


async def test_a_delete_leaves_a_tombstone(world):
    await save(world, error_solution_id="mine")
    await world.services.errors.solutions.delete(NS, "mine")
    for _ in range(2):
        with pytest.raises(ErrorSolutionNotFoundError):
            await world.services.errors.solutions.delete(NS, "mine")
    (stone,) = await payloads(world, TOMBSTONES)
    assert (stone["resource_kind"], stone["id"], stone["done"]) == ("error_solution", "mine", True)


async def test_a_solution_is_absent_from_its_expiry_on_and_swept_up(world):
    await save(world, error_solution_id="mine", ttl=10_000_000)
    unchanged_fields = await save(world, "kept")
    world.clock.advance(10)
    with pytest.raises(ErrorSolutionNotFoundError):
        await world.services.errors.solutions.get(NS, "mine")
    world.clock.advance(DAY)
    assert await world.services.housekeeping.drop_expired() == 1
    (left,) = await rows(world.store, ERROR_SOLUTIONS)
    assert left.payload["error_solution_id"] == unchanged_fields.error_solution.error_solution_id
    with pytest.raises(RequestInvalidError, match="must be in the future"):
        await save(world, expire_time=world.clock.now())


async def test_what_says_nothing_is_refused(world):
    for named in ({"message": ""}, {"resolution": ""}):
        with pytest.raises(RequestInvalidError):
            await save(world, **{"message": "e", **named})
    assert (await save(world, resolution="", worked=False)).created


async def test_lists_are_newest_first_and_in_pages(world):
    for n in range(5):
        await save(world, f"error {'abcde'[n]}", error_solution_id=str(n))
        world.clock.advance(1)
    service = world.services.errors.solutions
    first = await service.list_page(NS, EVERY, 3, None)
    rest = await service.list_page(NS, EVERY, 3, first.next)
    found = [one.error_solution_id for one in (*first.items, *rest.items)]
    assert found == ["4", "3", "2", "1", "0"]
    assert rest.next is None
    assert (await service.list_page("another", EVERY, 3, None)).items == []


async def test_a_delete_that_is_finished_late_spares_what_took_the_id_since():
    world = await open_world()
    await save(world, error_solution_id="mine")
    (record,) = await rows(world.store, ERROR_SOLUTIONS)
    await world.services.errors.solutions.delete(NS, "mine")
    await save(world, "another", error_solution_id="mine")
    await world.services.errors.solutions._tombstones.begin("error_solution", "mine", record)
    await world.services.housekeeping.roll_forward(starting=True)
    assert (
        await world.services.errors.solutions.get(NS, "mine")
    ).content.error_message == "another"
