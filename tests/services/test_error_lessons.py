"""The error solutions that an ended episode stores when its caller asks for its lesson."""

from __future__ import annotations

import asyncio

import pytest

from lot_grpc.domain.episode import EpisodeError, EpisodeStart, EpisodeStatus
from lot_grpc.domain.error_solution import ErrorSolutionFilter
from lot_grpc.domain.errors import EmbeddingFailedError
from lot_grpc.services.episodes.drafts import EpisodeDraft
from lot_grpc.services.records.collections import EPISODES, ERROR_SOLUTIONS, PATTERNS
from lot_grpc.services.records.episodes import EXTRACTION, REQUESTED
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.invariants import check_invariants
from tests.services.world import (
    NS,
    Interleaving,
    call,
    end,
    error_solution,
    open_world,
    payloads,
    rows,
    step,
)

FAILED = EpisodeStatus.FAILED
LOST = {"type": "ModuleNotFoundError", "message": "No module named 'x'"}
MENDED = (
    call("editor"),
    call("pytest", error=LOST, args={"path": "tests"}),
    call("pip", note="install  it", args={"name": "x", "tries": 2}),
    call("pytest"),
)


async def take(world, *events, status=EpisodeStatus.SUCCEEDED, error=None, episode_id="e", **named):
    """Record an episode, and what it teaches of errors."""
    own = EpisodeStart("Make the tests pass", category="testing", **named)
    given = EpisodeDraft(own, episode_id, end=end(status, error=error), events=events, extract=True)
    await world.services.episodes.creator.record(NS, given)
    return (await world.services.extraction.episodes.take(NS, episode_id)).error_solutions


async def told(world) -> list[tuple[str, bool, tuple[str, ...]]]:
    """What is stored, oldest first."""
    page = await world.services.errors.solutions.list_page(NS, ErrorSolutionFilter(), 100, None)
    await check_invariants(world.store, NS)
    contents = [one.content for one in reversed(page.items)]
    return [(one.error_message, one.worked, one.steps) for one in contents]


async def test_an_error_that_was_overcome_is_stored_with_the_steps_between():
    world = await open_world()
    [solution] = await take(world, *MENDED, labels={"language": "py"})
    content = solution.content
    assert (content.error_type, content.error_message) == tuple(LOST.values())
    assert content.steps == ('tool_call(pip): install it {"name": "x", "tries": 2}',)
    assert content.worked
    assert content.context == (
        'Task: Make the tests pass\nFailed at: tool_call(pytest): {"path": "tests"}'
    )
    assert (content.language, content.categories) == ("python", ("testing",))
    assert (content.tags, content.source_episode_ids) == (("extracted",), ("e",))
    assert solution.outcomes.success_rate == 1.0
    assert await world.services.errors.solutions.get(NS, solution.error_solution_id) == solution


async def test_an_error_that_was_not_overcome_is_stored_as_unresolved_even_of_a_success():
    world = await open_world()
    [solution] = await take(world, call("editor"), call("pytest", error=LOST))
    assert (solution.content.worked, solution.content.steps) == (False, ())
    assert solution.outcomes.success_rate == 0.0


async def test_an_error_that_came_back_is_stored_with_what_did_not_work_and_with_what_did():
    world = await open_world()
    failed = call("pytest", error=LOST)
    await take(world, failed, call("guess"), failed, call("pip"), call("pytest"))
    assert await told(world) == [
        (LOST["message"], False, ("tool_call(guess)",)),
        (LOST["message"], True, ("tool_call(pip)",)),
    ]


async def test_a_failure_stores_its_error_and_those_it_overcame_on_its_way():
    world = await open_world()
    error = EpisodeError("TimeoutError", "too slow")
    solutions = await take(world, *MENDED, status=FAILED, error=error)
    assert await told(world) == [
        (LOST["message"], True, ('tool_call(pip): install it {"name": "x", "tries": 2}',)),
        ("too slow", False, ()),
    ]
    assert solutions[1].content.context == "Task: Make the tests pass"
    assert await payloads(world, PATTERNS) == []


async def test_an_error_without_a_message_is_told_by_its_type():
    world = await open_world()
    [solution] = await take(world, status=FAILED, error=EpisodeError("OutOfMemory"))
    assert (solution.content.error_type, solution.content.error_message) == ("OutOfMemory",) * 2


@pytest.mark.parametrize("error", [None, EpisodeError()])
async def test_a_failure_that_tells_of_no_error_teaches_none(error):
    world = await open_world()
    assert await take(world, step("thought"), status=FAILED, error=error) == []
    assert await told(world) == []


