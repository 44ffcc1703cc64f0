"""Learning values of actions: each step once, by several at once, giving way to others."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from lot_grpc.domain.action_values import BOUND, LearningState
from lot_grpc.domain.selection import SelectionPolicy
from lot_grpc.services import time_slice as pacing
from lot_grpc.services.learning.step_recorder import StepDraft, StepsDraft
from lot_grpc.services.records.collections import ACTION_VALUES, TRAJECTORIES
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.invariants import check_invariants
from tests.services.world import (
    NS,
    STATE,
    Interleaving,
    SharedStore,
    World,
    open_world,
    payloads,
    select,
    steps,
)

SEEDS = (7, 100, 102)


async def values(world: World, state: LearningState = STATE) -> dict[str, tuple[float, int]]:
    found = await world.services.learning.action_values.best(NS, state, 1000)
    return {one.action: (one.value, one.visit_count) for one in found}


async def record(world: World, *given: tuple[str, float], request_id: str = "") -> None:
    await world.services.learning.step_recorder.record(NS, steps(*given, request_id=request_id))


def by_hand(trajectory: list[tuple[str, float]]) -> dict[str, float]:
    """Q-learning backwards in one state, as the formula says."""
    told: dict[str, float] = {}
    for number in reversed(range(len(trajectory))):
        action, reward = trajectory[number]
        last = number == len(trajectory) - 1
        best = 0.0 if last or not told else max(told.values())
        old = told.get(action, 0.0)
        told[action] = old + 0.1 * (reward + 0.95 * best - old)
    return told


async def test_values_are_those_of_the_formula(world):
    rng = random.Random(3)
    trajectory = [(rng.choice("abc"), rng.uniform(-1, 1)) for _ in range(40)]
    await record(world, *trajectory)
    expected = by_hand(trajectory)
    found = await values(world)
    assert {name: value for name, (value, _) in found.items()} == pytest.approx(expected)
    assert Counter(name for name, _ in trajectory) == {n: c for n, (_, c) in found.items()}


async def test_the_worst_known_action_is_still_the_best_of_its_state(world):
    """The greatest of known values counts, also where all are below 0."""
    await record(world, ("a", -1.0))
    await record(world, ("b", 0.0), ("a", 0.0))
    found = await values(world)
    assert found["a"][0] == pytest.approx(-0.09)
    assert found["b"][0] == pytest.approx(0.1 * 0.95 * -0.09)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("make", [InMemoryStore, SharedStore])
async def test_trajectories_at_once_from_several_processes_are_all_learned_once(make, seed):
    clock = FixedClock()
    first = await open_world(Interleaving(make(clock), seed), clock)
    worlds = [first]
    if make is SharedStore:
        worlds += [first.another_process(), first.another_process()]
    given = [("a", 0.5), ("b", -0.5), ("a", 1.0)]
    await asyncio.gather(
        *(
            record(worlds[n % len(worlds)], *given, request_id=f"r{n % 8}")
            for n in range(16)  # each request twice, perhaps by two processes at once
        )
    )
    found = await values(first)
    assert {name: count for name, (_, count) in found.items()} == {"a": 16, "b": 8}
    assert await first.store.count(TRAJECTORIES, NS) == 8
    await check_invariants(first.store, NS)


async def test_who_finds_a_trajectory_half_learned_beside_its_learner_counts_nothing_twice():
    clock = FixedClock()
    world = await open_world(Interleaving(SharedStore(clock), 5), clock)
    other = world.another_process()
    many = [("a" if n % 3 else "b", 0.5) for n in range(30)]

    async def sweep() -> None:
        while not learning.done():
            await other.services.learning.action_values.roll_forward(2**62)

    learning = asyncio.ensure_future(record(world, *many))
    await asyncio.gather(learning, sweep())
    assert {n: c for n, (_, c) in (await values(world)).items()} == {"a": 20, "b": 10}


async def test_what_is_settled_is_dropped_by_the_next_step(world):
    for _ in range(5):
        await record(world, ("a", 1.0))
    [row] = await payloads(world, ACTION_VALUES)
    assert len(row["pending_steps"]) == 1
    assert row["visit_count"] == 5


async def test_a_thousand_steps_give_way_between_each_other(world, monkeypatch):
    monkeypatch.setattr(pacing, "_LONGEST_SECONDS", 0.0)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await record(world, *[(f"a{n % 9}", 0.1) for n in range(1000)])
    task.cancel()
    assert turns >= 1000


async def test_the_best_of_many_actions_are_found_over_several_batches(world):
    await record(world, *[(f"a{n:03}", -1.0 if n != 250 else 1.0) for n in range(300)][::-1])
    found = await world.services.learning.action_values.best(NS, STATE, 3)
    assert found[0].action == "a250"
    assert len(await values(world)) == 300


# --- learning by acting -----------------------------------------------------------------------

CHANCES = {"a": 0.2, "b": 0.5, "c": 0.9}


@pytest.mark.parametrize("policy", SelectionPolicy)
async def test_each_policy_learns_which_action_of_three_is_rewarded_most(world, policy):
    """A bandit with rewards of 1 and -1; GREEDY leaves what is worth less than the untried."""
    rng = random.Random(11)
    chosen: Counter[str] = Counter()
    for number in range(400):
        selection = await world.services.learning.selections.select(
            NS, select(*CHANCES, policy=policy, seed=number)
        )
        reward = 1.0 if rng.random() < CHANCES[selection.action] else -1.0
        step = StepDraft(reward, selection_id=selection.selection_id)
        await world.services.learning.step_recorder.record(NS, StepsDraft((step,)))
        chosen[selection.action] += number >= 200
    [best] = await world.services.learning.action_values.best(NS, STATE, 1)
    assert best.action == "c"
    assert chosen["c"] > 100


@pytest.mark.parametrize("policy", SelectionPolicy)
async def test_each_policy_learns_to_walk_a_chain_to_its_end(world, policy):
    """Four places; ``on`` leads to the next and pays at the end, ``back`` costs and stays."""
    places = [LearningState(f"place {n}") for n in range(4)]
    for episode in range(60):
        walked: list[StepDraft] = []
        at = 0
        while at < len(places) and len(walked) < 40:
            seed = episode * 100 + len(walked)
            draft = select("back", "on", state=places[at], policy=policy, seed=seed)
            selection = await world.services.learning.selections.select(NS, draft)
            on = selection.action == "on"
            following = at + 1 if on else at
            end = following == len(places)
            reward = 1.0 if end else 0.0 if on else -0.2
            state = None if end else places[following]
            walked.append(StepDraft(reward, places[at], selection.action, state))
            at = following
        await world.services.learning.step_recorder.record(NS, StepsDraft(tuple(walked)))
    for place in places:
        [best] = await world.services.learning.action_values.best(NS, place, 1)
        assert best.action == "on", place
        assert 0 < best.value <= BOUND
