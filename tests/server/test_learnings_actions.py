"""SelectAction, RecordSteps and ListActionValues on the wire."""

from __future__ import annotations

import math
from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import learning_pb2, outcome_pb2
from tests.server.service import Lot
from tests.server.wire import failure

MEDIUM = outcome_pb2.COMPLEXITY_MEDIUM
CODE: dict[str, Any] = {"task_type": "code", "complexity": MEDIUM}
TEST: dict[str, Any] = {"task_type": "test"}
POLICIES = sorted(set(learning_pb2.SelectionPolicy.values()))
GREEDY = learning_pb2.SELECTION_POLICY_GREEDY
DAY = 24 * 3600


def step(action: str, reward: float, state: Any = None, **more: Any) -> dict[str, Any]:
    return {"state": state or CODE, "action": action, "reward": reward, **more}


def names(answer: Any) -> list[str]:
    return [value.action for value in answer.action_values]


async def test_a_trajectory_is_learned_from_its_end(lot):
    answer = await lot.learning.RecordSteps(
        steps=[step("plan", 0.0, next_state=TEST), step("run", 1.0, TEST)]
    )
    by_name = {value.action: value for value in answer.action_values}
    assert names(answer) == ["plan", "run"]
    assert by_name["run"].value == pytest.approx(0.1)
    assert by_name["plan"].value == pytest.approx(0.1 * 0.95 * 0.1)
    assert (by_name["plan"].task_type, by_name["plan"].complexity) == ("code", MEDIUM)
    assert by_name["run"].complexity == outcome_pb2.COMPLEXITY_UNSPECIFIED
    assert [value.visit_count for value in answer.action_values] == [1, 1]
    assert by_name["run"].update_time.seconds > 0


async def test_the_best_actions_come_first_and_equal_ones_by_name(lot):
    rewards = {"d": 0.5, "b": 0.5, "a": -1.0, "e": 0.9, "c": 0.5}
    await lot.learning.RecordSteps(steps=[step(name, reward) for name, reward in rewards.items()])
    assert names(await lot.learning.ListActionValues(state=CODE)) == ["e", "b", "c"]
    assert names(await lot.learning.ListActionValues(state=CODE, limit=100)) == list("ebcda")
    assert names(await lot.learning.ListActionValues(state=CODE, limit=1)) == ["e"]


async def test_of_an_unknown_state_nothing_is_best_and_any_action_is_chosen(lot):
    await lot.learning.RecordSteps(steps=[step("a", 1.0)])
    other = {"task_type": "code", "complexity": outcome_pb2.COMPLEXITY_HIGH}
    assert names(await lot.learning.ListActionValues(state=other)) == []
    chosen = set()
    for seed in range(20):
        answer = await lot.learning.SelectAction(
            state=other, actions=[{"name": "a"}, {"name": "b"}], policy=GREEDY, seed=seed
        )
        assert answer.explored
        assert not answer.action_values
        chosen.add(answer.action.name)
    assert chosen == {"a", "b"}


async def test_features_stay_outside_of_what_is_learned(lot):
    await lot.learning.RecordSteps(steps=[step("a", 1.0, {**CODE, "features": {"team": "x"}})])
    assert names(await lot.learning.ListActionValues(state=CODE)) == ["a"]


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_seed_makes_the_choice_the_same_in_any_order(lot, policy):
    await lot.learning.RecordSteps(steps=[step(name, 0.1) for name in "abc"])
    options = [{"name": name} for name in "abc"]
    for seed in (0, -5, 2**62):
        requested = {"state": CODE, "policy": policy, "seed": seed}
        first = await lot.learning.SelectAction(actions=options, **requested)
        again = await lot.learning.SelectAction(actions=options[::-1], **requested)
        assert first.action.name == again.action.name
        assert first.explored == again.explored
        assert first.selection_id != again.selection_id


