from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from lot_grpc.domain.errors import (
    EmbeddingModelMismatchError,
    PatternNotFoundError,
    SchemaVersionMismatchError,
    StoreUnavailableError,
)
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import Pattern
from lot_grpc.domain.query import PatternFilter
from lot_grpc.services import housekeeping as module
from lot_grpc.services.maintenance import Maintenance, Swept
from lot_grpc.services.outcomes.outcomes import OutcomeDraft
from lot_grpc.services.records.collections import META, OUTCOMES, PATTERNS, REQUESTS
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.store_metadata import META_NAMESPACE, open_store
from lot_grpc.testing.faults import FaultInjectingStore, InjectedFault, When
from lot_grpc.testing.hashing import HashingEmbedder
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.world import (
    DAY,
    NS,
    SharedStore,
    World,
    open_world,
    outcome,
    payloads,
    recall,
    save,
)


async def half_an_outcome(store) -> tuple[World, Pattern]:
    """A process that died between the fact and its count."""
    clock = FixedClock()
    faulty = FaultInjectingStore(store(clock))
    world = await open_world(faulty, clock)
    made = (await save(world)).pattern
    faulty.fail_at(1, When.AFTER)
    with pytest.raises(InjectedFault):
        await outcome(world, made.pattern_id)
    faulty.revive()
    return world.another_process(), made


async def test_an_own_store_is_rolled_forward_at_once():
    world, made = await half_an_outcome(InMemoryStore)
    finished = await world.services.housekeeping.roll_forward(starting=True)
    assert finished.counts["outcomes"] == 1
    assert (
        await world.services.patterns.patterns.get(NS, made.pattern_id)
    ).outcomes.usage_count == 1
    assert (await world.services.housekeeping.roll_forward(starting=True)).counts["outcomes"] == 0


async def test_a_shared_store_is_left_to_the_others_for_a_quarter_of_an_hour():
    world, made = await half_an_outcome(SharedStore)
    for minutes, counted in ((0, 0), (14, 0), (1, 1)):
        world.clock.advance(minutes * 60)
        await world.services.housekeeping.roll_forward(starting=True)
        found = await world.services.patterns.patterns.get(NS, made.pattern_id)
        assert found.outcomes.usage_count == counted


async def test_a_sweep_while_serving_leaves_what_is_young_to_its_call():
    world, made = await half_an_outcome(InMemoryStore)
    await world.services.housekeeping.roll_forward()
    assert (
        await world.services.patterns.patterns.get(NS, made.pattern_id)
    ).outcomes.usage_count == 0


async def test_more_than_one_batch_is_rolled_forward(monkeypatch):
    monkeypatch.setattr(module, "_BATCH", 3)
    clock = FixedClock()
    faulty = FaultInjectingStore(InMemoryStore(clock))
    world = await open_world(faulty, clock)
    made = [(await save(world, f"task {n}")).pattern for n in range(10)]
    faulty.fail_at(1, When.AFTER)
    ids = tuple(one.pattern_id for one in made)
    with pytest.raises(InjectedFault):
        await world.services.outcomes.recorder.record(NS, OutcomeDraft(ids, Outcome.SUCCESS))
    faulty.revive()
    finished = await world.services.housekeeping.roll_forward(starting=True)
    assert finished.counts["outcomes"] == 10
    stats = await world.services.patterns.patterns.stats(NS, PatternFilter())
    assert stats.total_usage == 10


async def test_outcomes_of_a_pattern_that_is_gone_are_settled_without_it():
    world, made = await half_an_outcome(InMemoryStore)
    await world.store.delete(PATTERNS, NS, [])
    await world.services.housekeeping.roll_forward(starting=True)
    assert all(fact["applied"] for fact in await payloads(world, OUTCOMES))
    with pytest.raises(PatternNotFoundError):
        await world.services.patterns.patterns.get(NS, made.pattern_id)


async def test_what_expired_is_absent_everywhere_before_it_is_swept(world):
    made = (await save(world, "log in", ttl=10_000_000)).pattern
    await save(world, "log in to the site")
    world.clock.advance(10)
    with pytest.raises(PatternNotFoundError):
        await world.services.patterns.patterns.get(NS, made.pattern_id)
    with pytest.raises(PatternNotFoundError):
        await outcome(world, made.pattern_id)
    with pytest.raises(PatternNotFoundError):
        await world.services.patterns.patterns.delete(NS, made.pattern_id, "")
    assert len((await recall(world, "log in")).hits) == 1
    page = await world.services.patterns.patterns.list_page(NS, PatternFilter(), 10, None)
    assert len(page.items) == 1
    assert (await world.services.patterns.patterns.stats(NS, PatternFilter())).total == 1


