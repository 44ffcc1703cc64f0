"""Stores as an earlier version left them, and what a rebuild must make of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import pytest

from lot_grpc.domain.query import EpisodeFilter, Legs, MemoryFilter, PatternFilter
from lot_grpc.ports import Record, SparseVector, VectorStore
from lot_grpc.services.derived_data import needs_rebuild
from lot_grpc.services.recall.targets import (
    RecallOptions,
    episode_request,
    memory_request,
    pattern_request,
)
from lot_grpc.services.records.collections import (
    EPISODES,
    ERROR_SOLUTIONS,
    MEMORIES,
    PATTERNS,
    SPARSE_VECTOR,
)
from lot_grpc.services.store_metadata import (
    DERIVATION,
    DERIVATION_VERSION,
    DERIVED_UP_TO,
    read_metadata,
    update_metadata,
)
from lot_grpc.testing.faults import FaultInjectingStore
from lot_grpc.testing.hashing import HashingEmbedder
from tests.contract.clock import FixedClock
from tests.contract.comparing import same_record
from tests.services.world import (
    NS,
    World,
    draft,
    error_solution,
    memory,
    open_world,
    start,
)

OTHER = "others"
NAMESPACES = (NS, OTHER)
SEARCHED = (PATTERNS, EPISODES, MEMORIES, ERROR_SOLUTIONS)
BRIEF = 60
EARLIER = "lot-terms-1/bm25-0/signatures-1"
LATER = "lot-terms-999/bm25-1/signatures-1"


async def fill(world: World) -> None:
    """Records of two namespaces, some of them with code, some soon to expire."""
    services = world.services
    for number, namespace in itertools.product(range(7), NAMESPACES):
        code = f"def stepNumber{number}(page_{number}):\n    return page_{number}.click()"
        ttl = BRIEF if number == 5 else None
        await services.patterns.writer.save(
            namespace,
            draft(
                f"Do step {number}",
                pattern_id=f"p{number}",
                code=code if number % 3 == 0 else "",
                ttl=ttl,
            ),
        )
        await services.episodes.creator.start(namespace, start(f"Try thing {number}", f"e{number}"))
        await services.memories.memories.create(
            namespace, memory(f"The port is 80{number}", memory_id=f"m{number}", ttl=ttl)
        )
        await services.errors.solutions.save(namespace, error_solution(f"KeyError: 'a{number}'"))


async def make_old(store: VectorStore, derivation: str = EARLIER) -> None:
    """As another version leaves it: with other terms and signatures."""
    for collection in SEARCHED:
        for record in await store.scroll(collection, None, (), limit=1000, vectors=True):
            vectors = {**record.vectors, SPARSE_VECTOR: SparseVector([1], [9.0])}
            payload = dict(record.payload)
            if collection == ERROR_SOLUTIONS:
                payload |= {"signature": "old", "signatures": ["old"], "signed_by": 1}
            await store.put(collection, [replace(record, payload=payload, vectors=vectors)])
    await update_metadata(store, {DERIVATION: derivation})


def has_old_terms(record: Record) -> bool:
    terms = record.vectors[SPARSE_VECTOR]
    return isinstance(terms, SparseVector) and list(terms.indices) == [1]


async def records_of(store: VectorStore) -> dict[str, list[Record]]:
    return {
        collection: await store.scroll(collection, None, (), limit=1000, vectors=True)
        for collection in SEARCHED
    }


@dataclass
class Old:
    """A store of another version; ``want`` is what its living records should be."""

    store: FaultInjectingStore
    world: World
    want: dict[str, list[Record]]

    async def assert_up_to_date(self) -> None:
        got = await records_of(self.store)
        for collection, records in self.want.items():
            assert [r.id for r in got[collection]] == [r.id for r in records]
            for one, other in zip(got[collection], records, strict=True):
                assert same_record(one, other), (collection, one, other)
        metadata = await read_metadata(self.store)
        assert metadata["embedding"] == asdict(HashingEmbedder().contract)
        assert (metadata[DERIVATION], metadata.get(DERIVED_UP_TO)) == (DERIVATION_VERSION, None)
        assert not await needs_rebuild(self.store)


async def old_store(inner: VectorStore, clock: FixedClock, derivation: str = EARLIER) -> Old:
    """Filled by this version, made old, and some of it lapsed since."""
    world = await open_world(inner, clock)
    await fill(world)
    clock.advance(2 * BRIEF)
    want = await records_of(inner)
    clock.advance(-2 * BRIEF)
    await make_old(inner, derivation)
    clock.advance(2 * BRIEF)
    return Old(FaultInjectingStore(inner), world, want)


Make = Callable[[FixedClock], VectorStore]


ON_EDGE_TOO = pytest.mark.parametrize("make", ["in_memory", "edge"], indirect=True)


LIVING = 2 * (6 + 7 + 6 + 7)
WRITES = 1 + 2 * (3 + 4 + 3 + 4) + 14 + 1
"""The begin; a batch takes two writes; an error is signed by one of its own; the end."""


def never(what: str, done: int, total: int) -> None:
    raise AssertionError((what, done, total))


def after(times: int) -> Callable[[], bool]:
    """Says to stop once it was asked so often."""
    asked = itertools.count()
    return lambda: next(asked) >= times


async def answers(world: World, query: str, legs: Legs = Legs.BM25) -> list[tuple[str, float]]:
    """What each recall says, and how sure it is."""
    services, asked = world.services, RecallOptions(query, 20, legs=legs)
    about_patterns = pattern_request(asked, PatternFilter())
    about_episodes = episode_request(asked, EpisodeFilter(), success_only=False)
    about_memories = memory_request(asked, MemoryFilter())
    patterns = (await services.recall.patterns.find(NS, about_patterns)).hits
    episodes = (await services.recall.episodes.find(NS, about_episodes)).hits
    memories = (await services.recall.memories.find(NS, about_memories)).hits
    return [
        *((hit.thing.pattern_id, hit.score) for hit in patterns),
        *((hit.thing.episode_id, hit.score) for hit in episodes),
        *((hit.thing.memory_id, hit.score) for hit in memories),
    ]
