"""Finding error solutions, below the wire; what callers see is in tests/server."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from lot_grpc.domain.episode import EpisodeEnd, EpisodeError, EpisodeStart, EpisodeStatus
from lot_grpc.domain.error_found import ErrorFound
from lot_grpc.domain.error_text import signature
from lot_grpc.domain.errors import ErrorSolutionNotFoundError
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.policy import NamespacePolicy, PolicyEdit
from lot_grpc.services.episodes.drafts import EpisodeDraft
from lot_grpc.services.errors import error_reading
from lot_grpc.services.errors.error_finder import ErrorAnswer, ErrorQuery
from lot_grpc.services.errors.error_outcomes import ErrorOutcomeDraft
from lot_grpc.services.records.collections import ERROR_SOLUTIONS, OUTCOMES, RETRIEVALS
from tests.services.world import DAY, NS, World, call, error_solution, payloads, rows, sweep

LOG = "".join(f"step {n}: fetched layer {n} of the manifest to parse\n" for n in range(9))


async def save(world: World, message: str, solution_id: str = "", **named: Any) -> None:
    draft = error_solution(message, error_solution_id=solution_id, **named)
    await world.services.errors.solutions.save(NS, draft)


async def find(world: World, message: str = "", **named: Any) -> ErrorAnswer:
    return await world.services.errors.finder.find(NS, ErrorQuery("", message, **named))


async def helped(world: World, solution_id: str, outcome: Outcome, times: int = 1) -> None:
    for _ in range(times):
        draft = ErrorOutcomeDraft(solution_id, outcome)
        await world.services.outcomes.of_errors.record(NS, draft)


def ids(hits: list[ErrorFound]) -> list[str]:
    return [hit.error_solution.error_solution_id for hit in hits]


async def test_the_likeness_of_the_raw_message_comes_before_reliability(world):
    await save(world, "cannot reach host 10.0.0.7 from the shop", "near")
    await save(world, "cannot reach host 10.9.9.9 from the shop", "far")
    await helped(world, "far", Outcome.SUCCESS, 20)
    answer = await find(world, "cannot reach host 10.0.0.7 from the shop")
    assert ids(answer.hits) == ["near", "far"]
    await save(world, "cannot reach host 10.0.0.7 from the shop", "same", resolution="other")
    await helped(world, "near", Outcome.FAILURE)
    assert ids((await find(world, "cannot reach host 10.0.0.7 from the shop")).hits)[0] == "same"
    await helped(world, "near", Outcome.SUCCESS, 3)
    assert ids((await find(world, "cannot reach host 10.0.0.7 from the shop")).hits)[0] == "near"


async def test_among_very_many_of_one_signature_the_one_of_the_name_is_found(world):
    names = [f"module{n}" for n in range(300)]
    for name in names:
        await save(world, f"No module named '{name}'", name)
    for name in (names[0], names[150], names[-1]):
        answer = await find(world, f"No module named '{name}'", limit=1)
        assert ids(answer.hits) == [name]


async def test_an_answer_is_remembered_for_its_outcome(world):
    await save(world, "KeyError: 'a'", "s")
    await save(world, "KeyError: 'b'", "vain", worked=False)
    answer = await find(world, "KeyError: 'c'")
    await world.services.runtime.retrievals.flush()
    [remembered] = await payloads(world, RETRIEVALS)
    assert remembered["retrieval_id"] == answer.retrieval_id
    assert remembered["query"] == "KeyError: 'c'"
    assert remembered["shown"] == ["error_solution", "error_solution/s", "error_solution/vain"]
    draft = ErrorOutcomeDraft("s", Outcome.SUCCESS, retrieval_id=answer.retrieval_id)
    await world.services.outcomes.of_errors.record(NS, draft)
    [fact] = await payloads(world, OUTCOMES)
    assert (fact["resource_id"], fact["query"]) == ("s", "KeyError: 'c'")
    assert fact["applied"]


async def test_outcomes_at_once_are_all_counted(world):
    await save(world, "KeyError: 'a'", "s")
    await asyncio.gather(*(helped(world, "s", Outcome.SUCCESS) for _ in range(20)))
    counted = (await world.services.errors.solutions.get(NS, "s")).outcomes
    assert (counted.success_count, len(await payloads(world, OUTCOMES))) == (20, 20)


async def test_the_log_goes_with_the_solution_and_not_with_another_that_takes_its_id(world):
    for name in ("s", "t"):
        await save(world, "KeyError: 'a'", name)
        await helped(world, name, Outcome.SUCCESS)
    await world.services.errors.solutions.delete(NS, "s")
    assert [fact["resource_id"] for fact in await payloads(world, OUTCOMES)] == ["t"]
    await save(world, "another", "s")
    assert (await world.services.errors.solutions.get(NS, "s")).outcomes.usage_count == 0
    with pytest.raises(ErrorSolutionNotFoundError):
        await helped(world, "gone", Outcome.SUCCESS)
    assert len(await payloads(world, OUTCOMES)) == 1


@pytest.mark.parametrize("swept", [True, False])
async def test_the_log_of_what_expired_is_forgotten(world, swept):
    await save(world, "KeyError: 'a'", "s", ttl=10_000_000)
    await save(world, "KeyError: 'b'", "kept")
    for name in ("s", "kept"):
        await helped(world, name, Outcome.SUCCESS)
    world.clock.advance(11)
    if swept:
        await world.services.housekeeping.drop_expired()
    else:
        await save(world, "KeyError: 'c'", "s")  # its id is free, and was not swept yet
    assert [fact["resource_id"] for fact in await payloads(world, OUTCOMES)] == ["kept"]


# --- what episodes teach ----------------------------------------------------------------------


async def recorded(world: World, episode_id: str, *events: Any, end: EpisodeEnd) -> None:
    start = EpisodeStart("import the data", category="etl")
    draft = EpisodeDraft(start, episode_id, end=end, events=events, extract=True)
    await world.services.episodes.creator.record(NS, draft)
    await world.services.extraction.episodes.take(NS, episode_id)


async def test_an_error_that_an_episode_overcame_is_found_with_other_names(world):
    await recorded(
        world,
        "e",
        call("pytest", error="File \"/a/x.py\", line 3\nKeyError: 'port'"),
        call("edit", note="give a default"),
        call("pytest"),
        end=EpisodeEnd(EpisodeStatus.SUCCEEDED),
    )
    answer = await find(
        world, "Traceback (most recent call last):\n  File \"/b.py\"\nKeyError: 'host'"
    )
    [hit] = answer.hits
    assert hit.exact
    assert hit.error_solution.content.worked
    assert any("give a default" in step for step in hit.error_solution.content.steps)
    assert [(one.part, one.given, one.stored) for one in hit.differences] == [
        ("name", "host", "port")
    ]
    assert ids((await find(world, "KeyError: 'x'", categories=("etl",))).hits) == ids(answer.hits)


async def test_an_error_that_ended_an_episode_comes_back_as_unsolved(world):
    failed = EpisodeEnd(EpisodeStatus.FAILED, error=EpisodeError("OSError", "disk /dev/sda1 full"))
    await recorded(world, "e", call("copy"), end=failed)
    answer = await world.services.errors.finder.find(
        NS, ErrorQuery("OSError", "disk /dev/nvme0 full")
    )
    assert answer.hits == []
    [hit] = answer.unsolved
    assert (hit.exact, hit.error_solution.content.worked) == (True, False)


# --- retention --------------------------------------------------------------------------------


async def bound(world: World, **named: Any) -> None:
    edit = PolicyEdit(NamespacePolicy(**named), frozenset(named))
    await world.services.retention.policies.update(NS, edit, "")


async def test_of_too_many_the_reliable_ones_stay_then_the_newest(world):
    for n in range(4):
        await save(world, f"error {'abcd'[n]}", str(n))
        world.clock.advance(1)
    await helped(world, "0", Outcome.SUCCESS, 3)
    await helped(world, "3", Outcome.FAILURE, 3)
    await bound(world, max_error_solutions=2)
    await sweep(world)
    left = {row.payload["error_solution_id"] for row in await rows(world.store, ERROR_SOLUTIONS)}
    assert left == {"0", "2"}
    facts = {fact["resource_id"] for fact in await payloads(world, OUTCOMES)}
    assert facts == {"0"}


async def test_what_was_used_lately_is_not_old(world):
    for name in ("used", "unused"):
        await save(world, f"error {name}", name)
    world.clock.advance(10 * DAY)
    await helped(world, "used", Outcome.SUCCESS)
    await bound(world, max_error_solution_age=5 * DAY * 1_000_000)
    await sweep(world)
    left = [row.payload["error_solution_id"] for row in await rows(world.store, ERROR_SOLUTIONS)]
    assert left == ["used"]


async def test_the_same_error_is_found_in_a_log_of_other_words(world):
    """By the words of what it states: those of the log are in other errors."""
    for number in range(40):
        await save(world, f"{LOG}Error: worker {number} of the shop is lost\n{LOG}")
    await save(world, "ValueError: cannot parse the manifest 'a'", "same")
    log = f"{LOG}ConfigError: could not parse the manifest 'b'\n{LOG}"
    answer = await find(world, log, limit=1)
    assert [hit.error_solution.error_solution_id for hit in answer.hits if hit.exact] == ["same"]


async def test_long_errors_are_read_and_compared_beside_the_loop(world, monkeypatch):
    """Else a few long messages would keep every other call waiting."""
    readers = set()

    def seen(name):
        real = getattr(signature, name)

        def spy(*given):
            readers.add((name, threading.current_thread() is threading.main_thread()))
            return real(*given)

        return spy

    monkeypatch.setattr(error_reading, "read_error", seen("read_error"))
    monkeypatch.setattr(error_reading, "same_errors", seen("same_errors"))
    text = "\n".join(f"Error: cannot open part {n} of the archive" for n in range(40))
    await save(world, text)
    await find(world, text)
    assert readers == {("read_error", False), ("same_errors", False)}
