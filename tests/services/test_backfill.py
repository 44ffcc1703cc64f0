"""A store of an older version is as one of this version before anything is served from it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pytest

from lot_grpc.domain.episode import EpisodeStart
from lot_grpc.domain.errors import EmbeddingModelMismatchError, SchemaVersionMismatchError
from lot_grpc.domain.memory import MemoryContent, MemoryKind
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.domain.query import EpisodeFilter, Legs, MemoryFilter, PatternFilter
from lot_grpc.embedding.hashing import HashingEmbedder
from lot_grpc.lexical.bm25 import TOKENIZER, document_vector
from lot_grpc.ports import Embedding, Record, SparseVector, VectorStore
from lot_grpc.services import backfill
from lot_grpc.services.backfill import bring_up_to_date, needs_backfill
from lot_grpc.services.episodes.episodes import EpisodeDraft
from lot_grpc.services.memories.drafts import MemoryEdit
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.recall.targets import (
    RecallOptions,
    episode_request,
    memory_request,
    pattern_request,
)
from lot_grpc.services.records.collections import (
    CODE_VECTOR,
    EPISODES,
    MEMORIES,
    PATTERNS,
    SCHEMA_VERSION,
    SPARSE_VECTOR,
    TEXT_VECTOR,
)
from lot_grpc.services.store_contract import change_contract, contract_row, open_store
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.storage.faults import FaultInjectingStore, InjectedFault, When
from lot_grpc.storage.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.contract.comparing import same_record, same_vector
from tests.services.deaths import EITHER_SIDE
from tests.services.world import (
    NS,
    Interleaving,
    SharedStore,
    World,
    draft,
    end,
    memory,
    open_world,
    rows,
    start,
)

OTHER = "others"
NAMESPACES = (NS, OTHER)
RECALLED = (PATTERNS, EPISODES, MEMORIES)
BRIEF = 60
EARLIER = "lot-terms-1/bm25-0"
LATER = "lot-terms-3/bm25-1"


class CountingEmbedder(HashingEmbedder):
    """Remembers what it embedded."""

    def __init__(self) -> None:
        super().__init__()
        self.embedded: list[str] = []

    async def embed_documents(self, texts: Sequence[str]) -> list[Embedding]:
        self.embedded += texts
        return await super().embed_documents(texts)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill, "_BATCH", 4)
    monkeypatch.setattr(backfill, "_EMBEDDED_BATCH", 2)


def code_of(number: int) -> str:
    return f"def stepNumber{number}(page_{number}):\n    return page_{number}.click()"


async def fill(world: World) -> None:
    """Records of two namespaces, some of them with code, some soon to expire."""
    services = world.services
    for number, namespace in itertools.product(range(7), NAMESPACES):
        code = code_of(number) if number % 3 == 0 else ""
        ttl = BRIEF if number == 5 else None
        await services.pattern_writer.save(
            namespace, draft(f"Do step {number}", pattern_id=f"p{number}", code=code, ttl=ttl)
        )
        await services.episodes.start(namespace, start(f"Try thing {number}", f"e{number}"))
        await services.memories.create(
            namespace, memory(f"The port is 80{number}", memory_id=f"m{number}", ttl=ttl)
        )


async def make_old(store: VectorStore, tokenizer: str = "") -> None:
    """As an older version leaves it: without the vectors it did not know, or with other terms."""
    for collection in RECALLED:
        for record in await store.scroll(collection, None, (), limit=1000, vectors=True):
            vectors = dict(record.vectors)
            if tokenizer:
                vectors[SPARSE_VECTOR] = SparseVector([1], [9.0])
            else:
                vectors = {TEXT_VECTOR: vectors[TEXT_VECTOR]}
            await store.put(collection, [replace(record, vectors=vectors)])
    embedding = (await contract_row(store))["embedding"]
    await change_contract(store, {"embedding": {**embedding, "tokenizer": tokenizer}})


async def vectors_of(store: VectorStore) -> dict[str, list[Record]]:
    return {
        collection: await store.scroll(collection, None, (), limit=1000, vectors=True)
        for collection in RECALLED
    }


def assert_same(got: dict[str, list[Record]], want: dict[str, list[Record]]) -> None:
    for collection, records in want.items():
        assert [r.id for r in got[collection]] == [r.id for r in records]
        for one, other in zip(got[collection], records, strict=True):
            assert same_record(one, other), (collection, one, other)


@dataclass
class Old:
    """A store of an older version; ``want`` is what its living records should be."""

    store: FaultInjectingStore
    world: World
    want: dict[str, list[Record]]

    async def assert_up_to_date(self) -> None:
        assert_same(await vectors_of(self.store), self.want)
        row = await contract_row(self.store)
        assert row["embedding"] == asdict(replace(HashingEmbedder().contract, tokenizer=TOKENIZER))
        assert not await needs_backfill(self.store)


async def old_store(inner: VectorStore, clock: FixedClock, tokenizer: str = "") -> Old:
    """Filled by this version, made old, and some of it lapsed since."""
    world = await open_world(inner, clock)
    await fill(world)
    clock.advance(2 * BRIEF)
    want = await vectors_of(inner)
    clock.advance(-2 * BRIEF)
    await make_old(inner, tokenizer)
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


LIVING = 2 * (6 + 7 + 6)
CODES = 2 * 3


@ON_EDGE_TOO
async def test_a_store_of_stage_1_gets_all_it_lacks(make: Make) -> None:
    old = await old_store(make(clock := FixedClock()), clock)
    embedder, told = CountingEmbedder(), []
    assert await needs_backfill(old.store)
    done = await bring_up_to_date(old.store, embedder, lambda *told_now: told.append(told_now))
    assert done == LIVING
    await old.assert_up_to_date()
    assert {len(r.vectors) for r in old.want[PATTERNS]} == {2, 3}
    assert len(embedder.embedded) == CODES, "texts are not embedded anew"
    assert told[0] == ("bringing the store up to date", 0, LIVING)
    assert told[-1] == ("bringing the store up to date", LIVING, LIVING)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert len(told) > 3 * 2


async def test_what_lapsed_is_left_alone(make: Make) -> None:
    old = await old_store(make(clock := FixedClock()), clock)
    await bring_up_to_date(old.store, HashingEmbedder())
    clock.advance(-2 * BRIEF)
    found = await rows(old.store, PATTERNS, None)
    assert len(found) == 14
    got = await vectors_of(old.store)
    assert sum(set(r.vectors) == {TEXT_VECTOR} for r in got[PATTERNS]) == 2


async def test_a_store_that_is_up_to_date_is_not_written_to(make: Make) -> None:
    old = await old_store(make(clock := FixedClock()), clock)
    await bring_up_to_date(old.store, HashingEmbedder())
    old.store.writes.clear()
    assert await bring_up_to_date(old.store, HashingEmbedder()) == 0
    assert old.store.writes == []


async def test_a_new_store_has_nothing_to_do(make: Make) -> None:
    store = FaultInjectingStore(make(FixedClock()))
    await open_store(store, HashingEmbedder().contract)
    store.writes.clear()
    assert not await needs_backfill(store)
    assert await bring_up_to_date(store, HashingEmbedder(), never) == 0
    assert store.writes == []
    assert (await contract_row(store))["embedding"]["tokenizer"] == TOKENIZER


async def test_an_old_store_without_records_only_gets_the_new_name(make: Make) -> None:
    store = FaultInjectingStore(make(FixedClock()))
    await open_store(store, HashingEmbedder().contract)
    await make_old(store)
    assert await bring_up_to_date(store, HashingEmbedder(), never) == 0
    assert not await needs_backfill(store)


def never(what: str, done: int, total: int) -> None:
    raise AssertionError((what, done, total))


async def test_other_terms_are_made_anew_without_the_model(make: Make) -> None:
    old = await old_store(make(clock := FixedClock()), clock, EARLIER)
    embedder = CountingEmbedder()
    assert await bring_up_to_date(old.store, embedder) == LIVING
    await old.assert_up_to_date()
    assert embedder.embedded == []


# --- it is stopped ----------------------------------------------------------------------------


@EITHER_SIDE
async def test_a_run_that_dies_at_any_write_is_taken_up_where_it_was(
    make: Make, when: When
) -> None:
    for n in itertools.count(1):
        old = await old_store(make(clock := FixedClock()), clock)
        embedder = CountingEmbedder()
        old.store.fail_at(n, when)
        try:
            await bring_up_to_date(old.store, embedder)
        except InjectedFault:
            old.store.revive()
            assert await needs_backfill(old.store) or n == len(old.store.writes)
        else:
            break
        await open_store(old.store, embedder.contract)
        await bring_up_to_date(old.store, embedder)
        await old.assert_up_to_date()
        assert len(embedder.embedded) - CODES <= 2, "more than a batch was done once more"
        assert len(old.store.writes) <= WRITES + 3, "one batch again, and the opening"
    assert n == WRITES + 1


@pytest.mark.parametrize("make", ["edge"], indirect=True)
async def test_a_run_that_dies_on_edge_is_taken_up_where_it_was(make: Make) -> None:
    old = await old_store(make(clock := FixedClock()), clock)
    embedder = CountingEmbedder()
    for writes in (3, 2, 9):
        old.store.fail_at(writes)
        with pytest.raises(InjectedFault):
            await bring_up_to_date(old.store, embedder)
        old.store.revive()
    await bring_up_to_date(old.store, embedder)
    await old.assert_up_to_date()
    assert len(embedder.embedded) - CODES <= 3 * 2


WRITES = 2 * (4 + 4 + 3) + 1
"""A batch takes two writes, the end one."""


def after(times: int) -> Callable[[], bool]:
    """Says to stop once it was asked so often."""
    asked = itertools.count()
    return lambda: next(asked) >= times


async def test_it_stops_between_two_batches_when_it_is_told_to(make: Make) -> None:
    old = await old_store(make(clock := FixedClock()), clock)
    embedder = CountingEmbedder()
    rounds = 0
    while await needs_backfill(old.store):
        rounds += 1
        await bring_up_to_date(old.store, embedder, stop=after(5))
        assert rounds < 99
    assert rounds > 2
    assert len(embedder.embedded) == CODES
    await old.assert_up_to_date()


async def test_a_run_to_other_terms_that_was_left_is_begun_anew(make: Make) -> None:
    """A newer version began, was killed, and this one is started again."""
    old = await old_store(make(clock := FixedClock()), clock, EARLIER)
    everything = {name: {"key": 2**60, "ids": []} for name in RECALLED}
    embedding = (await contract_row(old.store))["embedding"]
    left = {"to": LATER, "cursors": everything}
    changed = {"embedding": {**embedding, "tokenizer": TOKENIZER}, "backfill": left}
    await change_contract(old.store, changed)
    assert await needs_backfill(old.store)
    assert await bring_up_to_date(old.store, HashingEmbedder()) == LIVING
    await old.assert_up_to_date()


async def test_records_of_one_sort_key_are_all_done(make: Make) -> None:
    """Two processes may hand out the same one."""
    old = await old_store(make(clock := FixedClock()), clock)
    for record in await rows(old.store, MEMORIES, None):
        changed = {"sort_key": 7}
        await old.store.update(MEMORIES, record.namespace, record.id, set=changed)
    await bring_up_to_date(old.store, HashingEmbedder(), stop=after(10))
    assert await bring_up_to_date(old.store, HashingEmbedder())
    got = await vectors_of(old.store)
    assert all(SPARSE_VECTOR in r.vectors for r in got[MEMORIES])
    assert len(got[MEMORIES]) > 2 * 4


# --- of stages 1 to 4: memories without vectors of code and passages, episodes of summaries ---

LONG = "A sentence of some words. " * 200


async def stage_4_store(inner: VectorStore, clock: FixedClock) -> Old:
    """Whole but for those vectors, and of an older schema."""
    world = await open_world(inner, clock)
    await fill(world)
    for number, namespace in itertools.product(range(5), NAMESPACES):
        for name, content, kind in (
            ("long", f"{number} {LONG}", MemoryKind.DOCUMENT),
            ("code", code_of(number), MemoryKind.CODE_SNIPPET),
            ("short", f"fact {number}", MemoryKind.FACT),
        ):
            given = memory(content, memory_id=f"{name}{number}", kind=kind)
            await world.services.memories.create(namespace, given)
    for namespace in NAMESPACES:
        ended = EpisodeDraft(EpisodeStart("ticket 1"), "ended", end=end(summary="all green"))
        await world.services.episodes.record(namespace, ended)
    want = await vectors_of(inner)
    for record in want[EPISODES]:
        if record.payload["episode_id"] == "ended":
            kept = {TEXT_VECTOR: record.vectors[TEXT_VECTOR]}
            kept[SPARSE_VECTOR] = document_vector(record.payload["task"])
            await inner.put(EPISODES, [replace(record, vectors=kept)])
    for record in want[MEMORIES]:
        kept = {name: record.vectors[name] for name in (TEXT_VECTOR, SPARSE_VECTOR)}
        await inner.put(MEMORIES, [replace(record, vectors=kept)])
    await change_contract(inner, {"schema_version": 4})
    return Old(FaultInjectingStore(inner), world, want)


@ON_EDGE_TOO
async def test_what_stage_4_wrote_gets_the_vectors_of_code_passages_and_summaries(
    make: Make,
) -> None:
    old = await stage_4_store(make(clock := FixedClock()), clock)
    embedder = CountingEmbedder()
    assert await needs_backfill(old.store)
    assert await bring_up_to_date(old.store, embedder) == 2 * (5 + 5 + 1), (
        "the long, the code, and the summaries"
    )
    await old.assert_up_to_date()
    assert (await contract_row(old.store))["schema_version"] == SCHEMA_VERSION
    assert not [text for text in embedder.embedded if "fact" in text or "Do step" in text]
    assert await bring_up_to_date(old.store, embedder) == 0


@EITHER_SIDE
@pytest.mark.parametrize(
    "each", [pytest.param(4, id="some"), pytest.param(1, id="all", marks=pytest.mark.exhaustive)]
)
async def test_a_run_over_memories_that_dies_at_any_write_is_taken_up(
    make: Make, when: When, each: int
) -> None:
    for n in itertools.count(1, each):
        old = await stage_4_store(make(clock := FixedClock()), clock)
        old.store.fail_at(n, when)
        try:
            await bring_up_to_date(old.store, HashingEmbedder())
        except InjectedFault:
            old.store.revive()
        else:
            break
        await open_store(old.store, HashingEmbedder().contract)
        await bring_up_to_date(old.store, HashingEmbedder())
        await old.assert_up_to_date()
    assert n > 9


async def test_memories_that_an_older_version_had_done_already_are_gone_over_again(
    make: Make,
) -> None:
    """Stage 4 was bringing the terms up to date when it was killed."""
    old = await stage_4_store(make(clock := FixedClock()), clock)
    everything = {name: {"key": 2**60, "ids": []} for name in RECALLED}
    embedding = (await contract_row(old.store))["embedding"]
    await change_contract(
        old.store,
        {
            "embedding": {**embedding, "tokenizer": EARLIER},
            "backfill": {"to": TOKENIZER, "cursors": everything},
        },
    )
    await bring_up_to_date(old.store, HashingEmbedder(), stop=after(3))
    assert await needs_backfill(old.store)
    await bring_up_to_date(old.store, HashingEmbedder())
    await old.assert_up_to_date()


async def test_a_long_memory_edited_meanwhile_has_the_vectors_of_its_new_text() -> None:
    clock = FixedClock()

    class Edited(SharedStore):
        edits = True

        async def set_vectors(self, collection: str, records: Sequence[Record]) -> None:
            if collection == MEMORIES and self.edits:
                self.edits = False
                edit = MemoryEdit(MemoryContent("short now"), frozenset({"content", "kind"}))
                for name in ("long0", "code0"):
                    await old.world.services.memories.update(NS, name, edit, "")
            await super().set_vectors(collection, records)

    old = await stage_4_store(Edited(clock), clock)
    await bring_up_to_date(old.store, HashingEmbedder())
    asked = RecallOptions("short now", 2, legs=Legs.DENSE)
    question = memory_request(asked, MemoryFilter())
    found = await old.world.services.memory_recall.find(NS, question)
    assert {hit.thing.memory_id for hit in found.hits} == {"long0", "code0"}
    assert [hit.similarity for hit in found.hits] == pytest.approx([1.0, 1.0], abs=1e-5)


# --- versions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tokenizer", ["lot-terms-2/bm25-3", LATER, "lot-terms-10/bm25-0", "something-else-1"]
)
async def test_the_terms_of_a_newer_version_are_refused(tokenizer: str) -> None:
    clock = FixedClock()
    old = await old_store(InMemoryStore(clock), clock, tokenizer)
    old.store.writes.clear()
    for call in (
        open_store(old.store, HashingEmbedder().contract),
        bring_up_to_date(old.store, HashingEmbedder()),
    ):
        with pytest.raises(SchemaVersionMismatchError) as caught:
            await call
        assert tokenizer in caught.value.message
        assert TOKENIZER in caught.value.message
        assert "start the version that wrote it" in caught.value.message
    assert {name for _, name in old.store.writes} <= {"meta"}
    assert (await contract_row(old.store))["embedding"]["tokenizer"] == tokenizer


async def test_a_newer_version_that_was_faster_is_not_undone() -> None:
    clock = FixedClock()
    old = await old_store(SharedStore(clock), clock)

    def overtaken(what: str, done: int, total: int) -> None:
        held = old.store.inner._collections["meta"].records  # type: ignore[attr-defined]
        for record in held.values():
            record.payload["embedding"]["tokenizer"] = LATER

    with pytest.raises(SchemaVersionMismatchError):
        await bring_up_to_date(old.store, HashingEmbedder(), overtaken)
    assert (await contract_row(old.store))["embedding"]["tokenizer"] == LATER


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
    await open_store(store, replace(contract, model=stored))
    await make_old(store)
    with pytest.raises(EmbeddingModelMismatchError) as caught:
        await open_store(store, replace(contract, model=configured))
    assert advice in caught.value.message
    assert "tokenizer" not in caught.value.message


# --- several processes ------------------------------------------------------------------------


async def test_two_processes_may_do_it_at_once() -> None:
    clock = FixedClock()
    old = await old_store(SharedStore(clock), clock)
    both = [bring_up_to_date(Interleaving(old.store, seed), HashingEmbedder()) for seed in (1, 2)]
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
    patterns = old.world.another_process().services.patterns

    async def edits() -> None:
        task = PatternContent("Walk the dog", code="")
        await patterns.update(NS, "p0", PatternEdit(task, frozenset({"task", "code"})), "")
        code = PatternContent("Do step 1", code="feed(the_cat)")
        await patterns.update(NS, "p1", PatternEdit(code, frozenset({"code"})), "")
        await patterns.delete(OTHER, "p0", "")

    store.edits = edits
    await bring_up_to_date(old.store, HashingEmbedder())
    services = old.world.services
    assert [hit for hit, *_ in await answers(World(store, clock, services), "feed cat")][:1] == [
        "p1"
    ]
    got = {r.payload.get("pattern_id"): r for r in await rows_with_vectors(store, NS)}
    fresh = await open_world()
    await fresh.services.pattern_writer.save(NS, draft("Walk the dog", pattern_id="p0"))
    await fresh.services.pattern_writer.save(
        NS, draft("Do step 1", pattern_id="p1", code="feed(the_cat)")
    )
    for record in await rows_with_vectors(fresh.store, NS):
        name = record.payload["pattern_id"]
        for vector, value in record.vectors.items():
            assert same_vector(got[name].vectors[vector], value), (name, vector)
    stray = got["p0"].vectors.get(CODE_VECTOR)
    assert stray is None or same_vector(stray, got["p0"].vectors[TEXT_VECTOR])
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
    patterns = (await services.pattern_recall.find(NS, about_patterns)).hits
    episodes = (await services.episode_recall.find(NS, about_episodes)).hits
    memories = (await services.memory_recall.find(NS, about_memories)).hits
    return [
        *((hit.thing.pattern_id, hit.score) for hit in patterns),
        *((hit.thing.episode_id, hit.score) for hit in episodes),
        *((hit.thing.memory_id, hit.score) for hit in memories),
    ]


@pytest.mark.parametrize(
    ("make", "legs"),
    [
        ("in_memory", Legs.BM25),
        ("in_memory", Legs.DENSE),
        ("in_memory", Legs.HYBRID),
        ("edge", Legs.HYBRID),
    ],
    indirect=["make"],
)
async def test_a_store_that_was_brought_up_to_date_answers_like_a_new_one(
    make: Make, legs: Legs
) -> None:
    clock = FixedClock()
    store = make(clock)
    world = await open_world(store, clock)
    await fill(world)
    queries = ["step 3", "page_6.click", "stepNumber", "port 803", "try a thing", "DO STEP"]
    new = [await answers(world, query, legs) for query in queries]
    await make_old(store)
    old = [await answers(world, query, legs) for query in queries]
    if legs is not Legs.DENSE:
        assert all(new)
    assert old != new, "it must be seen that something is lacking"
    await bring_up_to_date(store, HashingEmbedder())
    now = [await answers(world, query, legs) for query in queries]
    for got, want in zip(now, new, strict=True):
        assert dict(got) == pytest.approx(dict(want))
        assert [score for _, score in got] == pytest.approx([score for _, score in want])
