"""To another model: what serves is of one model at every moment, and nothing is lost."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from lot_grpc.domain.errors import (
    EmbeddingModelMismatchError,
    EmbeddingModelUnavailableError,
    ReindexOfflineOnlyError,
    ReindexRunningError,
    StartupError,
)
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.domain.policy import NamespacePolicy, PolicyEdit
from lot_grpc.domain.retrieval import RetrievalQueries
from lot_grpc.ports import Embedder, Embedding, EmbeddingContract, Record, Vector, VectorStore
from lot_grpc.services.build import Services
from lot_grpc.services.changes.settings import ChangeFeed
from lot_grpc.services.outcomes import context_stats
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.record_embedder import RecordEmbedder
from lot_grpc.services.records.collections import (
    CONTEXT_STATS,
    PATTERNS,
    QUERY_VECTOR,
    SOLVED_VECTOR,
    TEXT_VECTOR,
)
from lot_grpc.services.reindex import reindexer as reindexing
from lot_grpc.services.reindex import vector_rebuild as rebuilding
from lot_grpc.services.reindex.epochs import stored_name
from lot_grpc.services.reindex.reindexer import ReindexPhase, ReindexStep
from lot_grpc.services.reindex.vector_rebuild import drop_stale
from lot_grpc.services.resource_spec import ResourceCollection
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.runtime import ServiceSettings, open_runtime
from lot_grpc.services.store_metadata import (
    EPOCH,
    REBUILD,
    open_as_stored,
    open_store,
    read_metadata,
)
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.testing.faults import FaultInjectingStore, InjectedFault, When
from lot_grpc.testing.hashing import HashingEmbedder, OverlapReranker
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.contract.comparing import same_vector
from tests.sampling import one_in
from tests.services.deaths import EITHER_SIDE
from tests.services.world import (
    NS,
    Interleaving,
    SharedStore,
    World,
    draft,
    end,
    memory,
    outcome,
    recall,
    rows,
    save,
    start,
)

OLD = "test-double/hashing"
TURNED = "test-double/turned"
NARROW = "test-double/narrow"
OTHER = "others"


class TurnedEmbedder(HashingEmbedder):
    """Another model with as many dimensions: every text lies elsewhere than for the first."""

    closed = False

    @property
    def contract(self) -> EmbeddingContract:
        return replace(super().contract, model=TURNED)

    async def embed_query(self, text: str) -> Embedding:
        return _turned(await super().embed_query(text))

    async def embed_documents(self, texts: Sequence[str]) -> list[Embedding]:
        await asyncio.sleep(0.005)
        return [_turned(one) for one in await super().embed_documents(texts)]

    async def close(self) -> None:
        self.closed = True


class NarrowEmbedder(HashingEmbedder):
    """Another model with fewer dimensions."""

    def __init__(self) -> None:
        super().__init__(dimensions=24)

    @property
    def contract(self) -> EmbeddingContract:
        return replace(super().contract, model=NARROW)


MODELS: dict[str, type[Any]] = {
    OLD: HashingEmbedder,
    TURNED: TurnedEmbedder,
    NARROW: NarrowEmbedder,
}


def _turned(one: Embedding) -> Embedding:
    return replace(one, vector=[*one.vector[7:], *one.vector[:7]])


async def opener(model: str) -> Embedder:
    if model not in MODELS:
        raise StartupError(f"{model!r} is not known")
    embedder: Embedder = MODELS[model]()
    return embedder


@dataclass
class Place:
    """A store, and processes that open it one after the other."""

    store: Any
    clock: FixedClock = field(default_factory=FixedClock)

    async def start(self, model: str = OLD) -> World:
        """As ``opening`` does it. Raises EmbeddingModelMismatchError."""
        embedder = await opener(model)
        epoch = await open_store(self.store, REGISTRY, embedder.contract)
        await drop_stale(self.store, REGISTRY)
        settings = ServiceSettings(changes=ChangeFeed(interval=0.02))
        runtime = open_runtime(
            self.store, REGISTRY, embedder, OverlapReranker(), self.clock, settings, epoch=epoch
        )
        services = Services(runtime, opener)
        await services.runtime.stack.sequencer.open()
        return World(self.store, self.clock, services, embedder)  # type: ignore[arg-type]


async def reindex(world: World, model: str, **named: Any) -> list[ReindexStep]:
    return [step async for step in world.services.reindexer.run(model, **named)]


async def fill(world: World, count: int = 12) -> None:
    """Things of every kind that has vectors, in two namespaces, some of them learned from."""
    services = world.services
    for number in range(count):
        code = f"def f{number}(): return {number}" if number % 3 == 0 else ""
        await save(world, f"Task number {number}", pattern_id=f"p{number}", code=code)
        await services.memories.memories.create(
            OTHER, memory(f"Fact number {number}", memory_id=f"m{number}")
        )
    await services.patterns.writer.save(OTHER, draft("Task of others"))
    for number in range(3):
        await services.episodes.creator.start(NS, start(f"Deploy number {number}", f"e{number}"))
        await outcome(world, f"p{number}", query=f"a task like {number}")
    await services.episodes.ender.end(NS, "e0", end(summary="All of it is out"), "")


async def check_one_model(store: VectorStore, model: str) -> None:
    """What the contract's epoch holds is just what ``model`` makes of the texts there are."""
    row = await read_metadata(store)
    assert row["embedding"]["model"] == model
    epoch = row.get(EPOCH, 0)
    embedder = await opener(model)
    for searched in [one.search_fields for one in REGISTRY.embedded.values() if one.text_of]:
        for record in await store.scroll(searched.collection, None, (), limit=999, vectors=True):
            text = searched.text_of(record)
            wanted = {TEXT_VECTOR: text.meaning}
            if text.code:
                wanted["code"] = text.spoken_code
            if text.solved:
                wanted[SOLVED_VECTOR] = text.solved
            for name, words in wanted.items():
                [made] = await embedder.embed_documents([words])
                stored = record.vectors.get(stored_name(name, epoch))
                assert stored is not None, (searched.collection, record.payload)
                assert same_vector(stored, made.vector)
    for record in await store.scroll(CONTEXT_STATS, None, (), limit=999, vectors=True):
        made = await embedder.embed_query(record.payload["query"])
        assert same_vector(record.vectors[stored_name(QUERY_VECTOR, epoch)], made.vector)


