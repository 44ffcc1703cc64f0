"""Decisions and what came of them."""

from __future__ import annotations

import asyncio

import pytest

from lot_grpc.domain.decision import Decision, DecisionFilter, DecisionOption, DecisionOutcome
from lot_grpc.domain.errors import (
    DecisionIdInUseError,
    DecisionNotFoundError,
    RequestIdReusedError,
)
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.services.learning.decisions import DecisionOutcomeDraft
from lot_grpc.services.records.collections import DECISIONS
from lot_grpc.testing.faults import FaultInjectingStore, InjectedFault, When
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.world import DAY, NS, Interleaving, World, decision, open_world, payloads


async def came(world: World, outcome: Outcome, request_id: str = "", **more: object):
    given = DecisionOutcomeDraft("d", outcome, request_id=request_id, **more)  # type: ignore[arg-type]
    return await world.services.learning.decisions.record_outcome(NS, given)


async def test_a_decision_is_there_as_it_was_given(world):
    options = (DecisionOption("a", "first", 0.0), DecisionOption("b"))
    draft = decision(options=options, confidence=0.0, metadata={"x": None}, decision_time=0)
    made, created = await world.services.learning.decisions.record(NS, draft)
    assert created
    assert made.content == draft.content
    assert await world.services.learning.decisions.get(NS, made.decision_id) == made


async def test_the_same_decision_under_its_id_answers_alike_and_another_is_refused(world):
    first, _ = await world.services.learning.decisions.record(NS, decision(decision_id="d"))
    await came(world, Outcome.SUCCESS)
    again, created = await world.services.learning.decisions.record(NS, decision(decision_id="d"))
    assert not created
    assert again.content == first.content
    assert again.result is not None
    for request_id in ("", "r", "r"):
        other = decision("Which port?", decision_id="d", request_id=request_id)
        with pytest.raises(DecisionIdInUseError):
            await world.services.learning.decisions.record(NS, other)
    assert len(await payloads(world, DECISIONS)) == 1


async def test_a_request_again_answers_alike_and_with_other_content_is_refused(world):
    first = await world.services.learning.decisions.record(NS, decision(request_id="r"))
    assert await world.services.learning.decisions.record(NS, decision(request_id="r")) == first
    with pytest.raises(RequestIdReusedError):
        await world.services.learning.decisions.record(NS, decision("Which port?", request_id="r"))


async def test_an_outcome_takes_the_place_of_the_last_one_whole(world):
    await world.services.learning.decisions.record(NS, decision(decision_id="d"))
    first = await came(world, Outcome.SUCCESS, reward=1.0, note="fine")
    assert (first.reward, first.result.note) == (1.0, "fine")
    world.clock.advance(5)
    second = await came(world, Outcome.FAILURE)
    assert second.result.outcome is Outcome.FAILURE
    assert (second.reward, second.result.note) == (None, "")
    assert second.result.outcome_time > first.result.outcome_time
    assert await world.services.learning.decisions.get(NS, "d") == second


async def test_an_unknown_decision_takes_no_outcome(world):
    with pytest.raises(DecisionNotFoundError):
        await came(world, Outcome.SUCCESS, request_id="r")
    await world.services.learning.decisions.record(NS, decision(decision_id="d"))
    assert (await came(world, Outcome.SUCCESS, request_id="r")).result is not None


@pytest.mark.parametrize("when", list(When))
async def test_an_outcome_sent_again_does_not_undo_the_one_that_came_after_it(when):
    """The first try died before or after its write; another outcome came before the retry."""
    clock = FixedClock()
    for write in range(1, 4):
        world = await open_world(FaultInjectingStore(InMemoryStore(clock)), clock)
        await world.services.learning.decisions.record(NS, decision(decision_id="d"))
        world.store.fail_at(write, when)
        with pytest.raises(InjectedFault):
            await came(world, Outcome.SUCCESS, "r")
        world.store.revive()
        world = world.another_process()
        written = (await world.services.learning.decisions.get(NS, "d")).result is not None
        for request_id in ("other", "third"):
            await came(world, Outcome.PARTIAL, request_id)
        again = await came(world, Outcome.SUCCESS, "r")
        expected = Outcome.PARTIAL if written else Outcome.SUCCESS
        assert again.result.outcome is expected, (write, when)
        [row] = await payloads(world, DECISIONS)
        assert len(row["pending_requests"]) <= 2


