"""What every store promises (``lot_grpc.ports.VectorStore``), each held to the reference."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import Any

import pytest

from lot_grpc.domain.errors import StoreUnavailableError
from lot_grpc.ports import (
    CollectionSpec,
    Condition,
    Equals,
    HasVector,
    IdIn,
    Index,
    Missing,
    MultiVector,
    Not,
    Order,
    Record,
    SearchQuery,
    SparseVector,
    VectorStore,
)
from tests.contract.clock import FixedClock
from tests.contract.comparing import assert_same_records, same_record
from tests.contract.generated import LOG, THINGS, sparse_vector, uid
from tests.contract.records import ALL, entry, fill, payload_of, thing

# --- namespaces -------------------------------------------------------------------------------


async def test_no_call_reaches_into_another_namespace(store: VectorStore) -> None:
    await store.put("things", [thing(1, "a", kind="mine", n=1), thing(2, "b", kind="theirs", n=1)])
    vector = [1.0] + [0.0] * 7
    assert set(await store.get("things", "a", [uid(1), uid(2)])) == {uid(1)}
    assert [r.id for r in await store.scroll("things", "a", (), limit=9)] == [uid(1)]
    assert await store.count("things", "a", [Equals("n", 1)]) == 1
    assert await store.facet("things", "a", "kind") == {"mine": 1}
    [hits] = (await store.search("things", "a", [SearchQuery("text", vector, 9)])).hits
    assert list(hits) == [uid(1)]
    assert await store.delete("things", "a", [IdIn((uid(2),))]) == 0
    assert await store.count("things", None) == 2
    everyone = await store.scroll("things", None, (), limit=9, payload=("n",))
    assert {r.namespace for r in everyone} == {"a", "b"}
    assert all(r.payload == {"n": 1} for r in everyone)


# --- expiry -----------------------------------------------------------------------------------


@pytest.mark.category("expiry")
async def test_an_expired_record_is_absent_to_every_read(
    store: VectorStore, clock: FixedClock
) -> None:
    soon = clock.now() + 10_000_000
    await store.put(
        "things", [thing(1, kind="brief", n=1, expires=soon), thing(2, kind="long", n=1)]
    )
    vector = [1.0] + [0.0] * 7

    async def seen() -> list[Any]:
        [hits] = (await store.search("things", "a", [SearchQuery("text", vector, 9)])).hits
        return [
            set(await store.get("things", "a", [uid(1), uid(2)])),
            {r.id for r in await store.scroll("things", "a", (), limit=9)},
            {r.id for r in await store.scroll("things", None, (), limit=9, order=Order("n"))},
            set(hits),
            await store.count("things", "a"),
            set(await store.facet("things", "a", "kind")),
        ]

    both, one = {uid(1), uid(2)}, {uid(2)}
    assert await seen() == [both, both, both, both, 2, {"brief", "long"}]
    clock.advance(9.999999)
    assert (await seen())[4] == 2
    clock.advance(0.000001)
    assert await seen() == [one, one, one, one, 1, {"long"}]
    clock.advance(-1)
    assert (await seen())[4] == 2, "the clock may step back"


@pytest.mark.category("expiry")
async def test_an_expired_record_can_be_neither_updated_nor_replaced(
    store: VectorStore, clock: FixedClock
) -> None:
    await store.put("things", [thing(1, n=1, expires=clock.now() + 5)])
    clock.advance(1)
    assert not await store.update("things", "a", uid(1), set={"n": 2})
    assert not await store.replace("things", thing(1, n=2), ())


@pytest.mark.category("insert")
async def test_an_insert_takes_the_place_of_an_expired_record(
    store: VectorStore, clock: FixedClock
) -> None:
    expires = clock.now() + 5_000_000
    await store.insert("things", [thing(1, n=1, expires=expires), thing(2, n=1)])
    assert await store.insert("things", [thing(1, n=2)]) == set()
    clock.advance(5)
    assert await store.insert("things", [thing(1, n=3), thing(2, n=3), thing(3, n=3)]) == {
        uid(1),
        uid(3),
    }
    assert await payload_of(store, 1) == {"n": 3}
    assert await payload_of(store, 2) == {"n": 1}
    calls = [store.insert("log", [entry("x", seq=i, expires=clock.now() + 5)]) for i in range(5)]
    assert sum(len(ids) for ids in await asyncio.gather(*calls)) == 1


@pytest.mark.category("expiry")
async def test_an_expiry_set_later_counts_as_well_and_can_be_taken_back(
    store: VectorStore, clock: FixedClock
) -> None:
    await store.put("things", [thing(1, n=1), thing(2, n=1)])
    for name in (1, 2):
        await store.update("things", "a", uid(name), set={"expires": clock.now() + 5})
    await store.update("things", "a", uid(2), set={"n": 2}, unset=["expires"])
    clock.advance(1)
    assert [r.id for r in await store.scroll("things", "a", (), limit=9)] == [uid(2)]


@pytest.mark.category("expiry")
async def test_the_sweep_deletes_just_what_has_expired(
    store: VectorStore, clock: FixedClock
) -> None:
    base = clock.now()
    await store.put(
        "log", [entry(i, "a" if i % 2 else "b", seq=i, expires=base + i) for i in range(20)]
    )
    await store.put("log", [entry("stays", seq=99)])
    assert [r.payload["seq"] for r in await store.expired("log", limit=5)] == [0]
    assert await store.delete_expired("log", limit=9) == 1
    assert await store.expired("log", limit=5) == []
    clock.advance(0.000009)
    assert len(await store.expired("log", limit=5)) == 5
    assert len(await store.expired("log", limit=50)) == 9
    some: list[Condition] = [IdIn((uid(3), uid(15), uid("stays"))), Equals("seq", 3)]
    assert [r.payload["seq"] for r in await store.expired("log", limit=9, where=some)] == [3]
    assert await store.expired("log", limit=9, where=[IdIn((uid(15),))]) == []
    assert await store.delete_expired("log", limit=5) == 5
    assert await store.delete_expired("log", limit=5) == 4
    assert await store.delete_expired("log", limit=5) == 0
    clock.advance(-1)
    assert await store.count("log", None) == 11
    clock.advance(2)
    assert await store.delete_expired("log", limit=10) == 10
    assert await store.delete_expired("log", limit=10) == 0
    assert await store.count("log", None) == 1


@pytest.mark.category("delete")
async def test_delete_counts_expired_records_too(store: VectorStore, clock: FixedClock) -> None:
    await store.put("log", [entry(1, seq=1, expires=clock.now() + 1), entry(2, seq=1)])
    clock.advance(1)
    assert await store.delete("log", "a", [Equals("seq", 1)]) == 2


@pytest.mark.category("delete")
async def test_a_delete_stops_at_its_limit(store: VectorStore, clock: FixedClock) -> None:
    await store.put("log", [entry(n, seq=n % 2) for n in range(10)])
    await store.put("log", [entry("gone", seq=1, expires=clock.now() + 1)])
    await store.put("log", [entry("other", "b", seq=1)])
    clock.advance(1)
    assert await store.delete("log", "a", [Equals("seq", 1)], 4) == 4
    assert await store.delete("log", "a", [Equals("seq", 1)], 4) == 2
    assert await store.delete("log", "a", [Equals("seq", 1)], 4) == 0
    assert await store.delete("log", "a", (), 5) == 5
    assert await store.count("log", None) == 1


@pytest.mark.category("facet")
async def test_every_namespace_that_has_records_is_named(store: VectorStore) -> None:
    assert await store.namespaces("log") == set()
    await store.put("log", [entry(n, f"n{n % 30}", seq=n) for n in range(90)])
    await store.put("things", [thing("one", n=1)])
    everyone = {f"n{n}" for n in range(30)}
    assert await store.namespaces("log") == everyone
    assert await store.namespaces("things") == {"a"}
    await store.delete("log", "n3", ())
    assert everyone - {"n3"} <= await store.namespaces("log") <= everyone


# --- payloads and schema ----------------------------------------------------------------------


async def test_a_payload_comes_back_as_it_was_written(store: VectorStore) -> None:
    odd: dict[str, Any] = {
        "a.b": 1,
        "a": {"b": {"c": [1, [2, []], {}]}},
        "Ünïcode 鍵 🗝": "wert\n\t\u2028 🎉",
        "": "empty key",
        "[0]": [True, False, None],
        'quote"backslash\\': "x",
        "big": 2**53 + 1,
        "least": -(2**63),
        "float": 0.1 + 0.2,
        "whole": 3.0,
        "tiny": 5e-324,
    }
    await store.put("things", [Record(uid(1), "a", odd)])
    back = await payload_of(store, 1)
    assert back == odd
    assert isinstance(back["big"], int)
    assert isinstance(back["whole"], float)


async def test_keys_with_dots_are_top_level_keys(store: VectorStore) -> None:
    await store.put("things", [Record(uid(1), "a", {"a": {"b": 1}, "a.b": 2, "c d": 3})])
    [shown] = await store.scroll("things", "a", (), limit=1, payload=("a.b",))
    assert shown.payload == {"a.b": 2}
    await store.update("things", "a", uid(1), set={"a.c": 4}, unset=["a.b", "c d"])
    assert await payload_of(store, 1) == {"a": {"b": 1}, "a.c": 4}


async def test_what_was_handed_over_can_be_changed_without_harm(store: VectorStore) -> None:
    payload: dict[str, Any] = {"tags": ["x"], "nested": {"a": 1}}
    await store.put("log", [Record(uid(1), "a", payload)])
    payload["tags"].append("y")
    first = await payload_of(store, 1, "log")
    assert first == {"tags": ["x"], "nested": {"a": 1}}
    first["nested"]["a"] = 2
    assert (await payload_of(store, 1, "log"))["nested"] == {"a": 1}
    assert "namespace" not in payload


async def test_vectors_come_back_at_unit_length_and_only_when_asked_for(
    store: VectorStore, oracle: VectorStore
) -> None:
    made = await fill(store, oracle)
    ids = [r.id for r in made if r.namespace == "a"]
    got = await store.get("things", "a", ids, vectors=True)
    want = await oracle.get("things", "a", ids, vectors=True)
    assert got.keys() == want.keys() == set(ids)
    assert all(same_record(got[one], want[one]) for one in ids)
    assert all(not r.vectors for r in (await store.get("things", "a", ids)).values())


async def test_an_unknown_collection_is_named(store: VectorStore) -> None:
    for call in (
        store.count("nowhere", "a"),
        store.put("nowhere", [thing(1)]),
        store.set_vectors("nowhere", [thing(1)]),
        store.search("nowhere", "a", [SearchQuery("text", [0.0] * 8, 1)]),
        store.delete("nowhere", "a", ()),
    ):
        with pytest.raises(StoreUnavailableError, match="'nowhere'"):
            await call


@pytest.mark.parametrize(
    "vectors",
    [
        {"text": [1.0] * 7},
        {"other": [1.0] * 8},
        {"bm25": [1.0] * 8},
        {"text": SparseVector([1], [1.0])},
        {"bm25": SparseVector([1, 2], [1.0])},
        {"parts": MultiVector([[1.0] * 6, [1.0] * 5])},
        {"parts": MultiVector([])},
        {"text": MultiVector([[1.0] * 8])},
    ],
    ids=str,
)
async def test_a_vector_without_a_place_is_refused_and_nothing_written(
    store: VectorStore, vectors: Any
) -> None:
    wrong = Record(uid(2), "a", {}, vectors)
    with pytest.raises(ValueError, match="vector"):
        await store.put("things", [thing(1), wrong])
    with pytest.raises(ValueError, match="vector"):
        await store.insert("things", [thing(1), wrong])
    with pytest.raises(ValueError, match="vector"):
        await store.set_vectors("things", [wrong])
    [(name, vector)] = vectors.items()
    with pytest.raises(ValueError, match="vector"):
        await store.search("things", "a", [SearchQuery(name, vector, 1)])
    assert await store.count("things", None) == 0


@pytest.mark.category("grown_specs")
async def test_a_grown_spec_adds_vectors_and_indexes_and_keeps_the_records(
    store: VectorStore,
) -> None:
    await store.put("things", [thing(1, n=1, owner="me")])
    await store.put("log", [entry(1, seq=1)])
    grown = replace(
        THINGS,
        dense={**THINGS.dense, "image": 3},
        multi={**THINGS.multi, "pages": 2},
        sparse=(*THINGS.sparse, "names"),
        indexes={**THINGS.indexes, "owner": Index.KEYWORD},
    )
    await store.ensure_collections([grown, replace(LOG, dense={"text": 2})])
    assert await store.facet("things", "a", "owner") == {"me": 1}
    vectors: dict[str, Any] = {
        "image": [0.0, 0.0, 1.0],
        "names": sparse_vector(random.Random(1)),
        "pages": MultiVector([[0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]]),
    }
    await store.put("things", [Record(uid(2), "a", {"n": 2}, vectors)])
    await store.put("log", [Record(uid(2), "a", {}, {"text": [0.0, 1.0]})])
    [hits] = (await store.search("things", "a", [SearchQuery("image", [0.0, 0.0, 2.0], 9)])).hits
    assert list(hits) == [uid(2)]
    [hits] = (await store.search("things", "a", [SearchQuery("pages", [3.0, 0.0], 9)])).hits
    assert hits == {uid(2): pytest.approx(1.0)}
    [hits] = (await store.search("things", "a", [SearchQuery("text", [1.0] + [0.0] * 7, 9)])).hits
    assert list(hits) == [uid(1)]
    assert await store.count("log", "a") == 2


@pytest.mark.category("grown_specs")
async def test_a_vector_is_added_filled_and_dropped_while_the_collection_is_in_use(
    store: VectorStore,
) -> None:
    await store.put("things", [thing(i, n=i) for i in range(4)])
    await store.extend(CollectionSpec("things", dense={"image": 3}))
    await store.extend(CollectionSpec("things", dense={"image": 3}))
    lacking = [Not(HasVector("image"))]
    assert await store.count("things", None, lacking) == 4
    images = [Record(uid(i), "a", {}, {"image": [0.0, 1.0, float(i)]}) for i in (1, 2)]
    await store.set_vectors("things", images)
    assert {r.id for r in await store.scroll("things", None, lacking, limit=9)} == {uid(0), uid(3)}
    assert await store.count("things", "a", [HasVector("image"), Equals("n", 2)]) == 1
    assert await store.count("things", "b", [HasVector("image")]) == 0
    [hits] = (await store.search("things", "a", [SearchQuery("image", [0.0, 1.0, 2.0], 9)])).hits
    assert list(hits) == [uid(2), uid(1)]
    # What replaces a record replaces its vectors too, so that it lacks this one again.
    assert await store.replace("things", thing(1, n=9), [Equals("n", 1)])
    await store.put("things", [thing(2, n=2)])
    assert await store.count("things", None, lacking) == 4
    await store.set_vectors("things", images)
    assert await store.update("things", "a", uid(1), set={"n": 10})
    assert await store.count("things", None, lacking) == 2

    await store.drop_vectors("things", ["image", "never there"])
    there = await store.scroll("things", None, (), limit=9, vectors=True)
    assert {r.id: set(r.vectors) for r in there} == {uid(i): {"text"} for i in range(4)}
    with pytest.raises(ValueError, match="image"):
        await store.search("things", "a", [SearchQuery("image", [0.0, 1.0, 2.0], 9)])
    await store.extend(CollectionSpec("things", dense={"image": 2}))
    assert await store.count("things", None, lacking) == 4
    await store.set_vectors("things", [Record(uid(3), "a", {}, {"image": [1.0, 0.0]})])
    [hits] = (await store.search("things", "a", [SearchQuery("image", [1.0, 0.0], 9)])).hits
    assert list(hits) == [uid(3)]


# --- operation --------------------------------------------------------------------------------


async def test_info_counts_the_points_of_each_collection(store: VectorStore) -> None:
    await store.put("log", [entry(i) for i in range(3)])
    await store.check()
    await store.flush()
    info = await store.info()
    assert info.points == {"things": 0, "log": 3}
    assert info.writable


async def test_compaction_keeps_everything(store: VectorStore, oracle: VectorStore) -> None:
    await fill(store, oracle)
    await store.delete("things", "a", [Missing("tags")])
    await oracle.delete("things", "a", [Missing("tags")])
    await store.compact()
    want = await oracle.scroll("things", None, (), limit=ALL, vectors=True)
    assert_same_records(
        await store.scroll("things", None, (), limit=ALL, vectors=True), want, "all"
    )


async def test_a_closed_store_says_so(store: VectorStore) -> None:
    spec = CollectionSpec("late")
    await store.close()
    await store.close()
    with pytest.raises(StoreUnavailableError):
        await store.count("things", "a")
    with pytest.raises(StoreUnavailableError):
        await store.put("things", [thing(1)])
    with pytest.raises(StoreUnavailableError):
        await store.ensure_collections([spec])
