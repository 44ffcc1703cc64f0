"""Records read lately are never shown as they were before a write."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from qdrant_edge import UpdateOperation

from lot_grpc.ports import CollectionSpec, Equals, IdIn, Index, Record, Update, VectorStore
from lot_grpc.storage import edge_writes
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.storage.recent import RecentRecords
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock

SPEC = CollectionSpec(
    "things", dense={"text": 2}, indexes={"n": Index.INTEGER, "tag": Index.KEYWORD}
)
IDS = [f"00000000-0000-0000-0000-{n:012}" for n in range(6)]
NS = "a"


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[tuple[FixedClock, list[VectorStore]]]:
    clock = FixedClock()
    edge = EdgeStore(tmp_path, clock, min_free_bytes=0)
    both: list[VectorStore] = [edge, InMemoryStore(clock)]
    for store in both:
        await store.ensure_collections([SPEC])
    yield clock, both
    for store in both:
        await store.close()


def record(chance: random.Random, clock: FixedClock) -> Record:
    payload: dict[str, Any] = {
        "n": chance.randrange(4),
        "tag": [chance.choice("xyz")],
        "nested": {"list": [chance.randrange(100) / 8, None, True]},
    }
    if chance.random() < 0.3:
        payload["expires"] = clock.now() + chance.randrange(1, 4) * 1_000_000
    return Record(chance.choice(IDS), NS, payload, {"text": [1.0, 0.0]})


async def write(store: VectorStore, chance: random.Random, clock: FixedClock) -> Any:
    """One random write; the same for the same state of chance."""
    kind = chance.randrange(6)
    one, when = record(chance, clock), [Equals("n", chance.randrange(4))]
    if kind == 0:
        return await store.insert("things", [one])
    if kind == 1:
        return await store.put("things", [one])
    if kind == 2:
        return await store.replace("things", one, when)
    if kind == 3:
        return await store.delete("things", NS, [IdIn((one.id,)), *when])
    unset = ("nested",) if kind == 4 else ()
    changed = {"n": chance.randrange(4), "tag": [chance.choice("xyz")]}
    return await store.update("things", NS, one.id, set=changed, unset=unset, when=when)


@pytest.mark.parametrize("seed", range(8))
async def test_a_read_after_any_write_is_what_the_oracle_has(stores, seed):
    clock, both = stores
    choices = random.Random(seed)
    for _ in range(300):
        state = choices.getrandbits(64)
        results = [await write(store, random.Random(state), clock) for store in both]
        assert results[0] == results[1]
        if choices.random() < 0.1:
            clock.advance(1)
        requested = choices.sample(IDS, 4)
        edge, oracle = [await store.get("things", NS, requested) for store in both]
        assert {k: v.payload for k, v in edge.items()} == {k: v.payload for k, v in oracle.items()}


@pytest.mark.parametrize("seed", range(8))
async def test_what_is_stored_after_any_write_is_what_the_oracle_has(stores, seed):
    clock, both = stores
    choices = random.Random(seed)
    for _ in range(200):
        state = choices.getrandbits(64)
        for store in both:
            await write(store, random.Random(state), clock)
        for store in both:  # so that the next update finds them
            await store.get("things", NS, IDS)
        edge, oracle = [await store.scroll("things", NS, [], limit=9) for store in both]
        assert [(one.id, one.payload) for one in edge] == [(one.id, one.payload) for one in oracle]


VALUES = [0, 0.0, -0.0, False, "0", "", [], ["0"], [0], ["0", "1"], {"0": 0}, {"0": 0.0}, None]


@pytest.mark.parametrize("old", VALUES, ids=repr)
@pytest.mark.parametrize("many", [False, True])
async def test_an_equal_but_different_value_is_written(stores, old, many):
    for new in VALUES:
        await writes_over(stores[1][0], old, new, many)


async def writes_over(edge, old, new, many):
    await edge.put("things", [Record(IDS[0], NS, {"x": old, "n": 1}, {"text": [1.0, 0.0]})])
    await edge.get("things", NS, [IDS[0]])
    for changed in ({"x": new, "n": 1}, {"x": new, "n": 2}):
        if many:
            assert await edge.update_many("things", [Update(NS, IDS[0], changed)]) == {IDS[0]}
        else:
            assert await edge.update("things", NS, IDS[0], set=changed)
        [stored] = await edge.scroll("things", NS, [], limit=1)
        read = (await edge.get("things", NS, [IDS[0]]))[IDS[0]]
        for found in (stored, read):
            assert repr(found.payload.get("x")) == repr(new)
            assert found.payload["n"] == changed["n"]


async def test_neighbours_whose_changes_are_only_equal_each_get_their_own(stores):
    _, (edge, _) = stores
    await edge.put("things", [Record(one, NS, {"n": 1}, {"text": [1.0, 0.0]}) for one in IDS[:3]])
    changes = dict(zip(IDS, (5, 5.0, 5.0), strict=False))
    await edge.update_many("things", [Update(NS, one, {"x": x}) for one, x in changes.items()])
    found = await edge.scroll("things", NS, [], limit=3)
    assert {one.id: repr(one.payload["x"]) for one in found} == {
        one: repr(x) for one, x in changes.items()
    }


async def test_unchanged_keys_are_not_written(stores, monkeypatch):
    _, (edge, _) = stores
    await edge.put("things", [Record(IDS[0], NS, {"n": 1, "tag": ["x"]}, {"text": [1.0, 0.0]})])
    written: list[dict[str, Any]] = []
    set_payload = UpdateOperation.set_payload

    class Watched:
        @staticmethod
        def set_payload(ids: list[Any], payload: dict[str, Any]) -> Any:
            written.append(payload)
            return set_payload(ids, payload)

    monkeypatch.setattr(edge_writes, "UpdateOperation", Watched)
    await edge.get("things", NS, [IDS[0]])
    assert await edge.update("things", NS, IDS[0], set={"n": 2, "tag": ["x"]})
    assert await edge.update("things", NS, IDS[0], set={"n": 2, "tag": ["x"]})
    assert await edge.update_many("things", [Update(NS, IDS[0], {"n": 2, "tag": ["y"]})])
    assert written == [{"n": 2}, {"tag": ["y"]}]


async def test_what_a_caller_does_to_a_read_record_stays_with_the_caller(stores):
    _, (edge, _) = stores
    await edge.put("things", [Record(IDS[0], NS, {"n": 1}, {"text": [1.0, 0.0]})])
    for _ in range(2):
        read = (await edge.get("things", NS, [IDS[0]]))[IDS[0]]
        read.payload["n"] = 99
    assert (await edge.get("things", NS, [IDS[0]]))[IDS[0]].payload == {"n": 1}


@pytest.mark.parametrize(
    "heavy",
    [
        {"text": "x" * 18_000},
        {"deep": {"list": [{"k": "x" * 6000}] * 3}},
        {"numbers": [1.0] * 600},
    ],
)
def test_a_heavy_record_is_not_kept(heavy):
    recent = RecentRecords(10**6)
    recent.keep(Record("heavy", NS, heavy))
    recent.keep(Record("light", NS, {"n": 1}))
    assert recent.get("heavy") is None
    assert recent.get("light") is not None


def test_the_record_that_was_longest_unread_goes_first():
    recent = RecentRecords(1200)  # room for two
    for name in ("a", "b"):
        recent.keep(Record(name, NS, {}))
    recent.get("a")
    recent.keep(Record("c", NS, {}))
    assert [name for name in "abc" if recent.get(name)] == ["a", "c"]


def test_no_more_is_kept_than_fits_whatever_happens_to_the_records():
    recent = RecentRecords(50_000)
    chance = random.Random(3)
    for _ in range(3000):
        one = Record(f"{chance.randrange(90)}", NS, {"text": "x" * chance.randrange(4000)})
        kind = chance.randrange(6)
        if kind == 0:
            recent.forget([one.id, "unknown"])
        elif kind == 1 and (old := recent.pop(one.id)):
            recent.keep_changed(old, one.payload)
        else:
            recent.keep(one)
        kept = [found for n in range(90) if (found := recent.get(f"{n}"))]
        assert sum(len(found.payload["text"]) for found in kept) < 50_000
    assert len(kept) > 15
    recent.clear()
    for n in range(20):
        recent.keep(Record(f"{n}", NS, {"text": "x" * 1500}))
    assert sum(recent.get(f"{n}") is not None for n in range(20)) == 20