async def check_names(store: VectorStore, epoch: int) -> None:
    """No vectors but those of the epoch are left."""
    for spec in REGISTRY.collection_specs(1):
        allowed = {stored_name(name, epoch) for name in spec.dense} | set(spec.sparse)
        for record in await store.scroll(spec.name, None, (), limit=999, vectors=True):
            assert set(record.vectors) <= allowed


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuilding, "_BATCH", 5)
    monkeypatch.setattr(reindexing, "_PROGRESS_SECONDS", 0.001)


PLACES = ["memory", "interleaving"]
ON_EDGE_TOO = pytest.mark.parametrize("place", [*PLACES, "edge"], indirect=True)


@pytest.fixture(params=[*PLACES, pytest.param("edge", marks=pytest.mark.exhaustive)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    clock = FixedClock()
    match request.param:
        case "edge":
            return Place(EdgeStore(tmp_path / "data", clock, min_free_bytes=0), clock)
        case "interleaving":
            return Place(Interleaving(InMemoryStore(clock)), clock)
        case _:
            return Place(InMemoryStore(clock), clock)


@ON_EDGE_TOO
@pytest.mark.parametrize("model", [TURNED, NARROW])
async def test_afterwards_the_other_model_serves_and_all_is_found_by_it(
    place: Place, model: str
) -> None:
    world = await place.start()
    await fill(world)
    steps = await reindex(world, model)
    assert [step.phase for step in steps][-1] is ReindexPhase.DONE
    assert steps[-1].done == steps[-1].total == 31
    assert model in steps[-1].detail
    assert "LOT_EMBEDDING_MODEL" in steps[-1].detail
    await check_one_model(place.store, model)
    await check_names(place.store, 1)
    assert world.services.runtime.model.contract.model == model

    found = await recall(world, "Task number 7")
    assert found.hits[0].thing.pattern_id == "p7"
    assert found.hits[0].similarity == pytest.approx(1.0)
    await save(world, "Written after the switch", pattern_id="late")
    assert (await recall(world, "Written after the switch")).hits[0].thing.pattern_id == "late"
    await outcome(world, "late", query="after the switch")
    await check_one_model(place.store, model)

    again = await place.start(model)
    assert (await recall(again, "Task number 4")).hits[0].thing.pattern_id == "p4"
    with pytest.raises(EmbeddingModelMismatchError, match="reindex"):
        await place.start(OLD)
    back = await reindex(again, OLD)
    assert back[-1].total == 33
    await check_one_model(place.store, OLD)
    await check_names(place.store, 2)


async def test_what_was_learned_moves_the_same_hits(place: Place) -> None:
    world = await place.start()
    await save(world, "Log in to the shop as admin", pattern_id="a")
    await save(world, "Log in to the shop as an admin", pattern_id="b")
    query = "Log in to the shop as admin user"
    asked = await recall(world, query)
    for _ in range(6):
        await outcome(world, "b", retrieval_id=asked.retrieval_id, query=query)
    before = await recall(world, query)
    assert before.hits[0].thing.pattern_id == "b"
    await reindex(world, TURNED)
    after = await recall(world, query)
    assert [hit.thing.pattern_id for hit in after.hits] == ["b", "a"]


@ON_EDGE_TOO
async def test_stats_that_were_merged_into_others_get_no_vector(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context_stats, "MAX_CONTEXT_STATS", 2)
    world = await place.start()
    await save(world, "Log in to the shop", pattern_id="a")
    queries = [f"log in number {number}" for number in range(6)]
    for query in (*queries, *queries):
        await outcome(world, "a", query=query)
    for model in (TURNED, NARROW):
        steps = await reindex(world, model)
        assert steps[-1].phase is ReindexPhase.DONE
        stored = await place.store.scroll(CONTEXT_STATS, NS, (), limit=99, vectors=True)
        assert {len(one.vectors) for one in stored if "merged_into" in one.payload} == {0}
        assert {len(one.vectors) for one in stored if "merged_into" not in one.payload} == {1}
        for query in queries:
            await outcome(world, "a", query=query)
    assert sum(one.payload["count"] for one in await rows(place.store, CONTEXT_STATS)) == 24


@ON_EDGE_TOO
async def test_stats_may_be_merged_while_their_vectors_are_made(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context_stats, "MAX_CONTEXT_STATS", 3)
    world = await place.start()
    await save(world, "Log in to the shop", pattern_id="a")
    for number in range(3):
        await outcome(world, "a", query=f"log in number {number}")
    made_by = RecordEmbedder.vectors
    merged: list[Record] = []

    async def vectors(
        self: RecordEmbedder, collection: ResourceCollection, records: Sequence[Record]
    ) -> list[Mapping[str, Vector]]:
        made = await made_by(self, collection, records)
        if collection.name == CONTEXT_STATS and not merged:
            await outcome(world, "a", query="log in number 4")
            stats = await rows(place.store, CONTEXT_STATS)
            merged.extend(one for one in stats if "merged_into" in one.payload)
        return made

    monkeypatch.setattr(RecordEmbedder, "vectors", vectors)
    steps = await reindex(world, TURNED)
    assert merged
    assert steps[-1].phase is ReindexPhase.DONE
    assert sum(one.payload["count"] for one in await rows(place.store, CONTEXT_STATS)) == 4


async def test_an_outcome_names_a_recall_of_the_former_model(place: Place) -> None:
    world = await place.start()
    await save(world, "Deploy the site", pattern_id="a")
    asked = await recall(world, "deploy it")
    await world.services.runtime.retrievals.flush()
    await reindex(world, NARROW)
    await outcome(world, "a", retrieval_id=asked.retrieval_id, query="deploy it")
    await check_one_model(place.store, NARROW)


@ON_EDGE_TOO
async def test_nothing_is_embedded_from_a_hash_and_what_was_learned_by_it_goes(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counters stay, and an outcome of a recall of the former model counts as a whole."""
    embedded: list[str] = []
    embed = HashingEmbedder.embed_query

    async def recorded(self: HashingEmbedder, text: str) -> Any:
        embedded.append(text)
        return await embed(self, text)

    monkeypatch.setattr(HashingEmbedder, "embed_query", recorded)
    world = await place.start()
    policy = NamespacePolicy(retrieval_queries=RetrievalQueries.HASH)
    edit = PolicyEdit(policy, frozenset({"retrieval_queries"}))
    await world.services.retention.policies.update(NS, edit, "")
    await save(world, "Deploy the site", pattern_id="a")
    first = await recall(world, "deploy it")
    await outcome(world, "a", retrieval_id=first.retrieval_id)
    await outcome(world, "a", query="as text")
    assert len(await rows(place.store, CONTEXT_STATS)) == 2
    late = await recall(world, "deploy it")
    await world.services.runtime.retrievals.flush()
    steps = await reindex(world, NARROW)
    assert steps[-1].phase is ReindexPhase.DONE
    [left] = await rows(place.store, CONTEXT_STATS)
    assert left.payload["query"] == "as text"
    [counted] = await outcome(world, "a", retrieval_id=late.retrieval_id)
    assert counted.outcomes.success_count == 3
    assert len(await rows(place.store, CONTEXT_STATS)) == 1
    await check_one_model(place.store, NARROW)
    again = await recall(world, "deploy it")
    await outcome(world, "a", retrieval_id=again.retrieval_id)
    assert len(await rows(place.store, CONTEXT_STATS)) == 2
    assert not [one for one in embedded if one.startswith("sha256:")]


@ON_EDGE_TOO
async def test_what_is_written_meanwhile_is_of_both_until_the_switch(place: Place) -> None:
    """Edits, deletes and new things between any two batches."""
    world = await place.start()
    await fill(world, 30)
    rng = random.Random(5)
    services = world.services

    async def write(number: int) -> None:
        await save(world, f"Written meanwhile {number}", pattern_id=f"w{number}")
        edited = f"p{rng.randrange(15)}"
        edit = PatternEdit(PatternContent(f"Edited meanwhile {number}"), frozenset({"task"}))
        await services.patterns.patterns.update(NS, edited, edit, "")
        await outcome(world, edited, query=f"edited {number}")
        if number in (1, 2):
            ended = end(summary=f"Written meanwhile too {number}")
            await services.episodes.ender.end(NS, f"e{number}", ended, "")
        if number < 10:
            await services.patterns.patterns.delete(NS, f"p{20 + number}", "")
            assert f"Written meanwhile {number}" in {
                hit.thing.content.task
                for hit in (await recall(world, f"Written meanwhile {number}")).hits
            }

    written = 0
    async for step in services.reindexer.run(TURNED):
        if step.phase is not ReindexPhase.DONE and written < 25:
            async with services.runtime.gate.together():
                await write(written)
            written += 1
    for number in range(written, 12):
        await write(number)
    await check_one_model(place.store, TURNED)
    assert services.runtime.model.contract.model == TURNED


async def test_many_writers_go_on_through_the_switch(place: Place) -> None:
    world = await place.start()
    await fill(world, 20)
    done = asyncio.Event()
    seen: set[str] = set()

    async def writer(mine: int) -> None:
        number, last = 0, False
        while not last:
            last = done.is_set()  # each writes once more after the switch
            async with world.services.runtime.gate.together():
                task = f"Writer {mine} wrote {number}"
                await save(world, task, pattern_id=f"w{mine}-{number}")
                hits = (await recall(world, task, limit=3)).hits
                assert task in {hit.thing.content.task for hit in hits}
                seen.add(world.services.runtime.model.contract.model)
            number += 1
            await asyncio.sleep(0.02)

    writers = [asyncio.create_task(writer(mine)) for mine in range(4)]
    await reindex(world, TURNED)
    done.set()
    await asyncio.gather(*writers)
    assert seen == {OLD, TURNED}
    await check_one_model(place.store, TURNED)
    await check_names(place.store, 1)


class SlowEmbedder(TurnedEmbedder):
    """Takes many turns of the loop for each text; ``texts`` counts them."""

    texts = 0

    async def embed_documents(self, texts: Sequence[str]) -> list[Embedding]:
        for _ in texts:
            type(self).texts += 1
            assert self.texts < 500, "it comes to no end"
            for _ in range(60):
                await asyncio.sleep(0)
        return [_turned(one) for one in await HashingEmbedder.embed_documents(self, texts)]


@pytest.mark.parametrize("pause", [0, 1, 20])
async def test_it_ends_while_more_is_written_than_it_embeds(
    monkeypatch: pytest.MonkeyPatch, pause: int
) -> None:
    """Writers pause so many turns of the loop. Once writers are held back what is left shrinks."""
    monkeypatch.setitem(MODELS, TURNED, SlowEmbedder)
    monkeypatch.setattr(SlowEmbedder, "texts", 0)
    monkeypatch.setattr(reindexing, "_CATCH_UP", 4)
    place = Place(InMemoryStore(FixedClock()))
    world = await place.start()
    await fill(world, 20)
    done = asyncio.Event()
    written = 0

    async def writer(mine: int) -> None:
        nonlocal written
        while not done.is_set():
            async with world.services.runtime.gate.together():
                name = f"w{mine}-{written}"
                await save(world, name, pattern_id=name)
                await world.services.memories.memories.create(OTHER, memory(name, memory_id=name))
            written += 2
            for _ in range(pause):
                await asyncio.sleep(0)

    writers = [asyncio.create_task(writer(mine)) for mine in range(3)]
    steps = await reindex(world, TURNED)
    meanwhile = written
    done.set()
    await asyncio.gather(*writers)
    assert steps[-1].phase is ReindexPhase.DONE
    assert meanwhile > 20
    await check_one_model(place.store, TURNED)
    more = await save(world, "written when it is over")
    assert more.created


async def test_who_is_held_back_goes_on_when_it_is_stopped(place: Place) -> None:
    world = await place.start()
    store = world.services.runtime.stack.model
    store.hold_back(0)
    pattern_writer = asyncio.create_task(save(world, "held back"))
    await asyncio.sleep(0.01)
    assert not pattern_writer.done()
    run = world.services.reindexer.run(TURNED)
    await anext(run)
    await run.aclose()
    assert (await pattern_writer).created


async def killed(store: FaultInjectingStore, clock: FixedClock, number: int, when: When) -> str:
    """Die at the ``number``-th write of a reindex, look, and end it; which model served between.

    Empty if it takes fewer writes.
    """
    place = Place(store, clock)
    world = await place.start()
    await fill(world, 4)
    store.fail_at(number, when)
    try:
        await reindex(world, TURNED)
    except InjectedFault:
        assert store.dead
    if not store.dead:
        return ""
    store.revive()
    model: str = (await read_metadata(store))["embedding"]["model"]
    await check_one_model(store, model)
    with pytest.raises(EmbeddingModelMismatchError):
        await place.start(TURNED if model == OLD else OLD)
    world = await place.start(model)
    found = await recall(world, "Task number 2")
    assert found.hits[0].thing.pattern_id == "p2"
    await save(world, "Written between the runs", pattern_id="between")
    await reindex(world, TURNED)
    await check_one_model(store, TURNED)
    await check_names(store, 1)
    assert (await recall(world, "Task number 2")).hits[0].thing.pattern_id == "p2"
    return model


@EITHER_SIDE
async def test_killed_at_any_write_one_model_serves_whole_and_the_next_run_ends_it(
    when: When,
) -> None:
    served = []
    for number in range(1, 200):
        clock = FixedClock()
        model = await killed(FaultInjectingStore(InMemoryStore(clock)), clock, number, when)
        if not model:
            break
        served.append(model)
    assert len(served) >= 10
    assert set(served) == {OLD, TURNED}
    assert served == sorted(served), "once it serves, the former one never does again"


@pytest.mark.parametrize("number", one_in(3, [5, 1, 9, 13, 15]))
async def test_killed_at_some_points_on_the_embedded_store(number: int, tmp_path: Path) -> None:
    clock = FixedClock()
    inner = EdgeStore(tmp_path, clock, min_free_bytes=0)
    assert await killed(FaultInjectingStore(inner), clock, number, When.AFTER)
    await inner.close()


async def test_hung_up_it_stops_and_goes_on_when_called_again(place: Place) -> None:
    world = await place.start()
    await fill(world, 30)
    run = world.services.reindexer.run(TURNED)
    async for step in run:
        if step.phase is ReindexPhase.EMBEDDING:
            break
    await run.aclose()
    assert world.services.runtime.model.contract.model == OLD
    await check_one_model(place.store, OLD)
    row = await read_metadata(place.store)
    assert row[REBUILD]["epoch"] == 1
    steps = await reindex(world, TURNED)
    assert steps[-1].phase is ReindexPhase.DONE
    await check_one_model(place.store, TURNED)


@ON_EDGE_TOO
async def test_what_an_unfinished_run_left_is_dropped_by_one_to_another_model(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await place.start()
    await fill(world, 6)
    left = rebuilding.VectorRebuild(
        place.store, REGISTRY, TurnedEmbedder(), world.services.runtime.stack.model.turn
    )
    await left.begin()
    await left.embed_all(lambda collection, done: None)
    await check_one_model(place.store, OLD)
    await reindex(world, NARROW)
    await check_one_model(place.store, NARROW)
    await check_names(place.store, 2)

    left = rebuilding.VectorRebuild(
        place.store, REGISTRY, TurnedEmbedder(), world.services.runtime.stack.model.turn
    )
    await left.begin()
    await left.embed_all(lambda collection, done: None)
    steps = await reindex(world, NARROW)
    assert "is already in use" in steps[-1].detail
    await check_names(place.store, 2)
    assert (await read_metadata(place.store)).get(REBUILD) is None


async def attempt(store: FaultInjectingStore, model: str) -> None:
    """A reindex of a closed store, to its end."""
    await open_as_stored(store, REGISTRY)
    run = rebuilding.VectorRebuild(store, REGISTRY, await opener(model), nullcontext)
    if await run.begin():
        await run.embed_all(lambda collection, done: None)
        await run.name_it()
        await drop_stale(store, REGISTRY)


@EITHER_SIDE
async def test_attempts_that_die_one_after_the_other_lose_nothing(when: When) -> None:
    """One was given up and died in that; the next one dies too, and is gone on with."""
    for first, second in itertools.product(range(1, 9), range(1, 9)):
        clock = FixedClock()
        store = FaultInjectingStore(InMemoryStore(clock))
        await fill(await Place(store, clock).start(), 3)
        left = rebuilding.VectorRebuild(store, REGISTRY, TurnedEmbedder(), nullcontext)
        await left.begin()
        await left.embed_all(lambda collection, done: None)
        for number, model in ((first, OLD), (second, NARROW)):
            store.fail_at(number, when)
            with suppress(InjectedFault):
                await attempt(store, model)
            store.revive()
        await attempt(store, NARROW)
        await check_one_model(store, NARROW)


async def test_to_the_model_that_serves_nothing_is_done(place: Place) -> None:
    world = await place.start()
    await fill(world, 3)
    steps = await reindex(world, OLD)
    assert steps[-1].phase is ReindexPhase.DONE
    assert "is already in use" in steps[-1].detail
    await check_names(place.store, 0)


async def test_a_dry_run_counts_and_changes_nothing(place: Place) -> None:
    world = await place.start()
    await fill(world, 3)
    row = await read_metadata(place.store)
    steps = await reindex(world, TURNED, dry_run=True)
    assert (steps[-1].phase, steps[-1].total) == (ReindexPhase.DONE, 13)
    assert await read_metadata(place.store) == row
    await check_names(place.store, 0)


async def test_a_model_that_cannot_be_opened_is_refused_and_nothing_is_changed(
    place: Place,
) -> None:
    world = await place.start()
    with pytest.raises(EmbeddingModelUnavailableError, match="is not known"):
        await reindex(world, "nobody/knows-it")
    assert world.services.runtime.model.contract.model == OLD
    assert (await reindex(world, TURNED))[-1].phase is ReindexPhase.DONE


async def test_only_one_runs_at_a_time(place: Place) -> None:
    world = await place.start()
    await fill(world, 12)
    first = world.services.reindexer.run(TURNED)
    await anext(first)
    with pytest.raises(ReindexRunningError):
        await reindex(world, TURNED)
    await first.aclose()
    await reindex(world, TURNED)


async def test_a_shared_store_is_reindexed_when_nobody_serves_it() -> None:
    clock = FixedClock()
    place = Place(SharedStore(clock), clock)
    world = await place.start()
    await fill(world, 3)
    with pytest.raises(ReindexOfflineOnlyError, match="--offline"):
        await reindex(world, TURNED)
    await check_names(place.store, 0)


async def test_a_model_that_fails_on_a_text_leaves_the_former_one_serving(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await place.start()
    await fill(world, 12)
    asked = 0

    async def fails(self: TurnedEmbedder, texts: Sequence[str]) -> list[Embedding]:
        nonlocal asked
        asked += 1
        if asked == 2:
            raise RuntimeError("out of memory")
        return await HashingEmbedder.embed_documents(self, texts)

    with monkeypatch.context() as patched:
        patched.setattr(TurnedEmbedder, "embed_documents", fails)
        with pytest.raises(RuntimeError):
            await reindex(world, TURNED)
    assert world.services.runtime.model.contract.model == OLD
    assert (await recall(world, "Task number 7")).hits[0].thing.pattern_id == "p7"
    await check_one_model(place.store, OLD)


async def test_records_that_expired_need_no_vectors(place: Place) -> None:
    world = await place.start()
    await save(world, "Short lived", pattern_id="gone", ttl=1_000_000)
    await save(world, "Long lived", pattern_id="stays")
    place.clock.advance(2)
    assert (await reindex(world, TURNED))[-1].total == 1
    found = await place.store.scroll(PATTERNS, NS, (), limit=9)
    assert [one.payload["pattern_id"] for one in found] == ["stays"]
