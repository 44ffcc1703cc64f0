"""What expired is absent everywhere before it is swept, its id is free, and sweeps give way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import (
    ErrorSolutionNotFoundError,
    LotError,
    MemoryNotFoundError,
    PatternNotFoundError,
    RetrievalNotFoundError,
    SelectionNotFoundError,
)
from lot_grpc.domain.learning_event import TargetKind
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.domain.query import PatternFilter
from lot_grpc.ports import EXPIRES_KEY, Record
from lot_grpc.services.forwarding_store import ForwardingStore
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.records.collections import (
    CONTEXT_STATS,
    ERROR_SOLUTIONS,
    FEEDBACK,
    MEMORIES,
    OUTCOMES,
    PATTERNS,
    REQUESTS,
)
from lot_grpc.services.resources import REGISTRY
from lot_grpc.testing.faults import FaultInjectingStore, InjectedFault
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.invariants import check_invariants
from tests.services.world import (
    DAY,
    NS,
    World,
    decision,
    draft,
    error_solution,
    feedback,
    judgement,
    memory,
    open_world,
    outcome,
    recall,
    rows,
    save,
    select,
    sweep,
)

SECOND = 1_000_000
Act = Callable[[World], Awaitable[Any]]


@dataclass(frozen=True)
class Expiring:
    """A kind that can expire: how to store one under the id ``x``, and all that names one."""

    collection: str
    store: Act
    again: Act
    named: tuple[Act, ...]
    missing: type[LotError]

    def __str__(self) -> str:
        return self.collection


def edit(world: World) -> Any:
    wanted = PatternEdit(PatternContent("unused", title="t"), frozenset({"title"}))
    return world.services.patterns.patterns.update(NS, "x", wanted, "")


RESOURCE_KINDS = [
    Expiring(
        PATTERNS,
        lambda world: save(world, "old", pattern_id="x", ttl=SECOND),
        lambda world: save(world, "new", pattern_id="x"),
        (
            lambda world: world.services.patterns.patterns.get(NS, "x"),
            edit,
            lambda world: outcome(world, "x"),
            lambda world: feedback(world, "x", helpful=True),
            lambda world: world.services.patterns.patterns.delete(NS, "x", ""),
            lambda world: save(world, "successor", supersedes="x"),
            lambda world: world.services.learning.feedback_handler.submit(
                NS, judgement(TargetKind.PATTERN, "x", text="good")
            ),
        ),
        PatternNotFoundError,
    ),
    Expiring(
        MEMORIES,
        lambda world: world.services.memories.memories.create(
            NS, memory("old", memory_id="x", ttl=SECOND)
        ),
        lambda world: world.services.memories.memories.create(NS, memory("new", memory_id="x")),
        (
            lambda world: world.services.memories.memories.get(NS, "x"),
            lambda world: world.services.memories.memories.delete(NS, "x", ""),
        ),
        MemoryNotFoundError,
    ),
    Expiring(
        ERROR_SOLUTIONS,
        lambda world: world.services.errors.solutions.save(
            NS, error_solution("old", error_solution_id="x", ttl=SECOND)
        ),
        lambda world: world.services.errors.solutions.save(
            NS, error_solution("new", error_solution_id="x")
        ),
        (
            lambda world: world.services.errors.solutions.get(NS, "x"),
            lambda world: world.services.errors.solutions.delete(NS, "x"),
        ),
        ErrorSolutionNotFoundError,
    ),
]


@pytest.mark.parametrize("resource_kind", RESOURCE_KINDS, ids=str)
async def test_an_expired_thing_is_absent_to_whatever_names_it(resource_kind):
    world = await open_world()
    await resource_kind.store(world)
    world.clock.advance(1)
    for name in resource_kind.named:
        with pytest.raises(resource_kind.missing):
            await name(world)
    assert await world.store.count(resource_kind.collection, NS) == 0
    assert len(await world.store.expired(resource_kind.collection, limit=9)) == 1, (
        "nothing swept it"
    )


@pytest.mark.parametrize("swept", [False, True], ids=["not swept", "swept"])
@pytest.mark.parametrize("resource_kind", RESOURCE_KINDS, ids=str)
async def test_the_id_of_an_expired_thing_is_free_and_the_new_one_stays(resource_kind, swept):
    world = await open_world()
    await resource_kind.store(world)
    if resource_kind.collection == PATTERNS:
        await outcome(world, "x", query="how")
        await feedback(world, "x", helpful=False)
    world.clock.advance(1)
    if swept:
        await sweep(world)
    made = await resource_kind.again(world)
    assert made.created
    await sweep(world)
    world.clock.advance(DAY)
    await sweep(world)
    assert await world.store.count(resource_kind.collection, NS) == 1
    for log in (OUTCOMES, CONTEXT_STATS, FEEDBACK):
        assert await rows(world.store, log) == [], "it inherits nothing"


async def test_what_expired_is_neither_recalled_nor_listed_nor_counted():
    world = await open_world()
    for n in range(3):
        ttl = SECOND if n else None
        await save(world, f"deploy {n}", pattern_id=f"p{n}", ttl=ttl)
    world.clock.advance(1)
    assert [hit.thing.pattern_id for hit in (await recall(world, "deploy")).hits] == ["p0"]
    page = await world.services.patterns.patterns.list_page(NS, PatternFilter(), 9, None)
    assert [one.pattern_id for one in page.items] == ["p0"]
    assert (await world.services.patterns.patterns.stats(NS, PatternFilter())).total == 1
    usage = (await world.services.clearing.namespaces.page(9, "")).items
    assert [sum(one.record_counts.values()) for one in usage] == [1]


async def test_a_request_of_the_day_before_is_a_new_one():
    world = await open_world()
    first = draft("first", request_id="r")
    await world.services.patterns.writer.save(NS, first)
    world.clock.advance(DAY)
    other = await world.services.patterns.writer.save(
        NS, replace(first, content=PatternContent("other"))
    )
    assert other.created
    assert await world.store.count(PATTERNS, NS) == 2


async def test_a_recall_and_a_selection_expire():
    world = await open_world()
    await save(world, "x", pattern_id="p")
    retrieval_id = (await recall(world, "x")).retrieval_id
    chosen = await world.services.learning.selections.select(NS, select("a", seed=1))
    await world.services.runtime.retrievals.flush()
    await outcome(world, "p", retrieval_id=retrieval_id)
    world.clock.advance(31 * DAY)
    with pytest.raises(RetrievalNotFoundError):
        await outcome(world, "p", retrieval_id=retrieval_id)
    with pytest.raises(SelectionNotFoundError):
        await world.services.learning.feedback_handler.submit(
            NS, judgement(TargetKind.SELECTION, chosen.selection_id, text="good")
        )
    await world.services.learning.decisions.record(NS, decision())


# --- sweeps -----------------------------------------------------------------------------------


class Watched(ForwardingStore):
    """Notes how many records each read or delete of a sweep is about."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.sizes: list[int] = []

    async def expired(self, collection: str, *, limit: int, where: Any = ()) -> list[Record]:
        found = await super().expired(collection, limit=limit, where=where)
        self.sizes.append(len(found))
        return found

    async def delete_expired(self, collection: str, *, limit: int) -> int:
        deleted = await super().delete_expired(collection, limit=limit)
        self.sizes.append(deleted)
        return deleted

    async def delete(self, collection: Any, namespace: Any, where: Any, limit: int = 0) -> int:
        deleted = await super().delete(collection, namespace, where, limit)
        self.sizes.append(deleted)
        return deleted


