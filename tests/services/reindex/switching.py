"""Models to switch between, a store that serves one after the other, and checks of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from lot_grpc.domain.errors import StartupError
from lot_grpc.ports import Embedder, Embedding, EmbeddingContract, VectorStore
from lot_grpc.services.build import Services
from lot_grpc.services.changes.settings import ChangeFeed
from lot_grpc.services.records.collections import (
    CONTEXT_STATS,
    QUERY_VECTOR,
    SOLVED_VECTOR,
    TEXT_VECTOR,
)
from lot_grpc.services.reindex.epochs import stored_name
from lot_grpc.services.reindex.reindexer import ReindexStep
from lot_grpc.services.reindex.vector_rebuild import drop_stale
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.runtime import ServiceSettings, open_runtime
from lot_grpc.services.store_metadata import (
    EPOCH,
    open_store,
    read_metadata,
)
from lot_grpc.testing.hashing import HashingEmbedder, OverlapReranker
from tests.contract.clock import FixedClock
from tests.contract.comparing import same_vector
from tests.services.world import (
    NS,
    World,
    draft,
    end,
    memory,
    outcome,
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


PLACES = ["memory", "interleaving"]
ON_EDGE_TOO = pytest.mark.parametrize("place", [*PLACES, "edge"], indirect=True)