async def test_the_same_end_again_gives_the_same_and_stores_nothing():
    world = await open_world()
    error = EpisodeError("TimeoutError", "too slow")
    first = await take(world, *MENDED, status=FAILED, error=error)
    before = await rows(world.store, ERROR_SOLUTIONS), await rows(world.store, EPISODES)
    for one in (world, world.another_process()):
        assert await take(one, *MENDED, status=FAILED, error=error) == first
    assert (await rows(world.store, ERROR_SOLUTIONS), await rows(world.store, EPISODES)) == before


async def test_what_another_episode_taught_before_stays_as_it_is_and_is_told_again():
    world = await open_world()
    first = await take(world, *MENDED)
    assert await take(world, *MENDED, episode_id="later") == first
    assert len(await payloads(world, ERROR_SOLUTIONS)) == 1


async def test_a_solution_that_was_deleted_does_not_come_back_with_another_episode():
    world = await open_world()
    failed = call("pytest", error=LOST)
    many = (failed, call("guess"), failed, call("pip"), call("pytest"))
    bad, good = await take(world, *many)
    await world.services.errors.solutions.delete(NS, bad.error_solution_id)
    assert await take(world, *many) == [good]
    assert await take(world, *many, episode_id="later") == [good]
    assert len(await payloads(world, ERROR_SOLUTIONS)) == 1
    content = bad.content  # who saves it by hand has it back
    given = error_solution(
        content.error_message,
        error_type=content.error_type,
        resolution="",
        steps=content.steps,
        worked=False,
    )
    await world.services.errors.solutions.save(NS, given)
    assert len(await take(world, *many, episode_id="last")) == 2


async def test_one_episode_does_not_teach_the_same_twice():
    """One error at two times, of which the same was made."""
    world = await open_world()
    events = [
        one
        for at in (1, 2)
        for one in (
            call("curl", error=f"2026-01-02T03:04:0{at}Z no file 'a'"),
            call("touch"),
            call("curl"),
        )
    ]
    assert len(await take(world, *events)) == 1


async def test_two_processes_that_take_one_lesson_come_to_the_same_solutions():
    world = await open_world(Interleaving(InMemoryStore(FixedClock())))
    error = EpisodeError("TimeoutError", "too slow")
    given = EpisodeDraft(
        EpisodeStart("t"), "e", end=end(FAILED, error=error), events=MENDED, extract=True
    )
    await world.services.episodes.creator.record(NS, given)
    both = await asyncio.gather(
        *[
            one.services.extraction.episodes.take(NS, "e")
            for one in (world, world.another_process())
        ]
    )
    one, two = [
        [each.error_solution_id for each in extracted.error_solutions] for extracted in both
    ]
    assert one == two
    assert len(await told(world)) == 2


async def test_a_lesson_that_stops_midway_is_open_and_taken_whole_later(monkeypatch):
    world = await open_world()
    embed, calls = world.embedder.embed_documents, []

    async def once(texts):
        calls.append(texts)
        if len(calls) > 2:  # of the episode itself and of the first error
            raise EmbeddingFailedError("the model cannot be reached")
        return await embed(texts)

    monkeypatch.setattr(world.embedder, "embed_documents", once)
    error = EpisodeError("TimeoutError", "too slow")
    with pytest.raises(EmbeddingFailedError):
        await take(world, *MENDED, status=FAILED, error=error)
    assert len(await told(world)) == 1
    [episode] = await payloads(world, EPISODES)
    assert episode[EXTRACTION] == REQUESTED
    monkeypatch.undo()
    assert (await world.services.housekeeping.roll_forward(starting=True)).counts[
        "extractions"
    ] == 1
    assert len(await told(world)) == 2
    assert len(await take(world, *MENDED, status=FAILED, error=error)) == 2


async def test_as_many_and_as_long_as_may_be_are_all_stored():
    world = await open_world()
    events = [
        call(f"t{n}", error={"type": "é" * 2_000, "message": "x" * n + " é" * 40_000})
        for n in range(30)
    ]
    error = EpisodeError("E" * 1_024, "é" * 32_768)
    solutions = await take(world, *events, status=FAILED, error=error)
    assert len(solutions) == len(await told(world)) == 20
    assert solutions[-1].content.error_type == "E" * 1_024


async def test_an_error_that_says_nothing_but_nul_is_none():
    """As an event may hold that came past the server's checks: it must not stop the others."""
    world = await open_world()
    solutions = await take(world, call("a", error="\0"), call("b", error={"type": "X\0"}))
    assert [one.content.error_message for one in solutions] == ["X"]
