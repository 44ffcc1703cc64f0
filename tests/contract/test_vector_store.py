"""What every store promises (``lot_grpc.ports.VectorStore``), each held to the reference."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import Any

import pytest

from lot_grpc.domain.errors import ContentionError, StoreUnavailableError
from lot_grpc.ports import (
    AllOf,
    CollectionSpec,
    Equals,
    HasVector,
    IdIn,
    Index,
    Missing,
    MultiVector,
    Not,
    OneOf,
    Order,
    Range,
    Record,
    Rescore,
    SearchQuery,
    SparseVector,
    Vector,
    VectorStore,
)
from tests.contract.clock import FixedClock
from tests.contract.comparing import (
    assert_same_facet,
    assert_same_hits,
    assert_same_ordered,
    assert_same_records,
    close,
    same_record,
)
from tests.contract.generated import (
    LOG,
    THINGS,
    condition,
    query,
    records,
    sparse_vector,
    uid,
    unit_free_vector,
)

ALL = 10_000


def thing(name: object, namespace: str = "a", **payload: Any) -> Record:
    return Record(uid(name), namespace, payload, {"text": [1.0] + [0.0] * 7})


def entry(name: object, namespace: str = "a", **payload: Any) -> Record:
    return Record(uid(name), namespace, payload)


def terms(*numbers: int) -> SparseVector:
    return SparseVector(list(numbers), [1.5] * len(numbers))


async def fill(*stores: VectorStore, seed: int = 1) -> list[Record]:
    made = records(seed)
    for store in stores:
        await store.put("things", made)
    return made


async def payload_of(store: VectorStore, name: object, collection: str = "things") -> Any:
    found = await store.get(collection, "a", [uid(name)])
    return found[uid(name)].payload if found else None


# --- conditions -----------------------------------------------------------------------------


@pytest.mark.category("conditions")
async def test_random_filters_choose_what_the_reference_chooses(
    store: VectorStore, oracle: VectorStore
) -> None:
    await fill(store, oracle)
    rng = random.Random(20)
    chosen = 0
    for _ in range(200):
        where = [condition(rng) for _ in range(rng.randint(1, 3))]
        namespace = rng.choice(["a", "b", None])
        want = await oracle.scroll("things", namespace, where, limit=ALL)
        got = await store.scroll("things", namespace, where, limit=ALL)
        assert_same_records(got, want, (namespace, where))
        assert await store.count("things", namespace, where) == len(want), (namespace, where)
        chosen += 0 < len(want) < 240
    assert chosen > 60, "the filters must be of the kind that chooses"


MEANINGS: list[tuple[Any, list[str]]] = [
    (Equals("kind", "1"), ["string"]),
    (Equals("n", 1), ["integer", "array"]),
    (Equals("done", True), ["true"]),
    (Equals("done", False), ["false"]),
    (Range("n", gte=0.5, lt=1.5), ["integer", "array"]),
    (Range("n", gt=1), ["array"]),
    (Range("n", gte=2, lte=8), []),  # no one element of [1, 9] is within
    (Missing("n"), ["string", "true", "false", "null", "empty", "nothing"]),
    (Missing("done"), ["string", "integer", "array", "null", "empty", "nothing"]),
    (Not(Equals("n", 1)), ["string", "true", "false", "null", "empty", "nothing"]),
    (Not(Not(Equals("n", 1))), ["integer", "array"]),
    (OneOf(()), []),
    (
        AllOf(()),
        ["string", "integer", "array", "true", "false", "null", "empty", "nothing"],
    ),
    (Not(AllOf(())), []),
    (IdIn(()), []),
    (
        AllOf((OneOf((Equals("done", True), Equals("n", 1))), Not(Missing("n")))),
        ["integer", "array"],
    ),
]


@pytest.mark.category("conditions")
async def test_a_condition_means_what_the_port_says(store: VectorStore) -> None:
    payloads: dict[str, dict[str, Any]] = {
        "string": {"kind": "1"},
        "integer": {"n": 1},
        "array": {"n": [1, 9]},
        "true": {"done": True},
        "false": {"done": False},
        "null": {"n": None, "done": None},
        "empty": {"n": [], "done": []},
        "nothing": {},
    }
    names = {uid(name): name for name in payloads}
    await store.put("things", [thing(name, **payload) for name, payload in payloads.items()])
    for where, expected in MEANINGS:
        found = await store.scroll("things", "a", [where], limit=ALL)
        assert {names[r.id] for r in found} == set(expected), where


# --- searching ------------------------------------------------------------------------------


@pytest.mark.category("search")
async def test_random_searches_find_what_the_reference_finds(
    store: VectorStore, oracle: VectorStore
) -> None:
    await fill(store, oracle)
    rng = random.Random(30)
    found = 0
    for _ in range(60):
        legs = [query(rng) for _ in range(rng.randint(1, 3))]
        namespace = rng.choice(["a", "b"])
        got = (await store.search("things", namespace, legs)).hits
        want = (await oracle.search("things", namespace, legs)).hits
        uncut = (
            await oracle.search("things", namespace, [replace(q, limit=ALL) for q in legs])
        ).hits
        for leg, one, other, everything in zip(legs, got, want, uncut, strict=True):
            assert_same_hits(one, other, everything, (namespace, leg))
            found += len(one)
    assert found > 300


@pytest.mark.category("search")
async def test_random_searches_rescore_and_read_what_the_reference_does(
    store: VectorStore, oracle: VectorStore
) -> None:
    filled = await fill(store, oracle)
    rng = random.Random(31)
    scored = read = 0
    for _ in range(60):
        where = query(rng).where
        legs = [
            replace(query(rng), where=where, records=rng.choice([0, 1, 3, 1000]))
            for _ in range(rng.randint(1, 3))
        ]
        using = rng.choice(["text", "code"])
        rescore = Rescore([using], unit_free_vector(rng, {"text": 8, "code": 4}[using]))
        if rng.random() < 0.5:  # a leg that scores by the same vector
            legs.append(SearchQuery(using, rescore.vector, rng.choice([5, 500]), where))
        if rng.random() < 0.5:
            matching = await oracle.scroll("things", "a", where, limit=ALL)
            rescore = replace(rescore, ids=[one.id for one in matching[:7]])
        got = await store.search("things", "a", legs, rescore)
        # Which of equal scores come is free, so the reference rescores what this store found.
        every = {*rescore.ids, *(point for found in got.hits for point in found)}
        want = await oracle.search("things", "a", [], replace(rescore, ids=list(every)))
        assert got.cosines.keys() == want.cosines.keys()
        assert all(close(got.cosines[point], cosine) for point, cosine in want.cosines.items())
        asked = {
            point
            for leg, found in zip(legs, got.hits, strict=True)
            for point in list(found)[: leg.records]
        }
        assert got.records.keys() == asked
        by_id = {one.id: one for one in filled}
        for point, record in got.records.items():
            assert record.namespace == "a"
            assert record.payload == by_id[point].payload
        scored += len(got.cosines)
        read += len(got.records)
    assert scored > 300
    assert read > 100


@pytest.mark.category("search")
async def test_a_rescored_hit_counts_by_its_best_vector(store: VectorStore) -> None:
    words = SparseVector([1], [1.0])
    both: dict[str, Vector] = {
        "text": [0.0, 1.0, *[0.0] * 6],
        "code": [1.0, 0.0, 0.0, 0.0],
        "bm25": words,
    }
    await store.put(
        "things",
        [
            Record(uid("both"), "a", {}, both),
            Record(uid("words"), "a", {}, {"bm25": words}),
            Record(uid("elsewhere"), "b", {}, both),
        ],
    )
    leg = SearchQuery("bm25", words, 9, records=1)
    found = await store.search("things", "a", [leg], Rescore(["code"], [2.0, 0.0, 0.0, 0.0]))
    assert found.hits[0].keys() == {uid("both"), uid("words")}
    assert found.cosines == {uid("both"): pytest.approx(1.0)}
    assert len(found.records) == 1
    named = Rescore(["text"], [0.0, 1.0, *[0.0] * 6], [uid("both"), uid("elsewhere"), uid("none")])
    found = await store.search("things", "a", [], named)
    assert found.cosines == {uid("both"): pytest.approx(1.0)}
    other = replace(leg, where=[Equals("n", 2)])
    with pytest.raises(ValueError, match="same conditions"):
        await store.search("things", "a", [leg, other], named)
    with pytest.raises(ValueError, match="dimensions"):
        await store.search("things", "a", [leg], Rescore(["code"], [1.0]))


@pytest.mark.category("sparse")
async def test_a_sparse_leg_finds_only_records_that_share_a_term(store: VectorStore) -> None:
    await store.put(
        "things",
        [
            Record(uid("shares"), "a", {}, {"bm25": SparseVector([1, 2], [1.0, 1.0])}),
            Record(uid("other"), "a", {}, {"bm25": SparseVector([3], [1.0])}),
            thing("dense only"),
        ],
    )
    asked = SearchQuery("bm25", SparseVector([2, 9], [1.0, 1.0]), 10)
    empty = SearchQuery("bm25", SparseVector([], []), 10)
    found, nothing = (await store.search("things", "a", [asked, empty])).hits
    assert list(found) == [uid("shares")]
    assert nothing == {}


@pytest.mark.category("search")
async def test_hits_come_best_first_with_cosine_whatever_the_length_of_the_vectors(
    store: VectorStore,
) -> None:
    for name, x, y in (("near", 3.0, 0.1), ("far", 0.0, 5.0), ("middle", 2.0, 2.0)):
        vector = [x, y] + [0.0] * 6
        await store.put("things", [Record(uid(name), "a", {}, {"text": vector})])
    [hits] = (await store.search("things", "a", [SearchQuery("text", [9.0] + [0.0] * 7, 3)])).hits
    assert list(hits) == [uid("near"), uid("middle"), uid("far")]
    assert hits[uid("middle")] == pytest.approx(0.5**0.5, rel=1e-4)


@pytest.mark.category("search")
async def test_a_record_counts_by_the_nearest_of_its_vectors(store: VectorStore) -> None:
    east, north, west = [1.0, *[0.0] * 5], [0.0, 1.0, *[0.0] * 4], [-1.0, *[0.0] * 5]
    await store.insert(
        "things",
        [
            Record(uid("both"), "a", {"n": 1}, {"parts": MultiVector([north, west, east])}),
            Record(uid("one"), "a", {"n": 2}, {"parts": MultiVector([[1.0, 1.0, *[0.0] * 4]])}),
            Record(uid("none"), "a", {"n": 3}, {"text": [1.0] * 8}),
        ],
    )
    asked = SearchQuery("parts", [2.0, *[0.0] * 5], 9)
    [hits] = (await store.search("things", "a", [asked])).hits
    assert list(hits) == [uid("both"), uid("one")]
    assert list(hits.values()) == pytest.approx([1.0, 0.5**0.5], abs=1e-4)
    [narrowed] = (await store.search("things", "a", [replace(asked, where=[Equals("n", 2)])])).hits
    assert list(narrowed) == [uid("one")]
    fewer = Record(uid("both"), "a", {}, {"parts": MultiVector([west])})
    await store.set_vectors("things", [fewer])
    [hits] = (await store.search("things", "a", [asked])).hits
    assert hits[uid("both")] == pytest.approx(-1.0)
    there = await store.get("things", "a", [uid("both")])
    assert await store.replace("things", replace(there[uid("both")], vectors={}), when=[])
    [hits] = (await store.search("things", "a", [asked])).hits
    assert list(hits) == [uid("one")]


# --- scroll, count, facet -------------------------------------------------------------------


@pytest.mark.parametrize("order", [Order("sort_key"), Order("sort_key", descending=True)])
@pytest.mark.category("order")
async def test_an_ordered_scroll_pages_through_everything_once(
    store: VectorStore, oracle: VectorStore, order: Order
) -> None:
    await fill(store, oracle)
    want = await oracle.scroll("things", "a", (), limit=ALL, order=order)
    got: list[Record] = []
    where: list[Any] = []
    while page := await store.scroll("things", "a", where, limit=37, order=order):
        got += page
        last = page[-1].payload["sort_key"]
        where = [Range("sort_key", lt=last) if order.descending else Range("sort_key", gt=last)]
    assert_same_records(got, want, order)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.category("order")
async def test_an_ordered_scroll_leaves_out_records_without_the_key(
    store: VectorStore, oracle: VectorStore, descending: bool
) -> None:
    await fill(store, oracle)
    order = Order("n", descending)
    everything = await oracle.scroll("things", None, (), limit=ALL, order=order)
    assert 0 < len(everything) < 240
    for limit in (1, 50, ALL):
        got = await store.scroll("things", None, (), limit=limit, order=order)
        assert_same_ordered(got, everything[:limit], everything, order)


@pytest.mark.category("scroll")
async def test_a_scroll_without_order_is_by_id_and_shows_what_was_asked_for(
    store: VectorStore, oracle: VectorStore
) -> None:
    await fill(store, oracle)
    shown: list[dict[str, Any]] = [
        {"payload": False},
        {"payload": ("kind", "tags"), "vectors": True},
        {"payload": True, "vectors": True},
    ]
    for asked in shown:
        for namespace in ("b", None):
            want = await oracle.scroll("things", namespace, (), limit=50, **asked)
            got = await store.scroll("things", namespace, (), limit=50, **asked)
            assert_same_records(got, want, asked)


@pytest.mark.category("facet")
async def test_facets_count_each_value_once_a_record(
    store: VectorStore, oracle: VectorStore
) -> None:
    await fill(store, oracle)
    rng = random.Random(40)
    for key in ("kind", "tags", "n", "sizes", "done"):
        for _ in range(5):
            where = [condition(rng)]
            everything = await oracle.facet("things", "a", key, where)
            for limit in (2, 100):
                want = await oracle.facet("things", "a", key, where, limit)
                got = await store.facet("things", "a", key, where, limit)
                assert_same_facet(got, want, everything)
    namespaces = await store.facet("things", None, "namespace")
    assert namespaces == await oracle.facet("things", None, "namespace")
    assert set(namespaces) == {"a", "b"}
    bools = await store.facet("things", None, "done")
    assert {type(value) for value in bools} == {bool}


# --- writing --------------------------------------------------------------------------------


@pytest.mark.category("insert")
async def test_an_insert_takes_free_ids_and_leaves_the_others_alone(store: VectorStore) -> None:
    assert await store.insert("things", [thing(1, n=1)]) == {uid(1)}
    inserted = await store.insert("things", [thing(1, n=2), thing(2, n=2), thing(3, n=2)])
    assert inserted == {uid(2), uid(3)}
    assert await payload_of(store, 1) == {"n": 1}
    assert await payload_of(store, 2) == {"n": 2}
    assert await store.insert("things", []) == set()


@pytest.mark.category("insert")
async def test_of_one_id_twice_in_an_insert_the_first_stands(store: VectorStore) -> None:
    assert await store.insert("log", [entry(1, seq=1), entry(1, seq=2)]) == {uid(1)}
    assert await payload_of(store, 1, "log") == {"seq": 1}


@pytest.mark.category("insert")
async def test_an_insert_into_another_namespace_does_not_get_a_taken_id(store: VectorStore) -> None:
    await store.insert("log", [entry(1, "a", seq=1)])
    assert await store.insert("log", [entry(1, "b", seq=2)]) == set()
    assert await store.get("log", "b", [uid(1)]) == {}


@pytest.mark.category("insert")
async def test_of_many_inserts_of_one_id_just_one_wins(store: VectorStore) -> None:
    calls = [store.insert("log", [entry("one", seq=i), entry(i, seq=i)]) for i in range(50)]
    results = await asyncio.gather(*calls)
    winners = [i for i, inserted in enumerate(results) if uid("one") in inserted]
    assert len(winners) == 1
    assert await payload_of(store, "one", "log") == {"seq": winners[0]}
    assert all(uid(i) in inserted for i, inserted in enumerate(results))


async def test_put_writes_over_whole_records(store: VectorStore) -> None:
    await store.put("things", [thing(1, n=1, kind="fix")])
    await store.put("things", [Record(uid(1), "a", {"n": 2}, {"code": [0.0, 1.0, 0.0, 0.0]})])
    [found] = (await store.get("things", "a", [uid(1)], vectors=True)).values()
    assert found.payload == {"n": 2}
    assert set(found.vectors) == {"code"}


@pytest.mark.category("replace")
async def test_replace_writes_payload_and_vectors_of_what_is_there_and_meets_the_condition(
    store: VectorStore,
) -> None:
    new = Record(uid(1), "a", {"n": 2}, {"code": [0.0, 1.0, 0.0, 0.0]})
    assert not await store.replace("things", new, ())
    assert await store.count("things", None) == 0
    await store.put("things", [thing(1, n=1, kind="fix")])
    assert not await store.replace("things", new, [Equals("n", 7)])
    assert not await store.replace("things", replace(new, namespace="b"), ())
    assert await payload_of(store, 1) == {"n": 1, "kind": "fix"}
    assert await store.replace("things", new, [Equals("n", 1), Equals("kind", "fix")])
    [found] = (await store.get("things", "a", [uid(1)], vectors=True)).values()
    assert same_record(found, new)


@pytest.mark.category("update")
async def test_update_sets_and_removes_just_the_named_keys(store: VectorStore) -> None:
    await store.put(
        "things", [thing(1, n=1, kind="fix", tags=["x"], nested={"a": [1, {"b": None}]})]
    )
    changed = await store.update(
        "things", "a", uid(1), set={"n": 2, "rate": 0.5}, unset=["kind", "no"]
    )
    assert changed
    [found] = (await store.get("things", "a", [uid(1)], vectors=True)).values()
    assert found.payload == {"n": 2, "rate": 0.5, "tags": ["x"], "nested": {"a": [1, {"b": None}]}}
    assert set(found.vectors) == {"text"}
    assert await store.count("things", "a", [Missing("kind"), Range("rate", gte=0.5)]) == 1


@pytest.mark.category("update")
async def test_update_replaces_a_nested_value_whole(store: VectorStore) -> None:
    await store.put("things", [thing(1, nested={"a": 1, "b": 2})])
    await store.update("things", "a", uid(1), set={"nested": {"c": 3}})
    assert await payload_of(store, 1) == {"nested": {"c": 3}}


@pytest.mark.category("update")
async def test_update_changes_nothing_unless_the_record_is_there_and_meets_the_condition(
    store: VectorStore,
) -> None:
    assert not await store.update("things", "a", uid(1), set={"n": 2})
    await store.put("things", [thing(1, n=1)])
    assert not await store.update("things", "a", uid(1), set={"n": 2}, when=[Equals("n", 0)])
    assert not await store.update("things", "b", uid(1), set={"n": 2})
    assert not await store.update(
        "things", "a", uid(1), set={"n": 2}, unset=["n"], when=[Missing("n")]
    )
    assert await payload_of(store, 1) == {"n": 1}
    assert await store.count("things", None) == 1


@pytest.mark.category("update")
async def test_concurrent_compare_and_set_loses_no_increment(store: VectorStore) -> None:
    await store.put("log", [entry("counter", seq=0)])
    lost = 0

    async def increment() -> None:
        nonlocal lost
        while True:
            seen = (await payload_of(store, "counter", "log"))["seq"]
            await asyncio.sleep(0)
            try:
                if await store.update(
                    "log", "a", uid("counter"), set={"seq": seen + 1}, when=[Equals("seq", seen)]
                ):
                    return
            except ContentionError:
                pass
            lost += 1

    await asyncio.gather(*(increment() for _ in range(50)))
    assert await payload_of(store, "counter", "log") == {"seq": 50}
    assert lost > 0, "the increments must have met"


@pytest.mark.category("update")
async def test_concurrent_updates_of_other_keys_all_take_place(store: VectorStore) -> None:
    await store.put("log", [entry("shared", seq=0)])
    updates = [store.update("log", "a", uid("shared"), set={f"key{i}": i}) for i in range(10)]
    assert all(await asyncio.gather(*updates))
    assert await payload_of(store, "shared", "log") == {"seq": 0} | {
        f"key{i}": i for i in range(10)
    }


@pytest.mark.category("update")
async def test_random_conditions_decide_a_compare_and_set_as_they_decide_a_search(
    store: VectorStore, oracle: VectorStore
) -> None:
    made = await fill(store, oracle)
    rng = random.Random(50)
    outcomes = set()
    for i in range(120):
        one = rng.choice(made)
        when = [condition(rng)]
        for asked in (store, oracle):
            done = await asked.update("things", one.namespace, one.id, set={"step": i}, when=when)
            outcomes.add((i, done))
        assert len([o for o in outcomes if o[0] == i]) == 1, when
    assert {done for _, done in outcomes} == {True, False}


@pytest.mark.category("delete")
async def test_delete_says_how_many_it_deleted(store: VectorStore, oracle: VectorStore) -> None:
    await fill(store, oracle)
    rng = random.Random(60)
    for _ in range(12):
        where = [
            AllOf(
                (condition(rng), Range("sort_key", gte=1_700_000_000_000_000 + rng.randint(0, 900)))
            )
        ]
        namespace = rng.choice(["a", "b", None])
        want = await oracle.delete("things", namespace, where)
        assert await store.delete("things", namespace, where) == want, (namespace, where)
    assert_same_records(
        await store.scroll("things", None, (), limit=ALL),
        await oracle.scroll("things", None, (), limit=ALL),
        "what is left",
    )
    gone = await oracle.count("things", "a")
    assert 0 < gone < 160
    assert await store.delete("things", "a", ()) == gone
    assert await store.count("things", "a") == 0
    assert await store.count("things", "b") == await oracle.count("things", "b")


@pytest.mark.category("delete")
async def test_a_delete_of_thousands_is_whole(store: VectorStore) -> None:
    await store.put("log", [entry(i, seq=i) for i in range(2500)])
    assert await store.delete("log", "a", [Range("seq", gte=100)]) == 2400
    assert await store.count("log", "a") == 100


@pytest.mark.category("delete")
async def test_a_delete_of_everything_everywhere_is_refused(store: VectorStore) -> None:
    with pytest.raises(ValueError, match="condition"):
        await store.delete("things", None, ())


# --- vectors ---------------------------------------------------------------------------------

CODE = [0.0, 1.0, 0.0, 0.0]


@pytest.mark.category("vectors")
async def test_set_vectors_sets_just_those_named(store: VectorStore) -> None:
    payload: dict[str, Any] = {
        "n": 1,
        "kind": "fix",
        "tags": ["x"],
        "nested": {"a": [1, {"b": None}]},
    }
    await store.put("things", [thing(1, **payload), thing(2, n=2)])
    given = Record(uid(1), "a", {"n": 9, "other": 1}, {"code": CODE, "bm25": terms(3, 9)})
    await store.set_vectors("things", [given, Record(uid(2), "a", {})])
    found = await store.get("things", "a", [uid(1), uid(2)], vectors=True)
    want = replace(thing(1, **payload), vectors={**thing(1).vectors, **given.vectors})
    assert same_record(found[uid(1)], want)
    assert same_record(found[uid(2)], thing(2, n=2))
    await store.set_vectors("things", [replace(given, vectors={"bm25": terms(9)})])
    [found_again] = (await store.get("things", "a", [uid(1)], vectors=True)).values()
    assert same_record(found_again, replace(want, vectors={**want.vectors, "bm25": terms(9)}))
    assert await payload_of(store, 1) == payload, "a record read before is as it was"


@pytest.mark.category("vectors")
async def test_set_vectors_makes_nothing_and_leaves_other_namespaces_alone(
    store: VectorStore, clock: FixedClock
) -> None:
    await store.put(
        "things", [thing(1), thing(2, "b"), thing(3, expires=clock.now() + 1), thing(4)]
    )
    clock.advance(1)
    given = [Record(uid(name), "a", {}, {"code": CODE}) for name in (5, 1, 2, 3, 6, 4)]
    await store.set_vectors("things", given)
    await store.set_vectors("things", given[-2:-1])
    await store.set_vectors("things", [])
    clock.advance(-1)
    there = await store.scroll("things", None, (), limit=9, vectors=True)
    assert {r.id: set(r.vectors) for r in there} == {
        uid(1): {"text", "code"},
        uid(2): {"text"},
        uid(3): {"text"},
        uid(4): {"text", "code"},
    }


@pytest.mark.category("vectors")
async def test_what_got_its_vectors_later_is_found_and_weighed_like_the_rest(
    store: VectorStore, oracle: VectorStore
) -> None:
    """Inverse document frequencies too: the reference was given all vectors at once."""
    made = records(seed=4, count=600)
    late = [
        replace(r, vectors={name: v for name, v in r.vectors.items() if name != "text"})
        for r in made
    ]
    early = [
        replace(r, vectors={name: v for name, v in r.vectors.items() if name == "text"})
        for r in made
    ]
    await store.put("things", early)
    bare = [query(random.Random(seed)) for seed in range(40)]
    for found in (await store.search("things", "a", [q for q in bare if q.using == "bm25"])).hits:
        assert found == {}
    await store.set_vectors("things", late)
    await oracle.put("things", made)
    legs = [replace(q, limit=500) for q in bare]
    got = (await store.search("things", "a", legs)).hits
    want = (await oracle.search("things", "a", legs)).hits
    assert sum(map(len, want)) > 500
    for hits, expected in zip(got, want, strict=True):
        assert_same_hits(hits, expected, expected, "late")
    everything = await oracle.scroll("things", None, (), limit=ALL, vectors=True)
    assert_same_records(
        await store.scroll("things", None, (), limit=ALL, vectors=True), everything, "late"
    )


@pytest.mark.category("vectors")
async def test_vectors_are_set_while_records_go_away(store: VectorStore) -> None:
    made = [thing(i) for i in range(60)]
    await store.put("things", made)
    given = [Record(r.id, "a", {}, {"code": CODE}) for r in made]
    await asyncio.gather(
        store.set_vectors("things", given),
        *(store.delete("things", "a", [IdIn((uid(i),))]) for i in range(0, 60, 3)),
    )
    there = await store.scroll("things", None, (), limit=99, vectors=True)
    assert {r.id for r in there} == {uid(i) for i in range(60) if i % 3}
    assert all("code" in r.vectors for r in there)


# --- namespaces -----------------------------------------------------------------------------


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


# --- expiry ---------------------------------------------------------------------------------


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


# --- payloads and schema --------------------------------------------------------------------


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


# --- operation ------------------------------------------------------------------------------


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
