from __future__ import annotations

from dataclasses import replace

import pytest

from lot_grpc.domain.errors import RequestInvalidError
from lot_grpc.domain.knowledge import KnowledgePack
from lot_grpc.domain.memory import MemoryContent
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.ports import Embedding
from lot_grpc.services import seeder as seeding
from lot_grpc.services.indexer import Indexer
from lot_grpc.services.outcomes.outcomes import OutcomeDraft
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.records.collections import MEMORIES, OUTCOMES, PATTERNS
from lot_grpc.services.seeder import KnowledgeSeeder, Seeded, Seeds
from lot_grpc.testing.faults import FaultInjectingStore
from lot_grpc.testing.hashing import HashingEmbedder
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.invariants import check_invariants
from tests.services.world import NS, World, open_world, rows

OWN = KnowledgePack(
    "own",
    "ours",
    patterns={"deploy": PatternContent("Deploy", labels={"team": "core"})},
    memories={str(n): MemoryContent(f"fact {n}") for n in range(5)},
)


class CountingEmbedder(HashingEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    async def embed_documents(self, texts) -> list[Embedding]:
        self.calls += 1
        return await super().embed_documents(texts)


def own_seeding(world: World, embedder: HashingEmbedder | None = None) -> KnowledgeSeeder:
    runtime = world.services.runtime
    settings = replace(runtime.settings, packs=[OWN])
    indexer = runtime.indexer if embedder is None else Indexer(embedder)
    runtime = replace(runtime, settings=settings, indexer=indexer)
    return KnowledgeSeeder(runtime, world.services.resources)


def totals(seeded: Seeded) -> tuple[int, int, int]:
    groups = seeded.packs
    return (
        sum(pack.created for pack in groups),
        sum(pack.existing for pack in groups),
        sum(pack.deleted for pack in groups),
    )


async def test_all_that_is_new_is_embedded_in_one_call_and_written_once_a_kind():
    clock = FixedClock()
    world = await open_world(FaultInjectingStore(InMemoryStore(clock)), clock)
    embedder = CountingEmbedder()
    world.store.writes.clear()
    assert totals(await own_seeding(world, embedder).seed(NS, Seeds())) == (6, 0, 0)
    assert embedder.calls == 1
    inserted = [write for write in world.store.writes if write[0] == "insert"]
    assert inserted == [("insert", "memories"), ("insert", "patterns")]
    await own_seeding(world, embedder).seed(NS, Seeds())
    inserted = [write for write in world.store.writes if write[0] == "insert"]
    assert (embedder.calls, len(inserted)) == (1, 2)


async def test_a_large_pack_is_stored_piece_by_piece(world, monkeypatch):
    monkeypatch.setattr(seeding, "_AT_ONCE", 2)
    embedder = CountingEmbedder()
    seeded = await own_seeding(world, embedder).seed(NS, Seeds())
    assert totals(seeded) == (6, 0, 0)
    assert embedder.calls == 3
    assert seeded.created == {"pattern": 1, "memory": 5, "error_solution": 0}


async def test_a_thing_keeps_its_labels_beside_that_of_its_pack(world):
    await own_seeding(world).seed(NS, Seeds())
    pattern = await world.services.patterns.patterns.get(NS, "seed:own:deploy")
    assert pattern.content.labels == {"team": "core", "seed": "own"}
    assert OWN.patterns["deploy"].labels == {"team": "core"}


async def test_an_unknown_pack_stores_nothing(world):
    with pytest.raises(RequestInvalidError, match="this server has own"):
        await own_seeding(world).seed(NS, Seeds(("own", "other")))
    assert await rows(world.store, PATTERNS) == []


async def test_a_seed_of_an_expired_pattern_starts_without_its_outcomes(world):
    await own_seeding(world).seed(NS, Seeds())
    edit = PatternEdit(PatternContent("x"), frozenset(), ttl=10_000_000)
    await world.services.patterns.patterns.update(NS, "seed:own:deploy", edit, "")
    await world.services.outcomes.recorder.record(
        NS, OutcomeDraft(("seed:own:deploy",), Outcome.FAILURE)
    )
    world.clock.advance(11)
    assert totals(await own_seeding(world).seed(NS, Seeds())) == (1, 5, 0)
    assert await rows(world.store, OUTCOMES) == []
    await check_invariants(world.store, NS)


async def test_what_an_older_process_deleted_is_known_to_a_new_one(world):
    await own_seeding(world).seed(NS, Seeds())
    await world.services.memories.memories.delete(NS, "seed:own:3", "")
    other = world.another_process()
    assert totals(await own_seeding(other).seed(NS, Seeds())) == (0, 5, 1)
    assert totals(await own_seeding(other).seed("another", Seeds())) == (6, 0, 0)
    dry = Seeds(dry_run=True, restore_deleted=True)
    assert totals(await own_seeding(other).seed(NS, dry)) == (1, 5, 0)
    assert len(await rows(world.store, MEMORIES)) == 4
