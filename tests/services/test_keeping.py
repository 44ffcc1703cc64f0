from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.memory import MemoryContent
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.domain.policy import NamespacePolicy, PolicyEdit
from lot_grpc.ports import Record
from lot_grpc.services.memories.drafts import MemoryDraft
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.records.collections import (
    EPISODES,
    ERROR_SOLUTIONS,
    EVENTS,
    MEMORIES,
    PATTERNS,
)
from tests.contract.clock import FixedClock
from tests.services.invariants import check_invariants
from tests.services.world import (
    DAY,
    HOUR,
    NS,
    Interleaving,
    SharedStore,
    World,
    end,
    error_solution,
    memory,
    open_world,
    outcome,
    payloads,
    save,
    start,
    sweep,
    whole,
)

MICROS = 1_000_000


async def policy(world: World, namespace: str = NS, /, **named: Any) -> dict[str, int]:
    """Set a policy; return what a sweep is said to delete."""
    edit = PolicyEdit(NamespacePolicy(**named), frozenset(named))
    stored = await world.services.retention.policies.update(namespace, edit, "")
    pending: dict[str, int] = await world.services.retention.sweep.pending(namespace, stored.policy)
    return pending


async def ids(world: World, collection: str, key: str) -> list[str]:
    return sorted(row[key] for row in await payloads(world, collection))


async def test_without_a_policy_nothing_goes(world):
    await save(world, pattern_id="p")
    await world.services.memories.memories.create(NS, memory(memory_id="m"))
    await world.services.episodes.creator.record(NS, whole(1, episode_id="e"))
    world.clock.advance(1000 * DAY)
    assert await sweep(world) == []
    await policy(world, similarity_threshold=0.9)
    assert await sweep(world) == []
    assert await ids(world, PATTERNS, "pattern_id") == ["p"]


async def test_the_best_patterns_are_kept_and_pinned_ones_are_not_counted(world):
    for name, kinds in (("good", "ss"), ("bad", "ff"), ("pinned", "ff"), ("new", "")):
        await save(world, name, pattern_id=name, pinned=name == "pinned")
        for kind in kinds:
            await outcome(world, name, outcome=Outcome.SUCCESS if kind == "s" else Outcome.FAILURE)
    assert await policy(world, max_patterns=2) == {"PATTERN": 1}
    assert len(await payloads(world, PATTERNS)) == 4
    assert await sweep(world) == [(NS, {"PATTERN": 1})]
    assert await ids(world, PATTERNS, "pattern_id") == ["good", "new", "pinned"]
    assert await sweep(world) == []
    await policy(world, max_patterns=1)
    await sweep(world)
    assert await ids(world, PATTERNS, "pattern_id") == ["good", "pinned"]
    await check_invariants(world.store, NS)


async def test_patterns_go_by_the_time_of_their_last_edit_or_outcome(world):
    for name in ("still", "edited", "used", "pinned"):
        await save(world, name, pattern_id=name, pinned=name == "pinned")
    world.clock.advance(10 * HOUR)
    edit = PatternEdit(PatternContent("edited", title="T"), frozenset({"title"}))
    await world.services.patterns.patterns.update(NS, "edited", edit, "")
    await outcome(world, "used")
    assert await policy(world, max_pattern_age=10 * HOUR * MICROS) == {}
    world.clock.advance(1)
    assert await policy(world) == {"PATTERN": 1}
    assert await sweep(world) == [(NS, {"PATTERN": 1})]
    assert await ids(world, PATTERNS, "pattern_id") == ["edited", "pinned", "used"]
    world.clock.advance(10 * HOUR)
    await sweep(world)
    assert await ids(world, PATTERNS, "pattern_id") == ["pinned"]


async def test_the_most_important_memories_are_kept_of_equals_the_newest(world):
    for name, importance in (("old", 0.5), ("low", 0.1), ("new", 0.5), ("top", 0.9), ("pin", 0.0)):
        content = MemoryContent(name, importance=importance, pinned=name == "pin")
        await world.services.memories.memories.create(NS, MemoryDraft(content, memory_id=name))
    assert await policy(world, max_memories=2) == {"MEMORY": 2}
    assert await sweep(world) == [(NS, {"MEMORY": 2})]
    assert await ids(world, MEMORIES, "memory_id") == ["new", "pin", "top"]
    world.clock.advance(DAY)
    await world.services.memories.memories.create(NS, memory(memory_id="young"))
    assert await policy(world, max_memory_age=HOUR * MICROS) == {"MEMORY": 2}
    await sweep(world)
    assert await ids(world, MEMORIES, "memory_id") == ["pin", "young"]


async def test_the_latest_episodes_are_kept_with_their_events_and_running_ones_stay(world):
    await world.services.episodes.creator.start(NS, start(episode_id="running"))
    for number in range(4):
        await world.services.episodes.creator.record(NS, whole(number + 1, episode_id=f"e{number}"))
    assert await policy(world, max_episodes=2) == {"EPISODE": 2}
    assert await sweep(world) == [(NS, {"EPISODE": 2})]
    assert await ids(world, EPISODES, "episode_id") == ["e2", "e3", "running"]
    assert len(await payloads(world, EVENTS)) == 3 + 4
    world.clock.advance(2 * HOUR)
    await policy(world, max_episode_age=HOUR * MICROS)
    await sweep(world)
    assert await ids(world, EPISODES, "episode_id") == ["running"]
    await check_invariants(world.store, NS)


async def test_the_age_of_an_episode_counts_from_its_end(world):
    await world.services.episodes.creator.start(NS, start(episode_id="long"))
    await world.services.episodes.creator.record(NS, whole(1, episode_id="short"))
    world.clock.advance(DAY)
    await world.services.episodes.ender.end(NS, "long", end(), "")
    await policy(world, max_episode_age=HOUR * MICROS)
    await sweep(world)
    assert await ids(world, EPISODES, "episode_id") == ["long"]


