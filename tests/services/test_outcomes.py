from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from lot_grpc.domain.errors import (
    PatternNotFoundError,
    RequestIdReusedError,
    RetrievalNotFoundError,
)
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.services.records.collections import OUTCOMES, PATTERNS
from tests.services.world import DAY, NS, outcome, payloads, recall, save


async def test_an_outcome_counts_for_each_pattern_that_was_used(world):
    one, two, other = [(await save(world, name)).pattern for name in ("one", "two", "other")]
    world.clock.advance(3)
    counted = await outcome(
        world, two.pattern_id, one.pattern_id, outcome=Outcome.PARTIAL, duration=2.0
    )
    assert [pattern.pattern_id for pattern in counted] == [two.pattern_id, one.pattern_id]
    for pattern in counted:
        assert await world.services.patterns.patterns.get(NS, pattern.pattern_id) == pattern
        assert pattern.outcomes.usage_count == pattern.outcomes.partial_count == 1
        assert pattern.outcomes.success_rate == pytest.approx(0.85)
        assert pattern.outcomes.average_duration == 2.0
        assert pattern.outcomes.last_used_time == world.clock.now()
        assert pattern.update_time < world.clock.now()
    assert (
        await world.services.patterns.patterns.get(NS, other.pattern_id)
    ).outcomes.usage_count == 0


async def test_an_outcome_has_one_time_for_all_its_patterns(world, monkeypatch):
    used = [(await save(world, name)).pattern.pattern_id for name in ("one", "two")]
    ticks = count(world.clock.now())
    monkeypatch.setattr(world.clock, "now", lambda: next(ticks))
    await outcome(world, *used)
    assert len({recorded["create_time"] for recorded in await payloads(world, OUTCOMES)}) == 1


async def test_the_log_holds_what_was_said(world):
    one = (await save(world)).pattern
    await outcome(
        world, one.pattern_id, outcome=Outcome.FAILURE, reward=-0.5, duration=1.5,
        query="log in", note="timed out",
    )  # fmt: skip
    (recorded,) = await payloads(world, OUTCOMES)
    said = {
        key: recorded[key] for key in ("outcome", "reward", "duration", "query", "note", "applied")
    }
    assert said == {
        "outcome": "failure", "reward": -0.5, "duration": 1.5,
        "query": "log in", "note": "timed out", "applied": True,
    }  # fmt: skip


async def test_a_reward_never_moves_the_rate(world):
    one = (await save(world, initial_success_rate=0.5)).pattern
    (counted,) = await outcome(world, one.pattern_id, reward=-1.0)
    assert counted.outcomes.success_rate == pytest.approx(0.65)


async def test_the_query_of_a_recall_is_remembered_with_the_outcome(world):
    one = (await save(world)).pattern
    answer = await recall(world, "how to log in")
    await outcome(world, one.pattern_id, retrieval_id=answer.retrieval_id)
    await outcome(world, one.pattern_id, retrieval_id=answer.retrieval_id, query="my own words")
    await outcome(world, one.pattern_id, query="just a query")
    await outcome(world, one.pattern_id)
    recorded_outcomes = await payloads(world, OUTCOMES)
    assert sorted(recorded.get("query", "") for recorded in recorded_outcomes) == [
        "", "how to log in", "just a query", "my own words",
    ]  # fmt: skip


async def test_an_unknown_recall_is_refused_and_nothing_counts(world):
    one = (await save(world)).pattern
    with pytest.raises(RetrievalNotFoundError, match="send query as well, or instead"):
        await outcome(world, one.pattern_id, retrieval_id="r-unknown")
    assert (
        await world.services.patterns.patterns.get(NS, one.pattern_id)
    ).outcomes.usage_count == 0
    assert await payloads(world, OUTCOMES) == []


async def test_an_unknown_recall_beside_a_query_does_no_harm(world):
    one = (await save(world)).pattern
    (counted,) = await outcome(
        world, one.pattern_id, retrieval_id="r-lost-in-a-crash", query="log in"
    )
    assert counted.outcomes.usage_count == 1


