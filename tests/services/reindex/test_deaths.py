"""A reindex that dies or is stopped loses nothing, and the next one ends it."""

from __future__ import annotations

import itertools
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from lot_grpc.domain.errors import EmbeddingModelMismatchError
from lot_grpc.services.reindex import vector_rebuild as rebuilding
from lot_grpc.services.reindex.reindexer import ReindexPhase
from lot_grpc.services.reindex.vector_rebuild import drop_stale
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.store_metadata import (
    REBUILD,
    open_as_stored,
    read_metadata,
)
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.testing.faults import FaultInjectingStore, InjectedFault, When
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.sampling import one_in
from tests.services.deaths import EITHER_SIDE
from tests.services.reindex.switching import (
    NARROW,
    OLD,
    ON_EDGE_TOO,
    TURNED,
    Place,
    TurnedEmbedder,
    check_names,
    check_one_model,
    fill,
    opener,
    reindex,
)
from tests.services.world import (
    recall,
    save,
)


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