async def test_age_and_number_together_are_counted_once_each(world):
    for number in range(5):
        await world.services.episodes.creator.record(NS, whole(1, episode_id=f"e{number}"))
        world.clock.advance(HOUR)
    named = {"max_episodes": 2, "max_episode_age": 4 * HOUR * MICROS}
    assert await policy(world, **named) == {"EPISODE": 3}
    assert await sweep(world) == [(NS, {"EPISODE": 3})]
    assert await ids(world, EPISODES, "episode_id") == ["e3", "e4"]


async def test_each_namespace_is_swept_by_its_own_policy_and_no_other(world):
    for namespace in (NS, "other", "free"):
        for number in range(3):
            draft = MemoryDraft(MemoryContent(f"m{number}"))
            await world.services.memories.memories.create(namespace, draft)
    await policy(world, max_memories=2)
    await policy(world, "other", max_memories=1)
    told = await sweep(world)
    assert sorted(told) == [("other", {"MEMORY": 2}), (NS, {"MEMORY": 1})]
    counts = [await world.store.count(MEMORIES, ns) for ns in (NS, "other", "free")]
    assert counts == [2, 1, 3]


async def test_what_is_used_while_a_sweep_is_at_work_is_spared(world, monkeypatch):
    for name in ("a", "b"):
        await save(world, name, pattern_id=name)
    # The table holds the bound method of this object: what it begins with is what is met.
    begin = world.services.patterns.patterns._tombstones.begin

    async def used_before(resource_kind: str, id: str, record: Record, unchanged: Any = ()) -> Any:
        if id == "b":
            await outcome(world, "b")
        return await begin(resource_kind, id, record, unchanged)

    world.clock.advance(DAY)
    await policy(world, max_pattern_age=HOUR * MICROS)
    monkeypatch.setattr(
        type(world.services.patterns.patterns._tombstones),
        "begin",
        lambda _, *given, **named: used_before(*given, **named),
    )
    assert await sweep(world) == [(NS, {"PATTERN": 1})]
    assert await ids(world, PATTERNS, "pattern_id") == ["b"]
    await check_invariants(world.store, NS)


@pytest.mark.parametrize("seed", range(8))
async def test_two_processes_may_sweep_at_once(seed):
    clock = FixedClock()
    world = await open_world(Interleaving(SharedStore(clock), seed), clock)
    for number in range(6):
        await save(world, f"task {number}")
        await world.services.episodes.creator.record(NS, whole(2))
    await policy(world, max_patterns=2, max_episodes=2)
    await asyncio.gather(sweep(world), sweep(world.another_process()))
    counts = [await world.store.count(name, NS) for name in (PATTERNS, EPISODES, EVENTS)]
    assert counts == [2, 2, 4]
    await check_invariants(world.store, NS)


bounds = st.builds(
    NamespacePolicy,
    max_patterns=st.integers(0, 4),
    max_pattern_age=st.none() | st.integers(1, 6).map(lambda hours: hours * HOUR * MICROS),
)
saved = st.lists(st.tuples(st.booleans(), st.integers(0, 2)), max_size=6)


@given(saved, bounds)
def test_a_sweep_deletes_what_it_was_said_to_and_a_second_nothing(patterns, wanted):
    async def run() -> None:
        world = await open_world()
        for number, (pinned, uses) in enumerate(patterns):
            await save(world, f"task {number}", pattern_id=f"p{number}", pinned=pinned)
            for _ in range(uses):
                await outcome(world, f"p{number}")
            world.clock.advance(HOUR)
        named = {"max_patterns": wanted.max_patterns, "max_pattern_age": wanted.max_pattern_age}
        pending = await policy(world, **named)
        told = await sweep(world)
        assert told == ([(NS, pending)] if pending else [])
        rows = await payloads(world, PATTERNS)
        assert len(rows) == len(patterns) - pending.get("PATTERN", 0)
        if wanted.max_patterns:
            assert sum(not row["pinned"] for row in rows) <= wanted.max_patterns
        assert sum(row["pinned"] for row in rows) == sum(pinned for pinned, _ in patterns)
        assert await sweep(world) == []
        assert await policy(world) == {}
        await check_invariants(world.store, NS)

    asyncio.run(run())


@pytest.mark.parametrize("field", ["max_patterns", "max_memories", "max_episodes"])
async def test_a_bound_that_is_not_reached_deletes_nothing(world, field):
    await save(world)
    await world.services.memories.memories.create(NS, memory())
    await world.services.episodes.creator.record(NS, whole(1))
    assert await policy(world, **{field: 1}) == {}
    assert await sweep(world) == []


async def test_the_latest_error_solutions_are_kept_but_for_pinned_ones(world):
    for n in range(4):
        draft = error_solution(f"KeyError: {n}", error_solution_id=f"s{n}", pinned=n == 0)
        await world.services.errors.solutions.save(NS, draft)
        world.clock.advance(HOUR)
    assert await policy(world, max_error_solutions=2) == {"ERROR_SOLUTION": 1}
    await sweep(world)
    assert await ids(world, ERROR_SOLUTIONS, "error_solution_id") == ["s0", "s2", "s3"]
    await policy(world, max_error_solution_age=2.5 * HOUR * MICROS)
    await sweep(world)
    assert await ids(world, ERROR_SOLUTIONS, "error_solution_id") == ["s0", "s2", "s3"]
    world.clock.advance(HOUR)
    await sweep(world)
    assert await ids(world, ERROR_SOLUTIONS, "error_solution_id") == ["s0", "s3"]
