"""Stores of other versions and models, and of several processes at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from lot_grpc.domain.errors import (
    EmbeddingModelMismatchError,
    SchemaVersionMismatchError,
    StartupError,
)
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.ports import Record, VectorStore
from lot_grpc.services.derived_data import rebuild_derived_data
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.records.collections import (
    META,
    PATTERNS,
    SCHEMA_VERSION,
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
from lot_grpc.testing.hashing import HashingEmbedder
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.contract.comparing import same_vector
from tests.services.derived.old_stores import EARLIER, LATER, OTHER, Make, after, answers, old_store
from tests.services.world import (
    NS,
    Interleaving,
    SharedStore,
    World,
    draft,
    open_world,
    rows,
)


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
