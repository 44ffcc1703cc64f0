"""What a reindex does not do, or leaves as it was."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lot_grpc.domain.errors import (
    EmbeddingModelUnavailableError,
    ReindexOfflineOnlyError,
    ReindexRunningError,
)
from lot_grpc.ports import Embedding
from lot_grpc.services.records.collections import PATTERNS
from lot_grpc.services.reindex.reindexer import ReindexPhase
from lot_grpc.services.store_metadata import read_metadata
from lot_grpc.testing.hashing import HashingEmbedder
from tests.contract.clock import FixedClock
from tests.services.reindex.switching import (
    OLD,
    TURNED,
    Place,
    TurnedEmbedder,
    check_names,
    check_one_model,
    fill,
    reindex,
)
from tests.services.world import (
    NS,
    SharedStore,
    recall,
    save,
)


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
