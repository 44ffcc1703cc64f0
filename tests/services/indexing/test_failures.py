"""What fails while a memory is indexed is told, and tried again."""

from __future__ import annotations

from typing import Any

import pytest

from lot_grpc.domain.errors import (
    EmbeddingUnavailableError,
    StorageFullError,
)
from lot_grpc.services.memories import indexing as indexing_module
from lot_grpc.services.records.memories import INDEXING_PROBLEM
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.long_memories import (
    AWAY,
    COMPLETE,
    PENDING,
    Meanwhile,
    away,
    create,
    edit,
    get,
    indexing,
    is_whole,
    record,
    step,
)
from tests.services.test_memories_passages import ASKED, find, long_text
from tests.services.watching import change_watcher
from tests.services.world import open_world

RETRY_SECONDS = indexing_module.retry_seconds


async def test_a_model_that_is_away_is_told_and_tried_again(embedder: Meanwhile) -> None:
    world = await open_world(embedder=embedder)
    await create(world)
    embedder.fails = away
    async with change_watcher(world) as watcher:
        for _ in range(3):  # the same problem is told once
            with pytest.raises(EmbeddingUnavailableError):
                await step(world)
        failed = await get(world)
        assert (failed.indexing, failed.indexing_problem) == (PENDING, AWAY)
        assert (await record(world)).payload[INDEXING_PROBLEM] == AWAY
        await watcher.until(lambda: len(watcher.events) == 1)
        embedder.fails = None
        await step(world)
        await watcher.until(lambda: len(watcher.events) == 2)
    assert [one.thing.indexing_problem for one in watcher.events] == [AWAY, ""]
    assert (await get(world)).indexing_problem == ""
    assert await is_whole(world, long_text(1, 20))


def test_the_pause_after_a_failure_grows_and_is_bounded() -> None:
    pauses = [RETRY_SECONDS(failures) for failures in range(12)]
    assert pauses[:4] == [1, 2, 4, 8]
    assert pauses[-1] == 60


async def test_a_memory_that_fails_does_not_hold_up_the_others(
    embedder: Meanwhile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing_module, "retry_seconds", lambda failures: 3600.0)
    world = await open_world(embedder=embedder)
    await create(world)
    embedder.fails = away
    with pytest.raises(EmbeddingUnavailableError):
        await step(world)
    embedder.fails = None
    await create(world, long_text(2, 0), memory_id="other")
    for _ in range(2):
        await step(world)
    assert (await get(world, "other")).indexing is COMPLETE
    assert (await get(world)).indexing is PENDING


async def test_an_edit_after_a_failure_begins_without_it(embedder: Meanwhile) -> None:
    world = await open_world(embedder=embedder)
    await create(world)
    embedder.fails = away
    with pytest.raises(EmbeddingUnavailableError):
        await step(world)
    assert (await edit(world, tags=("t",))).indexing_problem == AWAY
    edited = await edit(world, content=long_text(2, 0))
    assert (edited.indexing, edited.indexing_problem) == (PENDING, "")
    assert (await get(world)).indexing_problem == ""


async def test_a_bug_is_told_without_its_text(embedder: Meanwhile) -> None:
    world = await open_world(embedder=embedder)
    await create(world)
    embedder.fails = lambda: RuntimeError("secret contents")
    with pytest.raises(RuntimeError):
        await step(world)
    problem = (await get(world)).indexing_problem
    assert "internal error" in problem
    assert "secret" not in problem


class FullStore(InMemoryStore):
    full = False

    async def check(self) -> None:
        self._require()

    async def replace(self, *given: Any) -> bool:
        self._require()
        return await super().replace(*given)

    async def update(self, *given: Any, **named: Any) -> bool:
        self._require()
        return await super().update(*given, **named)

    def _require(self) -> None:
        if self.full:
            raise StorageFullError(1, 2**30, "/data")


async def test_a_full_disk_is_told_though_it_cannot_be_stored(embedder: Meanwhile) -> None:
    clock = FixedClock()
    store = FullStore(clock)
    world = await open_world(store, clock, embedder=embedder)
    await create(world)
    store.full = True
    with pytest.raises(StorageFullError):
        await step(world)
    assert embedder.embedded == 0  # what cannot be stored is not made
    assert "free some space" in (await get(world)).indexing_problem
    [(hit, _)] = await find(world, ASKED)
    assert "free some space" in hit.thing.indexing_problem
    assert "free some space" in (await indexing(world).check()).detail
    store.full = False
    await step(world)
    assert (await get(world)).indexing_problem == ""
    assert await is_whole(world, long_text(1, 20))


async def test_the_checks_of_the_server_say_what_is_pending_and_why(embedder: Meanwhile) -> None:
    world = await open_world(embedder=embedder)

    async def detail() -> str:
        checks = {one.name: one for one in await world.services.admin.ready_checks()}
        assert checks["indexing"].ok  # it serves
        return checks["indexing"].detail

    assert await detail() == "all memories are indexed"
    await create(world)
    assert (await detail()).endswith(": 1")
    embedder.fails = away
    with pytest.raises(EmbeddingUnavailableError):
        await step(world)
    assert AWAY in await detail()