@pytest.mark.parametrize("collection", REGISTRY.expiring)
async def test_a_sweep_works_in_small_batches_whatever_expired(collection):
    clock = FixedClock()
    store = Watched(InMemoryStore(clock))
    world = await open_world(store, clock)
    past = clock.now() + 1
    ids = {"pattern_id": "p", "error_solution_id": "s"}
    payload = {**ids, "sort_key": 1, "kind": "x", "done": True, EXPIRES_KEY: past}
    for number in range(10):
        made = [Record(f"{number}-{n}", NS, payload) for n in range(73)]
        await store.put(collection, made)
    clock.advance(1)
    store.sizes.clear()
    assert await world.services.housekeeping.drop_expired() == 730
    assert max(store.sizes) == 100
    assert await store.expired(collection, limit=1) == []


async def test_what_hangs_on_a_pattern_goes_before_it():
    """Else a death in between would leave it for good."""
    world = await open_world()
    await save(world, "x", pattern_id="p", ttl=SECOND)
    await outcome(world, "p")
    world.clock.advance(1)
    seen: list[int] = []
    delete = world.store.delete

    async def looked(collection: Any, *given: Any, **named: Any) -> int:
        if collection == PATTERNS:
            seen.append(len(await rows(world.store, OUTCOMES)))
        done: int = await delete(collection, *given, **named)
        return done

    world.store.delete = looked
    await world.services.housekeeping.drop_expired()
    assert seen == [0]
    content_index = [
        one for one in await rows(world.store, REQUESTS) if one.payload["kind"] == "unique_content"
    ]
    assert content_index == []


@pytest.mark.parametrize("kind", [ResourceKind.MEMORY, ResourceKind.PATTERN])
async def test_a_death_while_the_id_of_an_expired_successor_is_taken_hides_nothing(kind):
    """What it superseded is let go of first: then nothing is left that names it."""

    async def create(world: World, name: str, superseded: str = "", ttl: int | None = None) -> None:
        if kind is ResourceKind.MEMORY:
            given = memory(name, memory_id=name[:1], supersedes=superseded, ttl=ttl)
            await world.services.memories.memories.create(NS, given)
        else:
            await save(world, name, pattern_id=name[:1], supersedes=superseded, ttl=ttl)

    async def lives(deaths: int) -> bool:
        """Whether the last create outlives so many writes."""
        clock = FixedClock()
        store = FaultInjectingStore(InMemoryStore(clock))
        world = await open_world(store, clock)
        await create(world, "old")
        await create(world, "new", "o", ttl=SECOND)
        clock.advance(1)
        store.fail_at(deaths + 1)
        with suppress(InjectedFault):
            await create(world, "newer")
        died = store.dead
        store.revive()
        restarted = world.another_process()
        await sweep(restarted)
        await check_invariants(store, NS)
        old = await restarted.services.resources.of(kind).get(NS, "o")
        assert old.superseded_by == ""
        return not died

    deaths = 0
    while not await lives(deaths):
        deaths += 1
    assert deaths >= 2