async def test_one_unknown_pattern_and_none_is_counted(world):
    one = (await save(world)).pattern
    for request_id in ("", "r"):
        with pytest.raises(PatternNotFoundError, match="nothing was counted"):
            await outcome(world, one.pattern_id, "nope", request_id=request_id)
    assert (
        await world.services.patterns.patterns.get(NS, one.pattern_id)
    ).outcomes.usage_count == 0
    assert await payloads(world, OUTCOMES) == []


async def test_a_refused_request_id_is_free_for_the_corrected_call(world):
    one = (await save(world)).pattern
    with pytest.raises(PatternNotFoundError):
        await outcome(world, "nope", request_id="r")
    (counted,) = await outcome(world, one.pattern_id, request_id="r")
    assert counted.outcomes.usage_count == 1


async def test_a_pattern_named_twice_is_counted_once(world):
    one = (await save(world)).pattern
    await outcome(world, one.pattern_id, one.pattern_id)
    assert (
        await world.services.patterns.patterns.get(NS, one.pattern_id)
    ).outcomes.usage_count == 1


async def test_a_request_again_counts_once_and_answers_with_what_is_there_now(world):
    one, two = [(await save(world, name)).pattern for name in ("one", "two")]
    first = await outcome(world, one.pattern_id, two.pattern_id, request_id="r")
    await outcome(world, one.pattern_id)
    again = await outcome(world, one.pattern_id, two.pattern_id, request_id="r")
    assert [p.outcomes.usage_count for p in first] == [1, 1]
    assert [p.outcomes.usage_count for p in again] == [2, 1]
    assert len(await payloads(world, OUTCOMES)) == 3


async def test_a_request_again_needs_neither_its_recall_nor_its_patterns(world):
    one, two = [(await save(world, name)).pattern for name in ("one", "two")]
    answer = await recall(world, "one")
    named: dict[str, Any] = {"request_id": "r", "retrieval_id": answer.retrieval_id}
    await outcome(world, one.pattern_id, two.pattern_id, **named)
    await world.services.patterns.patterns.delete(NS, one.pattern_id, "")
    restarted = world.another_process()
    again = await outcome(restarted, one.pattern_id, two.pattern_id, **named)
    assert [(p.pattern_id, p.outcomes.usage_count) for p in again] == [(two.pattern_id, 1)]


@pytest.mark.parametrize(
    "changed", [{"outcome": Outcome.FAILURE}, {"note": "x"}, {"reward": 0.5}, {"query": "q"}]
)
async def test_a_request_id_with_other_content_is_refused(world, changed):
    one = (await save(world)).pattern
    await outcome(world, one.pattern_id, request_id="r")
    with pytest.raises(RequestIdReusedError):
        await outcome(world, one.pattern_id, request_id="r", **changed)
    assert (
        await world.services.patterns.patterns.get(NS, one.pattern_id)
    ).outcomes.usage_count == 1


async def test_after_a_day_a_request_id_counts_anew(world):
    one = (await save(world)).pattern
    await outcome(world, one.pattern_id, request_id="r")
    world.clock.advance(DAY)
    (counted,) = await outcome(world, one.pattern_id, request_id="r")
    assert counted.outcomes.usage_count == 2


async def test_settled_facts_are_not_carried_along_in_the_pattern(world):
    one = (await save(world)).pattern
    for _ in range(20):
        await outcome(world, one.pattern_id)
    (row,) = await payloads(world, PATTERNS)
    assert len(row["pending_ids"]) == 1, "each count drops what was settled before"
    assert row["success_permille"] == 1000


async def test_outcomes_survive_a_restart(world):
    one = (await save(world)).pattern
    (counted,) = await outcome(world, one.pattern_id, outcome=Outcome.FAILURE)
    restarted = world.another_process()
    assert await restarted.services.patterns.patterns.get(NS, one.pattern_id) == counted