async def test_requests_that_are_forgotten_are_dropped(world):
    await world.services.learning.decisions.record(NS, decision(decision_id="d"))
    await came(world, Outcome.SUCCESS, "r")
    world.clock.advance(2 * DAY)
    await came(world, Outcome.FAILURE)
    [row] = await payloads(world, DECISIONS)
    assert row["pending_requests"] == []


async def test_the_reward_of_feedback_is_taken_where_there_is_none(world):
    decisions = world.services.learning.decisions
    await decisions.record(NS, decision(decision_id="d"))
    await decisions.take_reward(NS, "d", 0.5)
    await decisions.take_reward(NS, "d", -1.0)
    assert (await decisions.get(NS, "d")).reward == 0.5
    assert (await came(world, Outcome.SUCCESS, reward=0.0)).reward == 0.0
    assert (await came(world, Outcome.SUCCESS)).reward == 0.5
    [pending] = (await decisions.list_page(NS, DecisionFilter(pending=False), 10, None))[0]
    assert pending.decision_id == "d"


@pytest.mark.parametrize("seed", [7, 100, 102])
async def test_outcomes_and_rewards_at_once_are_one_after_the_other(seed):
    clock = FixedClock()
    world = await open_world(Interleaving(InMemoryStore(clock), seed), clock)
    await world.services.learning.decisions.record(NS, decision(decision_id="d"))
    await asyncio.gather(
        *(came(world, Outcome.SUCCESS, f"r{n % 5}", note=f"n{n % 5}") for n in range(10)),
        *(world.services.learning.decisions.take_reward(NS, "d", n / 10) for n in range(1, 5)),
    )
    [row] = await payloads(world, DECISIONS)
    assert row["result_revision"] == 1 + 5 + 1


async def test_a_delete_and_what_comes_meanwhile_end_in_no_decision():
    """An outcome between the look of a delete and its write is no reason to leave the decision."""
    clock = FixedClock()
    world = await open_world(Interleaving(InMemoryStore(clock), 7), clock)
    await world.services.learning.decisions.record(NS, decision(decision_id="d"))
    outcomes = (came(world, Outcome.SUCCESS, f"r{n}") for n in range(5))
    done = await asyncio.gather(
        world.services.learning.decisions.delete(NS, "d"), *outcomes, return_exceptions=True
    )
    assert done[0] is None
    assert {type(one) for one in done[1:]} <= {Decision, DecisionNotFoundError}
    assert await payloads(world, DECISIONS) == []


async def test_an_outcome_for_a_deleted_decision_is_none_of_the_next_one_of_its_id(world):
    """Its first try died before the write; the decision was deleted, and its id taken again."""
    await world.services.learning.decisions.record(NS, decision(decision_id="d"))
    store = FaultInjectingStore(world.store)
    other = await open_world(store, world.clock)
    store.fail_at(2, When.BEFORE)
    with pytest.raises(InjectedFault):
        await came(other, Outcome.SUCCESS, "r")
    await world.services.learning.decisions.delete(NS, "d")
    world.clock.advance(1)
    await world.services.learning.decisions.record(NS, decision("Which port?", decision_id="d"))
    with pytest.raises(DecisionNotFoundError):
        await came(world, Outcome.SUCCESS, "r")
    assert (await world.services.learning.decisions.get(NS, "d")).result is None


async def test_an_outcome_whose_other_try_was_done_before_the_decision_went_finds_none(world):
    """Both the request and the decision are gone by the time that the decision is read."""
    result = DecisionOutcome(Outcome.SUCCESS, world.clock.now())
    with pytest.raises(DecisionNotFoundError):
        await world.services.learning.decisions._take_outcome(NS, "gone", result, "a request")