async def test_the_sweep_takes_claims_and_outcomes_of_what_expired_along(world):
    made = (await save(world, "log in", ttl=10_000_000, request_id="r")).pattern
    kept = (await save(world, "kept")).pattern
    await outcome(world, made.pattern_id, kept.pattern_id)
    world.clock.advance(DAY)
    await world.services.housekeeping.drop_expired()
    assert [row["pattern_id"] for row in await payloads(world, PATTERNS)] == [kept.pattern_id]
    assert [row["resource_id"] for row in await payloads(world, OUTCOMES)] == [kept.pattern_id]
    assert [row["pattern_id"] for row in await payloads(world, REQUESTS)] == [kept.pattern_id]
    assert world.store._collections[PATTERNS].records.keys() == {
        record.id for record in await world.store.scroll(PATTERNS, NS, [], limit=9)
    }


async def test_the_rounds_go_on_after_a_failure_and_report_it_once(monkeypatch, world):
    monkeypatch.setattr(module, "_FLUSH_SECONDS", 0.001)
    monkeypatch.setattr(module, "_SWEEP_SECONDS", 0.002)
    reports: list[str] = []
    failures = 3
    written = asyncio.Event()
    flush = world.services.runtime.retrievals.flush

    async def failing() -> None:
        nonlocal failures
        if failures:
            failures -= 1
            raise StoreUnavailableError("away")
        await flush()
        written.set()

    monkeypatch.setattr(type(world.services.runtime.retrievals), "flush", lambda _: failing())
    answer = await recall(world, "anything")
    run = asyncio.create_task(
        world.services.housekeeping.run(
            lambda text, error: reports.append(str(error)), lambda *told: None
        )
    )
    try:
        await asyncio.wait_for(written.wait(), 20)
    finally:
        run.cancel()
    assert reports == ["away"]
    assert await world.another_process().services.runtime.retrievals.find(NS, answer.retrieval_id)


async def test_a_long_sweep_holds_up_no_recall(monkeypatch, world):
    monkeypatch.setattr(module, "_FLUSH_SECONDS", 0.001)
    monkeypatch.setattr(module, "_SWEEP_SECONDS", 0.001)
    sweeping, swept = asyncio.Event(), asyncio.Event()
    told: list[tuple[str, Mapping[str, int]]] = []

    async def sweep() -> Swept:
        sweeping.set()
        await swept.wait()
        return Swept("did it", {NS: {"PATTERN": 3}})

    maintenance = Maintenance(sweeps={"long": sweep})
    monkeypatch.setattr(world.services.housekeeping, "_maintenance", maintenance)
    run = asyncio.create_task(
        world.services.housekeeping.run(
            lambda text, error: None, lambda what, ns, counts: told.append((ns, counts))
        )
    )
    other = world.another_process()
    try:
        await asyncio.wait_for(sweeping.wait(), 20)
        answer = await recall(world, "anything")
        while await other.services.runtime.retrievals.find(NS, answer.retrieval_id) is None:
            await asyncio.sleep(0.001)
        assert told == []
        swept.set()
        while not told:
            await asyncio.sleep(0.001)
        assert told[0] == (NS, {"PATTERN": 3})
    finally:
        run.cancel()


# --- what a store was made with ---------------------------------------------------------------


async def test_a_store_is_opened_again_by_the_model_that_made_it(world):
    await save(world)
    await open_store(world.store, REGISTRY, HashingEmbedder().contract)
    assert len(await payloads(world, PATTERNS)) == 1


async def test_a_store_of_another_model_is_refused_and_says_both(world):
    with pytest.raises(EmbeddingModelMismatchError) as caught:
        await open_store(world.store, REGISTRY, HashingEmbedder(dimensions=32).contract)
    assert "dimensions=64" in caught.value.message
    assert "dimensions=32" in caught.value.message
    assert "LOT_EMBEDDING_MODEL=test-double/hashing" in caught.value.message


async def test_a_store_of_a_newer_version_is_refused(world):
    (record,) = await world.store.scroll(META, META_NAMESPACE, [], limit=5)
    await world.store.update(META, META_NAMESPACE, record.id, set={"schema_version": 99})
    with pytest.raises(SchemaVersionMismatchError, match="start the version that wrote it"):
        await open_store(world.store, REGISTRY, HashingEmbedder().contract)
