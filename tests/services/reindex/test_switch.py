"""To another model: what serves is of one model at every moment, and nothing is lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lot_grpc.domain.errors import EmbeddingModelMismatchError
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.domain.policy import NamespacePolicy, PolicyEdit
from lot_grpc.domain.retrieval import RetrievalQueries
from lot_grpc.ports import Embedding, Record, Vector
from lot_grpc.services.outcomes import context_stats
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.record_embedder import RecordEmbedder
from lot_grpc.services.records.collections import CONTEXT_STATS
from lot_grpc.services.reindex import reindexer as reindexing
from lot_grpc.services.reindex.reindexer import ReindexPhase
from lot_grpc.services.resource_spec import ResourceCollection
from lot_grpc.testing.hashing import HashingEmbedder
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.reindex.switching import (
    MODELS,
    NARROW,
    OLD,
    ON_EDGE_TOO,
    OTHER,
    TURNED,
    Place,
    TurnedEmbedder,
    _turned,
    check_names,
    check_one_model,
    fill,
    reindex,
)
from tests.services.world import (
    NS,
    end,
    memory,
    outcome,
    recall,
    rows,
    save,
)


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
