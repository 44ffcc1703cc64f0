"""A collection without records has no shard: it takes nothing, and reads as empty."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lot_grpc.domain.errors import StartupError, StoreUnavailableError
from lot_grpc.ports import (
    CollectionSpec,
    Equals,
    Index,
    Missing,
    Order,
    Record,
    SearchQuery,
    SparseVector,
)
from lot_grpc.storage import edge_shard
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.storage.manifest import COUNTS_NAME
from tests.contract.clock import FixedClock
from tests.storage.samples import SPEC, sample, sample_id

LOG = CollectionSpec("log", indexes={"seq": Index.INTEGER, "owner": Index.KEYWORD})
VECTOR = [1.0, 0.0, 0.0, 0.0]


async def open_store(folder: Path, clock: FixedClock) -> EdgeStore:
    store = EdgeStore(folder, clock, min_free_bytes=0)
    await store.ensure_collections([SPEC, LOG])
    return store


def shards(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir() if entry.is_dir())


async def test_nothing_but_the_first_record_makes_a_shard(folder: Path, clock: FixedClock) -> None:
    store = await open_store(folder, clock)
    [hits] = (await store.search(SPEC.name, "a", [SearchQuery("text", VECTOR, 5)])).hits
    assert hits == {}
    assert await store.get(SPEC.name, "a", [sample_id(1)], vectors=True) == {}
    assert await store.scroll(LOG.name, None, (), limit=5, order=Order("seq")) == []
    assert await store.count(LOG.name, "a", [Equals("seq", 1)]) == 0
    assert await store.facet(LOG.name, "a", "owner") == {}
    assert await store.namespaces(LOG.name) == set()
    assert await store.expired(LOG.name, limit=5) == []
    assert await store.delete(LOG.name, "a", [Missing("owner")]) == 0
    assert await store.delete_expired(LOG.name, limit=5) == 0
    assert not await store.replace(SPEC.name, sample(1), ())
    assert not await store.update(LOG.name, "a", sample_id(1), set={"seq": 1})
    await store.set_vectors(SPEC.name, [sample(1)])
    await store.insert(SPEC.name, [])
    await store.put(SPEC.name, [])
    await store.flush()
    await store.check()
    assert not await store.compact()
    assert (await store.info()).points == {SPEC.name: 0, LOG.name: 0}
    await store.close()
    assert shards(folder) == []

    store = await open_store(folder, clock)
    await store.put(LOG.name, [Record(sample_id(1), "a", {"seq": 7})])
    assert shards(folder) == [LOG.name]
    assert await store.count(LOG.name, "a", [Equals("seq", 7)]) == 1
    await store.close()
    store = await open_store(folder, clock)
    assert set(await store.get(LOG.name, "a", [sample_id(1)])) == {sample_id(1)}
    await store.close()


async def test_the_first_record_is_found_at_once_and_expires(
    folder: Path, clock: FixedClock
) -> None:
    store = await open_store(folder, clock)
    soon = clock.now() + 10
    record = Record(sample_id(1), "a", {"expires": soon}, {"text": VECTOR})
    assert await store.insert(SPEC.name, [record]) == {record.id}
    [hits] = (await store.search(SPEC.name, "a", [SearchQuery("text", VECTOR, 5)])).hits
    assert set(hits) == {record.id}
    clock.advance(11)
    assert await store.count(SPEC.name, "a") == 0
    assert await store.delete_expired(SPEC.name, limit=5) == 1
    await store.close()


async def test_vectors_are_added_and_dropped_before_there_is_a_shard(
    folder: Path, clock: FixedClock
) -> None:
    store = await open_store(folder, clock)
    await store.extend(CollectionSpec(SPEC.name, {"image": 3}, ("words",)))
    await store.drop_vectors(SPEC.name, ["text"])
    words = SparseVector((1,), (1.0,))
    await store.put(
        SPEC.name, [Record(sample_id(1), "a", {}, {"image": [1.0, 0.0, 0.0], "words": words})]
    )
    queries = [SearchQuery("image", [1.0, 0.0, 0.0], 5), SearchQuery("words", words, 5)]
    found = (await store.search(SPEC.name, "a", queries)).hits
    assert [set(hits) for hits in found] == [{sample_id(1)}] * 2
    with pytest.raises(ValueError, match="no dense vector 'text'"):
        await store.search(SPEC.name, "a", [SearchQuery("text", VECTOR, 5)])
    await store.close()


async def test_a_shard_with_records_is_missed(folder: Path, clock: FixedClock) -> None:
    store = await open_store(folder, clock)
    await store.put(LOG.name, [Record(sample_id(1), "a", {"seq": 7})])
    await store.close()
    (folder / LOG.name).rename(folder.with_name("aside"))
    with pytest.raises(StartupError, match=r"'log' with 1 record is missing"):
        await open_store(folder, clock)


async def test_no_shard_is_made_in_a_folder_that_took_the_place_of_ours(
    folder: Path, clock: FixedClock
) -> None:
    store = await open_store(folder, clock)
    folder.rename(folder.with_name("aside"))
    folder.mkdir()
    with pytest.raises(StoreUnavailableError, match="was replaced"):
        await store.put(LOG.name, [Record(sample_id(1), "a", {"seq": 7})])
    with pytest.raises(StoreUnavailableError, match="was replaced"):
        await store.close()
    assert shards(folder) == []


async def test_one_without_records_is_not_missed_though_their_numbers_are_lost(
    folder: Path, clock: FixedClock
) -> None:
    store = await open_store(folder, clock)
    await store.put(LOG.name, [Record(sample_id(1), "a", {"seq": 7})])
    await store.close()
    (folder / COUNTS_NAME).write_bytes(b"")  # as a power loss may leave it
    store = await open_store(folder, clock)
    assert (await store.info()).points == {SPEC.name: 0, LOG.name: 1}
    await store.close()


@pytest.mark.parametrize("call", ["mkdir", "write_text", "touch", "rename", "unlink"])
async def test_a_shard_that_cannot_be_created_says_why_and_is_created_by_the_next_write(
    folder: Path, clock: FixedClock, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    store = await open_store(folder, clock)
    with monkeypatch.context() as patched:
        patched.setattr(Path, call, full)
        with pytest.raises(StoreUnavailableError, match=r"'log' cannot .* No space .* next write"):
            await store.put(LOG.name, [Record(sample_id(1), "a", {"seq": 7})])
    assert await store.count(LOG.name, "a") == 0
    await store.put(LOG.name, [Record(sample_id(2), "a", {"seq": 8})])
    await store.close()
    store = await open_store(folder, clock)
    assert set(await store.get(LOG.name, "a", [sample_id(1), sample_id(2)])) == {sample_id(2)}
    await store.close()


async def test_a_shard_that_edge_cannot_open_when_it_is_new_is_no_lost_one(
    folder: Path, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Path) -> None:
        raise Exception("too many open files")  # noqa: TRY002 - as Edge does

    store = await open_store(folder, clock)
    with monkeypatch.context() as patched:
        patched.setattr(edge_shard, "_loaded", fails)
        with pytest.raises(StoreUnavailableError, match=r"'log' cannot be created .* the log"):
            await store.put(LOG.name, [Record(sample_id(1), "a", {"seq": 7})])
    await store.put(LOG.name, [Record(sample_id(1), "a", {"seq": 7})])
    assert await store.count(LOG.name, "a") == 1
    await store.close()


async def test_what_says_that_a_shard_is_empty_is_gone_for_good_before_its_first_record(
    folder: Path, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lasting: dict[Path, list[str]] = {}
    sync = os.fsync

    def synced(file: int) -> None:
        sync(file)
        place = Path(f"/proc/self/fd/{file}").readlink()
        if place.is_dir():
            lasting[place] = [one.name for one in place.iterdir()]
        else:
            lasting[place] = [place.read_text()]

    store = await open_store(folder, clock)
    monkeypatch.setattr(os, "fsync", synced)
    await store.put(LOG.name, [Record(sample_id(1), "a", {"seq": 7})])
    assert LOG.name in lasting[folder]
    assert "edge_config.json" in lasting[folder / LOG.name]
    assert "lot.never-opened" not in lasting[folder / LOG.name]
    [fields] = [text for place, [text, *_] in lasting.items() if place.name == "config.json"]
    assert "seq" in fields
    await store.close()
