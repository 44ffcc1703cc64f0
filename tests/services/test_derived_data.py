"""Terms and signatures of other rules are derived anew before anything is served from a store."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lot_grpc.domain.error_solution import ErrorSolutionContent
from lot_grpc.domain.errors import (
    EmbeddingModelMismatchError,
    SchemaVersionMismatchError,
    StartupError,
)
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.domain.query import EpisodeFilter, Legs, MemoryFilter, PatternFilter
from lot_grpc.ports import Equals, Record, SparseVector, VectorStore
from lot_grpc.services import derived_data
from lot_grpc.services.derived_data import needs_rebuild, rebuild_derived_data
from lot_grpc.services.errors.drafts import ErrorSolutionEdit
from lot_grpc.services.errors.error_finder import ErrorQuery
from lot_grpc.services.patterns.patterns import PatternEdit
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
    META,
    PATTERNS,
    SCHEMA_VERSION,
    SPARSE_VECTOR,
)
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.store_metadata import (
    DERIVATION,
    DERIVATION_VERSION,
    DERIVED_UP_TO,
    META_NAMESPACE,
    open_as_stored,
    open_store,
    read_metadata,
    update_metadata,
)
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.testing.faults import FaultInjectingStore, InjectedFault, When
from lot_grpc.testing.hashing import HashingEmbedder
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.contract.comparing import same_record, same_vector
from tests.services.deaths import EITHER_SIDE
from tests.services.world import (
    NS,
    Interleaving,
    Interrupted,
    SharedStore,
    World,
    draft,
    error_solution,
    memory,
    open_world,
    rows,
    start,
)

OTHER = "others"
NAMESPACES = (NS, OTHER)
SEARCHED = (PATTERNS, EPISODES, MEMORIES, ERROR_SOLUTIONS)
BRIEF = 60
EARLIER = "lot-terms-1/bm25-0/signatures-1"
LATER = "lot-terms-999/bm25-1/signatures-1"


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived_data, "_BATCH", 4)


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


@pytest.fixture
async def make(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Make]:
    """Makes stores of one kind, each a new one."""
    numbers = itertools.count()
    opened: list[VectorStore] = []

    def new(clock: FixedClock) -> VectorStore:
        folder = tmp_path / f"data-{next(numbers)}"
        edge = getattr(request, "param", "") == "edge"
        store = EdgeStore(folder, clock, min_free_bytes=0) if edge else InMemoryStore(clock)
        opened.append(store)
        return store

    yield new
    for store in opened:
        await store.close()


LIVING = 2 * (6 + 7 + 6 + 7)
WRITES = 1 + 2 * (3 + 4 + 3 + 4) + 14 + 1
"""The begin; a batch takes two writes; an error is signed by one of its own; the end."""


@ON_EDGE_TOO
async def test_terms_and_signatures_of_other_rules_are_derived_anew(make: Make) -> None:
    old = await old_store(make(clock := FixedClock()), clock)
    told: list[tuple[str, int, int]] = []
    assert await needs_rebuild(old.store)
    done = await rebuild_derived_data(old.store, REGISTRY, lambda *told_now: told.append(told_now))
    assert done == LIVING
    await old.assert_up_to_date()
    assert {len(r.vectors) for r in old.want[PATTERNS]} == {2, 3}
    assert told[0] == ("bringing the store up to date", 0, LIVING)
    assert told[-1] == ("bringing the store up to date", LIVING, LIVING)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert len(told) > 3 * 2


async def test_what_lapsed_is_left_alone(make: Make) -> None:
    old = await old_store(make(clock := FixedClock()), clock)
    await rebuild_derived_data(old.store, REGISTRY)
    clock.advance(-2 * BRIEF)
    found = await old.store.scroll(PATTERNS, None, (), limit=99, vectors=True)
    assert len(found) == 14
    assert sum(map(has_old_terms, found)) == 2


async def test_a_store_that_is_up_to_date_is_not_written_to(make: Make) -> None:
    old = await old_store(make(clock := FixedClock()), clock)
    await rebuild_derived_data(old.store, REGISTRY)
    old.store.writes.clear()
    assert await rebuild_derived_data(old.store, REGISTRY) == 0
    assert old.store.writes == []


async def test_a_new_store_has_nothing_to_do(make: Make) -> None:
    store = FaultInjectingStore(make(FixedClock()))
    await open_store(store, REGISTRY, HashingEmbedder().contract)
    store.writes.clear()
    assert not await needs_rebuild(store)
    assert await rebuild_derived_data(store, REGISTRY, never) == 0
    assert store.writes == []
    assert (await read_metadata(store))[DERIVATION] == DERIVATION_VERSION


@pytest.mark.parametrize("derivation", [EARLIER, None])
async def test_an_old_store_without_records_only_gets_the_new_name(
    make: Make, derivation: str | None
) -> None:
    store = FaultInjectingStore(make(FixedClock()))
    await open_store(store, REGISTRY, HashingEmbedder().contract)
    await update_metadata(store, {DERIVATION: derivation})
    assert await needs_rebuild(store)
    assert await rebuild_derived_data(store, REGISTRY, never) == 0
    assert not await needs_rebuild(store)


def never(what: str, done: int, total: int) -> None:
    raise AssertionError((what, done, total))


async def test_an_error_signed_by_other_rules_is_found_by_those_of_today(make: Make) -> None:
    old = await old_store(make(clock := FixedClock()), clock)
    question = ErrorQuery(error_message="KeyError: 'b'")
    answer = await old.world.services.errors.finder.find(NS, question)
    same = [Equals("signatures", answer.signature)]
    assert await old.store.count(ERROR_SOLUTIONS, NS, same) == 0
    await rebuild_derived_data(old.store, REGISTRY)
    assert await old.store.count(ERROR_SOLUTIONS, NS, same) == 7
    answer = await old.world.services.errors.finder.find(NS, question)
    assert {hit.error_solution.signature for hit in answer.hits} == {answer.signature}


async def test_an_error_that_is_edited_while_it_is_signed_has_the_signature_of_the_edit() -> None:
    clock = FixedClock()
    store = Interrupted(SharedStore(clock))
    old = await old_store(store, clock)
    solutions = old.world.services.errors.solutions

    content = ErrorSolutionContent("TypeError: 'z'", resolution="use get")
    change = ErrorSolutionEdit(content, frozenset({"error_message"}))

    async def edited() -> None:
        for one in await rows(store, ERROR_SOLUTIONS, None):
            await solutions.update(one.namespace, one.payload["error_solution_id"], change, "")

    store.before("update", ERROR_SOLUTIONS, edited)
    await rebuild_derived_data(store, REGISTRY)
    signatures = {one.payload["signature"] for one in await rows(store, ERROR_SOLUTIONS, None)}
    assert signatures == {content.error.signature}


# --- it is stopped ----------------------------------------------------------------------------


@EITHER_SIDE
async def test_a_rebuild_that_dies_at_any_write_resumes_where_it_was(
    make: Make, when: When
) -> None:
    for n in itertools.count(1):
        old = await old_store(make(clock := FixedClock()), clock)
        old.store.fail_at(n, when)
        try:
            await rebuild_derived_data(old.store, REGISTRY)
        except InjectedFault:
            old.store.revive()
            assert await needs_rebuild(old.store) or n == len(old.store.writes)
        else:
            break
        await open_store(old.store, REGISTRY, HashingEmbedder().contract)
        await rebuild_derived_data(old.store, REGISTRY)
        await old.assert_up_to_date()
        again = len(old.store.writes) - WRITES
        assert again <= 10, "the opening, one batch again, and one of each record at its edge"
    assert n == WRITES + 1


@pytest.mark.parametrize("make", ["edge"], indirect=True)
async def test_a_rebuild_that_dies_on_edge_resumes_where_it_was(make: Make) -> None:
    old = await old_store(make(clock := FixedClock()), clock)
    for writes in (1, 3, 2, 9):
        old.store.fail_at(writes, When.AFTER)
        with pytest.raises(InjectedFault):
            await rebuild_derived_data(old.store, REGISTRY)
        old.store.revive()
        assert await needs_rebuild(old.store)
    await rebuild_derived_data(old.store, REGISTRY)
    await old.assert_up_to_date()


def after(times: int) -> Callable[[], bool]:
    """Says to stop once it was asked so often."""
    asked = itertools.count()
    return lambda: next(asked) >= times


async def test_it_stops_between_two_batches_when_it_is_told_to(make: Make) -> None:
    old = await old_store(make(clock := FixedClock()), clock)
    rounds = 0
    while await needs_rebuild(old.store):
        rounds += 1
        await rebuild_derived_data(old.store, REGISTRY, stop=after(5))
        assert rounds < 99
    assert rounds > 2
    await old.assert_up_to_date()


async def test_a_rebuild_by_an_older_version_that_was_left_is_begun_anew(make: Make) -> None:
    old = await old_store(make(clock := FixedClock()), clock)
    await update_metadata(old.store, {DERIVED_UP_TO: dict.fromkeys(SEARCHED, 2**60)})
    assert await rebuild_derived_data(old.store, REGISTRY) == LIVING
    await old.assert_up_to_date()


async def test_records_of_one_sort_key_are_all_done(make: Make) -> None:
    """Two processes may hand out the same one."""
    old = await old_store(make(clock := FixedClock()), clock)
    for record in await rows(old.store, MEMORIES, None):
        await old.store.update(MEMORIES, record.namespace, record.id, set={"sort_key": 7})
    await rebuild_derived_data(old.store, REGISTRY, stop=after(9))
    assert await rebuild_derived_data(old.store, REGISTRY)
    got = (await records_of(old.store))[MEMORIES]
    assert not any(map(has_old_terms, got))
    assert len(got) > 2 * 4


# --- versions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("derivation", [LATER, f"{DERIVATION_VERSION}9", "something-else-1"])
async def test_what_a_newer_version_derived_is_refused(derivation: str) -> None:
    clock = FixedClock()
    old = await old_store(InMemoryStore(clock), clock, derivation)
    old.store.writes.clear()
    for call in (
        open_store(old.store, REGISTRY, HashingEmbedder().contract),
        open_as_stored(old.store, REGISTRY),
        rebuild_derived_data(old.store, REGISTRY),
    ):
        with pytest.raises(SchemaVersionMismatchError) as caught:
            await call
        assert derivation in caught.value.message
        assert DERIVATION_VERSION in caught.value.message
        assert "start the version that wrote it" in caught.value.message
    assert {name for _, name in old.store.writes} <= {"meta"}
    assert (await read_metadata(old.store))[DERIVATION] == derivation


@pytest.mark.parametrize("version", [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])
async def test_a_store_of_another_schema_is_refused_and_not_written_to(version: int) -> None:
    clock = FixedClock()
    old = await old_store(InMemoryStore(clock), clock)
    await update_metadata(old.store, {"schema_version": version})
    old.store.writes.clear()
    for call in (
        open_store(old.store, REGISTRY, HashingEmbedder().contract),
        open_as_stored(old.store, REGISTRY),
    ):
        with pytest.raises(SchemaVersionMismatchError) as caught:
            await call
        assert f"schema version {version}" in caught.value.message
        assert f"works with {SCHEMA_VERSION}" in caught.value.message
        assert "start the version that wrote it" in caught.value.message
    assert {name for _, name in old.store.writes} <= {"meta"}


async def test_a_store_that_is_not_up_to_date_is_not_reindexed_offline(make: Make) -> None:
    old = await old_store(make(clock := FixedClock()), clock)
    with pytest.raises(StartupError, match="start the server once with its model"):
        await open_as_stored(old.store, REGISTRY)
    await rebuild_derived_data(old.store, REGISTRY, stop=after(3))
    with pytest.raises(StartupError, match="start the server once with its model"):
        await open_as_stored(old.store, REGISTRY)
    await rebuild_derived_data(old.store, REGISTRY)
    assert (await open_as_stored(old.store, REGISTRY))["schema_version"] == SCHEMA_VERSION


async def test_a_newer_version_that_was_faster_is_not_undone() -> None:
    clock = FixedClock()
    old = await old_store(SharedStore(clock), clock)
    begun: list[int] = []

    def overtaken(what: str, done: int, total: int) -> None:
        begun.append(done)
        held = old.store.inner._collections["meta"].records  # type: ignore[attr-defined]
        for record in held.values():
            record.payload[DERIVATION] = LATER

    with pytest.raises(SchemaVersionMismatchError):
        await rebuild_derived_data(old.store, REGISTRY, overtaken)
    assert begun == [0]
    metadata = await read_metadata(old.store)
    assert (metadata[DERIVATION], set(metadata[DERIVED_UP_TO].values())) == (LATER, {0})


class NewerBegins(SharedStore):
    """A newer version claims the store just before this one does."""

    async def update(self, collection: str, *given: Any, **named: Any) -> bool:
        if DERIVATION in named["set"]:
            await super().update(collection, *given, set={DERIVATION: LATER})
        return await super().update(collection, *given, **named)


async def test_a_newer_version_that_began_first_keeps_the_store() -> None:
    store = NewerBegins(FixedClock())
    await open_store(store, REGISTRY, HashingEmbedder().contract)
    for record in await rows(store, META, META_NAMESPACE):
        await store.put(META, [replace(record, payload={**record.payload, DERIVATION: EARLIER})])
    with pytest.raises(SchemaVersionMismatchError):
        await rebuild_derived_data(store, REGISTRY)
    assert (await read_metadata(store))[DERIVATION] == LATER


@pytest.mark.parametrize(
    ("stored", "configured", "advice"),
    [
        ("openai:big", "some/model", "(LOT_EMBEDDING_PROVIDER=openai, LOT_EMBEDDING_MODEL=big)"),
        ("openai:big", "openai:small", "LOT_EMBEDDING_PROVIDER=openai, LOT_EMBEDDING_MODEL=big"),
        (
            "some/model",
            "openai:big",
            "LOT_EMBEDDING_PROVIDER=fastembed, LOT_EMBEDDING_MODEL=some/model",
        ),
        ("some/model", "other/model", "(LOT_EMBEDDING_MODEL=some/model, LOT_EMBEDDING_PATH)"),
    ],
)
async def test_a_store_of_another_model_names_the_settings_that_open_it(
    stored: str, configured: str, advice: str
) -> None:
    store = InMemoryStore(FixedClock())
    contract = HashingEmbedder().contract
    await open_store(store, REGISTRY, replace(contract, model=stored))
    with pytest.raises(EmbeddingModelMismatchError) as caught:
        await open_store(store, REGISTRY, replace(contract, model=configured))
    assert advice in caught.value.message
    assert "tokenizer" not in caught.value.message


# --- several processes ------------------------------------------------------------------------


async def test_two_processes_may_do_it_at_once() -> None:
    clock = FixedClock()
    old = await old_store(SharedStore(clock), clock)
    both = [rebuild_derived_data(Interleaving(old.store, seed), REGISTRY) for seed in (1, 2)]
    await asyncio.gather(*both)
    await old.assert_up_to_date()


class EditedMeanwhile(SharedStore):
    """Another process changes records after they were read and before they are written."""

    edits: Callable[[], Awaitable[None]] | None = None

    async def set_vectors(self, collection: str, records: Sequence[Record]) -> None:
        if self.edits is not None and collection == PATTERNS:
            edits, self.edits = self.edits, None
            await edits()
        await super().set_vectors(collection, records)


async def test_what_another_process_writes_meanwhile_is_not_overwritten() -> None:
    clock = FixedClock()
    store = EditedMeanwhile(clock)
    old = await old_store(store, clock)
    patterns = old.world.another_process().services.patterns.patterns

    async def edits() -> None:
        task = PatternContent("Walk the dog", code="")
        await patterns.update(NS, "p0", PatternEdit(task, frozenset({"task", "code"})), "")
        code = PatternContent("Do step 1", code="feed(the_cat)")
        await patterns.update(NS, "p1", PatternEdit(code, frozenset({"code"})), "")
        await patterns.delete(OTHER, "p0", "")

    store.edits = edits
    await rebuild_derived_data(old.store, REGISTRY)
    services = old.world.services
    assert [hit for hit, *_ in await answers(World(store, clock, services), "feed cat")][:1] == [
        "p1"
    ]
    got = {r.payload.get("pattern_id"): r for r in await rows_with_vectors(store, NS)}
    fresh = await open_world()
    await fresh.services.patterns.writer.save(NS, draft("Walk the dog", pattern_id="p0"))
    await fresh.services.patterns.writer.save(
        NS, draft("Do step 1", pattern_id="p1", code="feed(the_cat)")
    )
    for record in await rows_with_vectors(fresh.store, NS):
        name = record.payload["pattern_id"]
        assert set(got[name].vectors) == set(record.vectors)
        for vector, value in record.vectors.items():
            assert same_vector(got[name].vectors[vector], value), (name, vector)
    assert not any(r.payload["pattern_id"] == "p0" for r in await rows(store, PATTERNS, OTHER))


async def rows_with_vectors(store: VectorStore, namespace: str) -> list[Record]:
    return await store.scroll(PATTERNS, namespace, (), limit=99, vectors=True)


# --- answers ----------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("make", "legs"),
    [
        ("in_memory", Legs.BM25),
        ("in_memory", Legs.HYBRID),
        ("edge", Legs.HYBRID),
    ],
    indirect=["make"],
)
async def test_a_store_that_was_rebuilt_answers_like_a_new_one(make: Make, legs: Legs) -> None:
    clock = FixedClock()
    store = make(clock)
    world = await open_world(store, clock)
    await fill(world)
    queries = ["step 3", "page_6.click", "stepNumber", "port 803", "try a thing", "DO STEP"]
    new = [await answers(world, query, legs) for query in queries]
    await make_old(store)
    old = [await answers(world, query, legs) for query in queries]
    assert all(new)
    assert old != new, "it must be seen that something is lacking"
    await rebuild_derived_data(store, REGISTRY)
    now = [await answers(world, query, legs) for query in queries]
    for got, want in zip(now, new, strict=True):
        assert dict(got) == pytest.approx(dict(want))
        assert [score for _, score in got] == pytest.approx([score for _, score in want])