async def test_a_selection_gives_the_action_back_and_what_was_known(lot):
    await lot.learning.RecordSteps(steps=[step("b", 1.0), step("x", 1.0)])
    answer = await lot.learning.SelectAction(
        state=CODE,
        actions=[{"name": "a"}, {"name": "b", "parameters": {"depth": 3}}],
        policy=GREEDY,
    )
    assert answer.action.name == "b"
    assert answer.action.parameters["depth"] == 3
    assert not answer.explored
    assert names(answer) == ["b"]
    assert answer.action_values[0].value == pytest.approx(0.1)


async def test_without_exploration_epsilon_greedy_is_greedy_and_with_all_of_it_random(lot):
    await lot.learning.RecordSteps(steps=[step("b", 1.0)])
    options = [{"name": name} for name in "abc"]
    for rate, wanted in ((0.0, {"b"}), (1.0, {"a", "b", "c"})):
        chosen = set()
        for seed in range(30):
            answer = await lot.learning.SelectAction(
                state=CODE, actions=options, seed=seed, exploration_rate=rate
            )
            chosen.add(answer.action.name)
            assert answer.explored == (rate == 1.0)
        assert chosen == wanted


async def test_the_same_request_gives_the_same_selection(lot):
    requested: dict[str, Any] = {
        "state": CODE,
        "actions": [{"name": n} for n in "abcdef"],
        "request_id": "r",
    }
    first = await lot.learning.SelectAction(**requested)
    await lot.learning.RecordSteps(steps=[step(name, 1.0) for name in "abcdef"])
    for _ in range(5):
        assert await lot.learning.SelectAction(**requested) == first
    failed = await failure(lot.learning.SelectAction(**{**requested, "seed": 1}))
    assert failed.reason == "REQUEST_ID_REUSED"


async def test_a_selection_is_rewarded_by_its_id(lot):
    chosen = await lot.learning.SelectAction(state=CODE, actions=[{"name": "a"}])
    answer = await lot.learning.RecordSteps(
        steps=[{"selection_id": chosen.selection_id, "reward": 1.0}]
    )
    assert [(value.action, value.task_type) for value in answer.action_values] == [("a", "code")]
    same = step("a", 1.0, selection_id=chosen.selection_id)
    [value] = (await lot.learning.RecordSteps(steps=[same])).action_values
    assert value.visit_count == 2


async def test_a_step_that_contradicts_its_selection_is_refused(lot):
    chosen = await lot.learning.SelectAction(state=CODE, actions=[{"name": "a"}])
    for changed, field in (({"action": "b"}, "action"), ({"state": TEST}, "state")):
        given = [step("x", 1.0), {**step("a", 1.0, selection_id=chosen.selection_id), **changed}]
        failed = await failure(lot.learning.RecordSteps(steps=given))
        assert failed.fields == {f"steps[1].{field}": "step.selection"}
    assert names(await lot.learning.ListActionValues(state=CODE)) == []


async def test_an_unknown_selection_learns_nothing(lot):
    given = [step("a", 1.0), {"selection_id": "none", "reward": 1.0}]
    failed = await failure(lot.learning.RecordSteps(steps=given, request_id="r"))
    assert (failed.code, failed.reason) == ("NOT_FOUND", "SELECTION_NOT_FOUND")
    assert "set state and action" in failed.message
    assert names(await lot.learning.ListActionValues(state=CODE)) == []
    answer = await lot.learning.RecordSteps(steps=[step("a", 1.0)], request_id="r")
    assert answer.action_values[0].visit_count == 1  # the refused one was not entered


async def test_a_selection_is_kept_for_thirty_days(lot: Lot):
    chosen = await lot.learning.SelectAction(state=CODE, actions=[{"name": "a"}])
    given = [{"selection_id": chosen.selection_id, "reward": 1.0}]
    lot.clock.advance(30 * DAY - 1)
    await lot.learning.RecordSteps(steps=given)
    lot.clock.advance(1)
    failed = await failure(lot.learning.RecordSteps(steps=given))
    assert failed.reason == "SELECTION_NOT_FOUND"


