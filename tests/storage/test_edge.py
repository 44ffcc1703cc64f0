from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lot_grpc.domain.errors import StartupError, StoreLockedError, StoreUnavailableError
from lot_grpc.ports import (
    AnyOf,
    CollectionSpec,
    Equals,
    Index,
    Missing,
    Not,
    Range,
    Record,
    SearchQuery,
    SparseVector,
    Update,
    Vector,
)
from lot_grpc.storage import edge_create, edge_shard
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.storage.edge_shard import Shard, shard_folders
from tests.contract.clock import FixedClock
from tests.storage.samples import SPEC, sample, sample_id


async def reopened(store: EdgeStore, folder: Path, clock: FixedClock) -> EdgeStore:
    await store.close()
    again = EdgeStore(folder, clock, min_free_bytes=0)
    await again.ensure_collections([SPEC])
    return again


async def test_a_folder_is_opened_once(store: EdgeStore, folder: Path, clock: FixedClock) -> None:
    with pytest.raises(StoreLockedError):
        EdgeStore(folder, clock, min_free_bytes=0)
    again = await reopened(store, folder, clock)
    await again.close()


ALL_KINDS = replace(SPEC, name="kinds", indexes={kind.name.lower(): kind for kind in Index})


async def test_a_new_collection_is_made_with_its_indexes(
    store: EdgeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One made of an open shard costs a flush of the whole shard: 190 took half a minute."""
    record = Record(sample_id(1), "a", {"keyword": "k", "integer": 7}, {"text": [1.0] * 4})
    await store.ensure_collections([ALL_KINDS])
    monkeypatch.delattr(edge_shard, "UpdateOperation")
    await store.put(ALL_KINDS.name, [record])
    monkeypatch.undo()
    later = replace(ALL_KINDS, name="later")
    await store.ensure_collections([replace(later, indexes={})])
    await store.put("later", [record])
    await store.ensure_collections([later])  # here by calls of Edge
    schemas = [store._shard(spec.name).raw.info().payload_schema for spec in (ALL_KINDS, later)]
    types = [{path: str(index.data_type) for path, index in one.items()} for one in schemas]
    assert types[0] == types[1]
    assert set(types[0]) == {"namespace", "expires", *ALL_KINDS.indexes}
    for name in ("kinds", "later"):
        assert await store.count(name, "a", [Equals("keyword", "k"), Range("integer", 7)])
        assert await store.count(name, "a", [Equals("integer", 7)])
        assert not await store.count(name, "a", [AnyOf("integer", (6, 8))])
        assert "int_map_index" not in index_types(store, name, "integer")


def index_types(store: EdgeStore, collection: str, path: str) -> str:
    [file] = Path(store._path, collection).glob("segments/*/payload_index/config.json")
    return json.dumps(json.loads(file.read_text())["indexed_types"][path])


async def test_a_lexical_search_by_index_equals_a_full_scan(
    store: EdgeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    query = SparseVector([1, 2, 13], [1.0, 1.0, 1.0])
    for name, most in (("scanned", 10_000), ("indexed", 0)):
        monkeypatch.setattr(edge_create, "_SPARSE_FULL_SCAN", most)
        spec = CollectionSpec(name, sparse=("bm25",), indexes={"word": Index.KEYWORD})
        await store.ensure_collections([spec])
        await store.put(name, [worded(n) for n in range(600)])
        [file] = Path(store._path, name).glob("segments/*/segment.json")
        assert f'"full_scan_threshold":{most}' in file.read_text()
        for word in ("w0", "w1"):
            search = SearchQuery("bm25", query, 20, [AnyOf("word", (word,))])
            found += (await store.search(name, "a", [search])).hits
    assert found[:2] == found[2:]
    assert all(len(hits) == 20 for hits in found)


async def test_the_first_record_with_a_key_is_found(
    store: EdgeStore, folder: Path, clock: FixedClock
) -> None:
    having = [Not(Missing("n"))]
    bare = [replace(sample(n), payload={}) for n in range(4)]

    async def found() -> set[str]:
        return {one.id for one in await store.scroll(SPEC.name, "a", having, limit=9)}

    await store.put(SPEC.name, bare)
    assert await found() == set()
    await store.update(SPEC.name, "a", bare[0].id, set={"n": 1})
    assert await found() == {bare[0].id}
    store = await reopened(store, folder, clock)
    assert await found() == {bare[0].id}
    await store.delete(SPEC.name, "a", having)
    store = await reopened(store, folder, clock)
    assert await found() == set()
    await store.update_many(SPEC.name, [Update("a", bare[1].id, {"n": 1})])
    assert await found() == {bare[1].id}
    await store.close()
    store = EdgeStore(folder, clock, min_free_bytes=0)
    await store.ensure_collections([SPEC])
    await store.replace(SPEC.name, sample(2), [])
    assert await found() == {bare[1].id, bare[2].id}
    await store.close()


async def test_a_key_first_written_by_an_insert_is_found(store: EdgeStore) -> None:
    await store.put(SPEC.name, [replace(sample(1), payload={})])
    assert not await store.scroll(SPEC.name, "a", [Not(Missing("n"))], limit=9)
    await store.insert(SPEC.name, [sample(2)])
    assert await store.scroll(SPEC.name, "a", [Not(Missing("n"))], limit=9)


def worded(n: int) -> Record:
    words = [*range(1, 2 + n % 5), 10 + n % 7]
    vector = SparseVector(words, [1.0 + n / 1000 + word / 10 for word in words])
    return Record(sample_id(n), "a", {"word": f"w{n % 2}"}, {"bm25": vector})


async def test_a_collection_whose_first_opening_was_cut_short_is_made_again(
    store: EdgeStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_short(_: Path) -> None:
        raise RuntimeError

    monkeypatch.setattr(edge_shard, "_loaded", cut_short)
    await store.ensure_collections([ALL_KINDS])
    record = Record(sample_id(1), "a", {}, {"text": [1.0] * 4})
    with pytest.raises(StoreUnavailableError):
        await store.insert("kinds", [record])
    monkeypatch.undo()
    for file in (folder / "kinds").glob("segments/*/segment.json"):
        file.unlink()
    for _ in range(2):  # and kept from then on
        await store.ensure_collections([ALL_KINDS])
        await store.insert("kinds", [record])
        assert await store.count("kinds", "a", ()) == 1


async def test_everything_is_there_after_a_close(
    store: EdgeStore, folder: Path, clock: FixedClock
) -> None:
    await store.insert(SPEC.name, [sample(n) for n in range(50)])
    await store.update(SPEC.name, "a", sample_id(3), set={"n": 333}, unset=["gone"])
    await store.delete(SPEC.name, "a", [Equals("n", 4)])
    before = await store.scroll(SPEC.name, None, (), limit=99, vectors=True)
    again = await reopened(store, folder, clock)
    assert await again.scroll(SPEC.name, None, (), limit=99, vectors=True) == before
    [hits] = (
        await again.search(
            SPEC.name, "a", [SearchQuery("text", [1.0, 0.0, 0.0, 0.0], 1, [Range("n", gte=300)])]
        )
    ).hits
    assert list(hits) == [sample_id(3)]
    await again.close()


async def test_vectors_that_were_set_later_are_there_after_a_close(
    store: EdgeStore, folder: Path, clock: FixedClock
) -> None:
    """Also those of a name that the shard was not made with, as in a store of an older version."""
    await store.put(SPEC.name, [sample(n) for n in range(300)])
    grown = replace(SPEC, dense={**SPEC.dense, "code": 2}, sparse=("bm25",))
    await store.close()
    store = EdgeStore(folder, clock, min_free_bytes=0)
    await store.ensure_collections([grown])
    late: dict[str, Vector] = {"code": [0.0, 1.0], "bm25": SparseVector([7], [2.0])}
    given = [Record(sample_id(n), "a", {}, late) for n in range(0, 300, 2)]
    await store.set_vectors(SPEC.name, given)
    words = SearchQuery("bm25", SparseVector([7], [1.0]), 999)
    [found] = (await store.search(SPEC.name, "a", [words])).hits
    before = await store.scroll(SPEC.name, None, (), limit=999, vectors=True)
    assert sum(set(r.vectors) == {"text", "code", "bm25"} for r in before) == 150
    await store.close()
    again = EdgeStore(folder, clock, min_free_bytes=0)
    await again.ensure_collections([grown])
    assert await again.scroll(SPEC.name, None, (), limit=999, vectors=True) == before
    [hits] = (await again.search(SPEC.name, "a", [words])).hits
    assert hits == found
    assert set(hits) == {record.id for record in given}
    await again.close()


async def test_expiry_is_known_after_a_reopen(
    store: EdgeStore, folder: Path, clock: FixedClock
) -> None:
    base = clock.now()
    for n, life in ((1, 10), (2, 5), (3, 20)):
        record = Record(sample_id(n), "a", {"n": n, "expires": base + life}, {})
        await store.insert(SPEC.name, [record])
    again = await reopened(store, folder, clock)
    assert await again.count(SPEC.name, "a") == 3
    clock.advance(0.000005)
    assert await again.count(SPEC.name, "a") == 2
    assert await again.delete_expired(SPEC.name, limit=9) == 1
    clock.advance(0.000005)
    assert await again.count(SPEC.name, "a") == 1
    await again.close()


async def test_nothing_acknowledged_is_lost_when_the_process_is_killed(
    folder: Path, clock: FixedClock
) -> None:
    command = [sys.executable, "-m", "tests.storage.writer", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        while int(writer.stdout.readline()) < 300:
            pass
        writer.kill()
        acknowledged = 300 + len(writer.stdout.read().split())
    store = EdgeStore(folder, clock, min_free_bytes=0)
    await store.ensure_collections([SPEC])
    found = await store.scroll(SPEC.name, "a", (), limit=10**6, vectors=True)
    numbers = sorted(r.payload["n"] for r in found)
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= acknowledged
    assert all(set(r.vectors) == {"text"} for r in found)
    await store.close()


async def test_a_shard_half_made_when_the_process_died_is_made_anew(
    folder: Path, clock: FixedClock
) -> None:
    (folder / f".new-{SPEC.name}" / "segments").mkdir(parents=True)
    store = EdgeStore(folder, clock, min_free_bytes=0)
    await store.ensure_collections([SPEC])
    assert await store.insert(SPEC.name, [sample(1)]) == {sample_id(1)}
    assert [shard.name for shard in shard_folders(folder)] == [SPEC.name]
    await store.close()


@pytest.mark.parametrize("damaged", ["edge_config.json", "segments/*/segment.json"])
async def test_a_damaged_collection_is_named_with_what_to_do(
    store: EdgeStore, folder: Path, clock: FixedClock, damaged: str
) -> None:
    await store.insert(SPEC.name, [sample(1)])
    await store.close()
    for file in (folder / SPEC.name).glob(damaged):
        file.write_text("garbage")
    again = EdgeStore(folder, clock, min_free_bytes=0)
    with pytest.raises(StartupError, match="restore the data folder from a backup") as caught:
        await again.ensure_collections([SPEC])
    assert str(folder / SPEC.name) in caught.value.message
    assert caught.value.__cause__ is not None
    await again.close()
    EdgeStore(folder, clock, min_free_bytes=0)._lock.release()


async def test_vectors_of_another_size_are_refused_with_both_sizes(
    store: EdgeStore, folder: Path, clock: FixedClock
) -> None:
    await store.insert(SPEC.name, [sample(1)])
    await store.close()
    again = EdgeStore(folder, clock, min_free_bytes=0)
    with pytest.raises(StartupError, match=r"4-dimensional .* makes 5"):
        await again.ensure_collections([CollectionSpec(SPEC.name, dense={"text": 5})])
    await again.close()


async def test_an_index_named_anew_covers_old_records_after_a_reopen(
    store: EdgeStore, folder: Path, clock: FixedClock
) -> None:
    await store.put(SPEC.name, [Record(sample_id(n), "a", {"kind": "old"}) for n in range(3)])
    grown = CollectionSpec(SPEC.name, SPEC.dense, ("bm25",), {"kind": Index.KEYWORD})
    await store.ensure_collections([grown])
    await store.close()
    again = EdgeStore(folder, clock, min_free_bytes=0)
    await again.ensure_collections([grown])
    assert await again.facet(SPEC.name, "a", "kind") == {"old": 3}
    assert await again.count(SPEC.name, "a", [Missing("n")]) == 3
    await again.close()


async def test_a_big_put_lets_others_run_and_an_insert_does_not(store: EdgeStore) -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await store.put(SPEC.name, [sample(n) for n in range(700)])
    assert turns >= 5
    turns = 0
    await store.insert(SPEC.name, [sample(n) for n in range(1000, 1700)])
    assert turns == 0
    task.cancel()


async def test_concurrent_writers_share_a_sync_when_every_write_is_synced(
    folder: Path, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    sync = Shard.sync

    def counted(shard: Shard) -> None:
        synced.append(shard.count())
        sync(shard)

    monkeypatch.setattr(Shard, "sync", counted)
    store = EdgeStore(folder, clock, min_free_bytes=0, sync_always=True)
    await store.ensure_collections([SPEC])
    await asyncio.gather(*(store.insert(SPEC.name, [sample(n)]) for n in range(40)))
    assert synced[-1] == 40
    assert (shared := len(synced)) <= 3
    await store.update(SPEC.name, "a", sample_id(1), set={"n": 5})
    assert len(synced) == shared + 1, "a write alone is synced before it returns"
    await store.close()


async def test_a_failing_sync_reaches_every_writer(
    folder: Path, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = EdgeStore(folder, clock, min_free_bytes=0, sync_always=True)
    await store.ensure_collections([SPEC])

    def broken(shard: Shard) -> None:
        raise OSError("no disk")

    monkeypatch.setattr(Shard, "sync", broken)
    writes = (store.insert(SPEC.name, [sample(n)]) for n in range(3))
    results = await asyncio.gather(*writes, return_exceptions=True)
    assert [type(result) for result in results] == [OSError] * 3
    monkeypatch.undo()
    await store.close()


async def test_a_replay_is_kept_short_by_flushing_now_and_then(store: EdgeStore) -> None:
    log = CollectionSpec("log")
    await store.ensure_collections([log])
    for start in range(0, 24_000, 2000):
        ids = range(start, start + 2000)
        await store.insert("log", [Record(sample_id(n), "a", {"n": n}) for n in ids])
    assert store._shards["log"].unflushed == 4000
