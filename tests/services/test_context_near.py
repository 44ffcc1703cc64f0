"""A context tells what is likely to help, and says how much of the nearest it left out."""

from __future__ import annotations

import pytest

from lot_grpc.domain.pattern import PatternKind
from tests.services.test_task_context import ask, episode_ids, pattern_ids, ran
from tests.services.world import (
    NS,
    CalibratedDouble,
    World,
    error_solution,
    memory,
    open_world,
    save,
)

TASK = "Rotate the signing keys of the payment gateway"
FAR = "Translate our holiday brochure into French"
ERROR = "ModuleNotFoundError: No module named 'jwt'"


@pytest.fixture
async def world() -> World:
    """A store that knows something for ``TASK``, and of each kind something else."""
    world = await open_world(embedder=CalibratedDouble())
    for name, task in (("near", TASK), ("far", FAR)):
        await save(world, task, pattern_id=name)
        await ran(world, name, task)
        await world.services.memories.memories.create(
            NS, memory(f"{task}: see the wiki", memory_id=name)
        )
    await ran(world, "failed", FAR, error=("KeyError", "'brochure'"))
    return world


def memory_ids(context):
    return [hit.thing.memory_id for hit in context.memories]


async def test_what_is_not_likely_to_help_is_left_out_and_counted(world):
    context = await ask(world, TASK)
    assert (pattern_ids(context), episode_ids(context)) == (["near"], ["near"])
    assert memory_ids(context) == ["near"]
    assert context.warnings == ()
    assert "brochure" not in context.prompt.text
    assert context.near.left_out == {
        "patterns": 1, "error_solutions": 0, "memories": 1, "episodes": 2
    }  # fmt: skip


async def test_all_of_the_nearest_comes_where_it_is_asked_for(world):
    context = await ask(world, TASK, min_similarity=0.0)
    assert set(pattern_ids(context)) == {"near", "far"}
    assert set(episode_ids(context)) == {"near", "far", "failed"}
    assert set(memory_ids(context)) == {"near", "far"}
    assert not any(context.near.left_out.values())


async def test_where_nothing_helps_the_text_says_so(world):
    context = await ask(world, "Tune a piano")
    assert context.prompt.text.endswith("next run can learn from it.\n")
    assert context.near.left_out["patterns"] == 2


async def test_a_learned_pattern_that_matches_stays_however_far(world):
    await save(
        world, "Be careful", pattern_id="learned", kind=PatternKind.LEARNED,
        task_type_pattern="piano",
    )  # fmt: skip
    assert pattern_ids(await ask(world, "Tune a piano")) == ["learned"]


async def test_with_a_model_that_was_not_calibrated_nothing_is_left_out():
    world = await open_world()
    await save(world, FAR, pattern_id="far")
    context = await ask(world, TASK)
    assert pattern_ids(context) == ["far"]
    assert not any(context.near.left_out.values())


@pytest.fixture
async def in_languages() -> World:
    """One error and one way to do it, in three languages and in none."""
    world = await open_world()
    for language in ("python", "javascript", ""):
        named = {"language": language, "error_solution_id": language or "any"}
        solution = error_solution(ERROR, resolution=f"fix {language}", **named)
        await world.services.errors.solutions.save(NS, solution)
        await save(world, f"{TASK} {language}", pattern_id=language or "any", language=language)
    return world


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ({}, {"python", "any"}),
        ({"language": "js"}, {"javascript", "any"}),
        ({"min_similarity": 0.0}, {"python", "javascript", "any"}),
    ],
)
async def test_the_language_is_that_of_the_error_unless_it_is_given(in_languages, named, expected):
    context = await ask(in_languages, f"{TASK}: {ERROR}", **named)
    assert {hit.error_solution.error_solution_id for hit in context.errors} == expected
    assert set(pattern_ids(context)) == expected


async def test_a_task_that_names_no_language_may_be_of_any(in_languages):
    assert len(pattern_ids(await ask(in_languages, TASK))) == 3
    assert set(pattern_ids(await ask(in_languages, f"{TASK} in Python"))) == {"python", "any"}


async def test_a_solution_of_the_error_leaves_no_room_for_those_of_others():
    world = await open_world()
    for name, message in (("same", ERROR), ("other", "ImportError: No module called jwt is here")):
        solution = error_solution(message, error_solution_id=name)
        await world.services.errors.solutions.save(NS, solution)
    context = await ask(world, f"Fix it: {ERROR}")
    assert [hit.error_solution.error_solution_id for hit in context.errors] == ["same"]
    assert context.near.left_out["error_solutions"] == 1
    assert len((await ask(world, f"Fix it: {ERROR}", min_similarity=0.0)).errors) == 2