async def test_the_same_request_is_learned_once(lot):
    given = {"steps": [step("a", 1.0), step("a", 1.0)], "request_id": "r"}
    first = await lot.learning.RecordSteps(**given)
    again = await lot.learning.RecordSteps(**given)
    assert first == again
    assert first.action_values[0].visit_count == 2
    failed = await failure(lot.learning.RecordSteps(steps=[step("b", 1.0)], request_id="r"))
    assert failed.reason == "REQUEST_ID_REUSED"


async def test_nothing_is_learned_across_namespaces(lot):
    await lot.learning.RecordSteps(steps=[step("a", 1.0)])
    chosen = await lot.learning.SelectAction(state=CODE, actions=[{"name": "a"}])
    other = lot.on(f"{lot.namespace}-other")
    assert names(await other.learning.ListActionValues(state=CODE)) == []
    given = [{"selection_id": chosen.selection_id, "reward": 1.0}]
    failed = await failure(other.learning.RecordSteps(steps=given))
    assert failed.reason == "SELECTION_NOT_FOUND"


@pytest.mark.parametrize("reward", [1.01, -1.01, math.nan, math.inf])
async def test_a_reward_out_of_range_is_refused(lot, reward):
    failed = await failure(lot.learning.RecordSteps(steps=[step("a", 1.0), step("a", reward)]))
    assert failed.reason == "REQUEST_INVALID"
    assert list(failed.fields) == ["steps[1].reward"]
    assert names(await lot.learning.ListActionValues(state=CODE)) == []


@pytest.mark.parametrize(
    ("steps", "field"),
    [
        ([], "steps"),
        ([step("a", 0.0)] * 1001, "steps"),
        ([{"action": "a"}], "steps[0]"),
        ([{"state": CODE}], "steps[0]"),
        ([step("a", 0.0, {"task_type": ""})], "steps[0].state.task_type"),
    ],
)
async def test_steps_that_say_too_little_or_are_too_many_are_refused(lot, steps, field):
    failed = await failure(lot.learning.RecordSteps(steps=steps))
    assert field in failed.fields


async def test_choosing_from_nothing_or_from_twice_the_same_is_refused(lot):
    for actions in ([], [{"name": "a"}, {"name": "a"}], [{"name": ""}]):
        failed = await failure(lot.learning.SelectAction(state=CODE, actions=actions))
        assert failed.reason == "REQUEST_INVALID"


async def test_a_policy_sets_the_learning_rate_and_the_discount(lot):
    policy = {"action_learning_rate": 0.5, "action_discount": 0.0}
    set_to = (await lot.admin.UpdateNamespacePolicy(policy=policy)).policy
    assert (set_to.action_learning_rate, set_to.action_discount) == (0.5, 0.0)
    first, last = {"task_type": "first"}, {"task_type": "last"}
    await lot.learning.RecordSteps(steps=[{"state": last, "action": "a", "reward": 1.0}])
    moved = await lot.learning.RecordSteps(
        steps=[{"state": first, "action": "a", "reward": 0.2, "next_state": last}]
    )
    assert moved.action_values[0].value == pytest.approx(0.1), "the next state counts nothing"
    paths = {"paths": ["action_learning_rate", "action_discount"]}
    reset = (await lot.admin.UpdateNamespacePolicy(policy={}, update_mask=paths)).policy
    assert (reset.action_learning_rate, reset.action_discount) == (0.1, 0.95)


@pytest.mark.parametrize(
    ("field", "value"),
    [("action_learning_rate", 0.0), ("action_learning_rate", 1.1), ("action_discount", 1.0)],
)
async def test_rates_out_of_bounds_are_refused(lot, field, value):
    failed = await failure(lot.admin.UpdateNamespacePolicy(policy={field: value}))
    assert list(failed.fields) == [f"policy.{field}"]
