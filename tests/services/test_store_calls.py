"""How many calls to the store a recall and a context make, counted below all layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest

from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import PatternKind
from lot_grpc.domain.query import EpisodeFilter, MemoryFilter, PatternFilter
from lot_grpc.ports import IdIn, VectorStore
from lot_grpc.services.context.request import ContextRequest
from lot_grpc.services.outcomes.outcomes import OutcomeDraft
from lot_grpc.services.recall.targets import (
    RecallOptions,
    episode_request,
    memory_request,
    pattern_request,
)
from lot_grpc.services.records.collections import CONTEXT_STATS
from lot_grpc.services.records.patterns import pattern_point
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.world import (
    NS,
    World,
    end,
    error_solution,
    memory,
    open_world,
    save,
    start,
)

QUERY = "how do I sort list 3 by the size of it"
"""It has function words, so that words are looked for twice."""

READS = ("get", "scroll", "search", "count", "facet")


@dataclass
class CountedStore:
    """Passes on every call and lists those that read."""

    inner: VectorStore
    calls: list[tuple[str, str]] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.inner, name)
        if name not in READS:
            return call

        def counted(collection: str, *given: Any, **named: Any) -> Any:
            self.calls.append((name, collection))
            if name == "get":
                self.fetched += given[1]
            return call(collection, *given, **named)

        return counted


@pytest.fixture
async def world() -> World:
    """More than any pool holds, so that pools hide some hits."""
    clock = FixedClock()
    world = await open_world(CountedStore(InMemoryStore(clock)), clock)
    for number in range(120):
        task = f"Sort list {number} by size"
        await save(world, task, pattern_id=f"p{number}", code=f"sort(list_{number})")
        episode_id = f"e{number}"
        await world.services.episodes.creator.start(NS, start(task, episode_id))
        await world.services.episodes.ender.end(NS, episode_id, end(), "")
        await world.services.memories.memories.create(
            NS, memory(f"List {number} is sorted by size")
        )
    await world.services.runtime.policies.recent(NS)  # read once in five seconds
    return world


Recall = Callable[[], Coroutine[Any, Any, Any]]


async def calls(world: World, recall: Recall) -> list[tuple[str, str]]:
    world.store.calls.clear()
    world.store.fetched.clear()
    await recall()
    return list(world.store.calls)


def recall_patterns(world: World, **options: Any) -> Recall:
    request = pattern_request(RecallOptions(QUERY, 5, **options), PatternFilter())
    return lambda: world.services.recall.patterns.find(NS, request)


async def test_a_recall_of_patterns_that_learned_nothing_makes_four_calls(world: World) -> None:
    assert await calls(world, recall_patterns(world)) == [
        ("scroll", "patterns"),
        ("search", "patterns"),
        ("scroll", CONTEXT_STATS),
        ("get", "patterns"),
    ]
    assert len(world.store.fetched) == 5


async def test_recalls_read_the_policy_once_in_five_seconds(world: World) -> None:
    clock = world.clock
    counts = []
    for seconds in (0, 4, 1, 4, 1):
        clock.advance(seconds)
        found = await calls(world, recall_patterns(world))
        counts.append(found.count(("get", "policies")))
    assert counts == [0, 0, 1, 0, 1]


async def test_a_hit_that_was_deleted_meanwhile_is_replaced(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    recall = recall_patterns(world)
    best, *others = (hit.thing.pattern_id for hit in (await recall()).hits)
    store = world.store.inner
    get = store.get

    async def late(collection: str, *given: Any, **named: Any) -> Any:
        await store.delete("patterns", NS, [IdIn((pattern_point(NS, best),))])
        return await get(collection, *given, **named)

    monkeypatch.setattr(world.store, "get", late, raising=False)
    found = [hit.thing.pattern_id for hit in (await recall()).hits]
    assert found[:4] == others
    assert len(set(found)) == 5


async def test_a_recall_of_patterns_that_learned_makes_five_calls(world: World) -> None:
    for number in range(100):
        await save(world, f"Sort {number}", kind=PatternKind.LEARNED, task_type_pattern="sort")
    for number in range(10):
        ids = tuple(f"p{n}" for n in range(120))
        await world.services.outcomes.recorder.record(
            NS, OutcomeDraft(ids, Outcome.SUCCESS, query=f"sort list {number}")
        )
    expected = [
        ("scroll", "patterns"),
        ("search", "patterns"),
        ("scroll", CONTEXT_STATS),
        ("search", CONTEXT_STATS),
        ("get", "patterns"),
    ]
    assert await calls(world, recall_patterns(world)) == expected
    # The cross-encoder reads the ten best; what else can reach the page is read after it.
    assert len(await calls(world, recall_patterns(world, rerank=True))) <= len(expected) + 1


async def test_a_recall_of_episodes_makes_three_calls_one_of_memories_four(world: World) -> None:
    episodes = episode_request(RecallOptions(QUERY, 5), EpisodeFilter(), success_only=False)
    memories = memory_request(RecallOptions(QUERY, 5), MemoryFilter())
    assert await calls(world, lambda: world.services.recall.episodes.find(NS, episodes)) == [
        ("search", "episodes"),
        ("scroll", CONTEXT_STATS),
        ("get", "episodes"),
    ]
    again = await calls(world, lambda: world.services.recall.episodes.find(NS, episodes))
    assert again == [("search", "episodes"), ("get", "episodes")]  # nothing was inserted since
    assert await calls(world, lambda: world.services.recall.memories.find(NS, memories)) == [
        ("search", "memories"),
        ("scroll", CONTEXT_STATS),
        ("get", "memories"),
        ("scroll", "memories"),  # near-ties that are more important
    ]
    assert len(world.store.fetched) == 5


def context(world: World, task: str) -> Recall:
    return lambda: world.services.task_contexts.gather(NS, ContextRequest(task))


CONTEXT = Counter(
    {
        ("scroll", "patterns"): 2,  # LEARNED ones; the vectors of those to choose from
        ("search", "patterns"): 1,
        ("scroll", CONTEXT_STATS): 3,  # of patterns, episodes and memories
        ("get", "patterns"): 1,
        ("count", "memories"): 1,  # whether any is untrue; not on a shared store
        ("search", "memories"): 1,
        ("get", "memories"): 1,
        ("scroll", "memories"): 1,
        # To show, to warn of, and for each status those that recommendations are made from.
        ("search", "episodes"): 1 + 1 + 2,
        ("get", "episodes"): 2,  # none failed
        ("scroll", "preferences"): 3,
        ("get", "policies"): 1,
    }
)


async def test_a_context_reads_each_collection_a_few_times(world: World) -> None:
    assert Counter(await calls(world, context(world, QUERY))) == CONTEXT


async def test_a_context_of_a_solved_error_looks_for_nothing_that_it_would_not_show(
    world: World,
) -> None:
    for number in range(10):
        await world.services.errors.solutions.save(
            NS, error_solution(f"KeyError: 'size{number}'", worked=number % 2 > 0)
        )
    task = f"{QUERY}\nKeyError: 'size'"
    solved = Counter({("search", "error_solutions"): 1, ("get", "error_solutions"): 1})
    assert Counter(await calls(world, context(world, task))) == CONTEXT + solved
