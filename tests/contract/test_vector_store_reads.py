"""What every store promises of conditions, searches, scrolls and counts."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from lot_grpc.ports import (
    AllOf,
    Equals,
    Fallback,
    IdIn,
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
from tests.contract.comparing import (
    assert_same_facet,
    assert_same_hits,
    assert_same_ordered,
    assert_same_records,
    close,
)
from tests.contract.generated import condition, query, uid, unit_free_vector
from tests.contract.records import ALL, fill, thing


def _axis(number: int) -> list[float]:
    return [float(place == number) for place in range(8)]


# --- conditions -------------------------------------------------------------------------------


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


# --- searching --------------------------------------------------------------------------------


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
@pytest.mark.parametrize("accepted", [True, False])
async def test_a_query_whose_best_hit_is_refused_has_the_hits_of_its_fallback(
    store: VectorStore, accepted: bool
) -> None:
    records = [
        Record(uid(n), "a", {"text": f"t{n}"}, {"bm25": SparseVector([n], [1.0]), "text": one})
        for n, one in enumerate([_axis(0), _axis(1)])
    ]
    await store.put("things", [*records, replace(records[1], id=uid(2), namespace="b")])
    seen: list[Record] = []

    def accepts(best: Record) -> bool:
        seen.append(best)
        return accepted

    def words(number: int, records: int = 1) -> SearchQuery:
        return SearchQuery("bm25", SparseVector([number], [1.0]), 5, records=records)

    dense = SearchQuery("text", _axis(0), 1)
    first = replace(words(0, records=0), fallback=Fallback(words(1), accepts))
    rescore = Rescore(["text"], _axis(1))
    got = await store.search("things", "a", [first, dense], rescore)
    expected = records[0 if accepted else 1]
    assert [list(found) for found in got.hits] == [[expected.id], [uid(0)]]
    assert [(one.id, one.payload) for one in seen] == [(uid(0), {"text": "t0"})]
    assert list(got.records) == ([] if accepted else [uid(1)])
    assert got.cosines[expected.id] == pytest.approx(0.0 if accepted else 1.0, abs=1e-6)

    seen.clear()  # without a hit the fallback counts, whatever it would accept
    missing = replace(words(7), fallback=Fallback(words(1), accepts))
    got = await store.search("things", "a", [missing])
    assert [list(found) for found in got.hits] == [[uid(1)]]
    assert got.records.keys() == {uid(1)}
    assert not seen


@pytest.mark.category("search")
async def test_a_fallback_is_checked_like_its_query(store: VectorStore) -> None:
    query = SearchQuery("text", _axis(0), 5)
    for wrong in (
        replace(query, vector=[1.0]),
        replace(query, fallback=Fallback(query, bool)),
    ):
        with pytest.raises(ValueError, match=r"dimensions|must not have a fallback"):
            await store.search("things", "a", [replace(query, fallback=Fallback(wrong, bool))])
    other = replace(query, where=[Equals("n", 2)])
    with pytest.raises(ValueError, match="same conditions"):
        await store.search(
            "things",
            "a",
            [replace(query, fallback=Fallback(other, bool))],
            Rescore(["text"], _axis(0)),
        )


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


# --- scroll, count, facet ---------------------------------------------------------------------


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
async def test_a_scroll_by_id_pages_through_everything_once(
    store: VectorStore, oracle: VectorStore
) -> None:
    await fill(store, oracle)
    for namespace in ("a", None):
        want = await oracle.scroll("things", namespace, (), limit=ALL)
        for limit in (1, 37, ALL):
            got: list[Record] = []
            while page := await store.scroll(
                "things", namespace, (), limit=limit, after=got[-1].id if got else ""
            ):
                got += page
            assert_same_records(got, want, (namespace, limit))
    gone = (await store.scroll("things", "a", (), limit=9))[8].id
    rest = await oracle.scroll("things", "a", (), limit=ALL, after=gone)
    await store.delete("things", "a", [IdIn((gone,))])
    assert_same_records(await store.scroll("things", "a", (), limit=ALL, after=gone), rest, gone)
    with pytest.raises(ValueError, match="continues by a condition"):
        await store.scroll("things", "a", (), limit=9, after=gone, order=Order("n"))


@pytest.mark.category("scroll")
async def test_a_scroll_without_order_is_by_id_and_shows_what_was_asked_for(
    store: VectorStore, oracle: VectorStore
) -> None:
    await fill(store, oracle)
    shown: list[dict[str, Any]] = [
        {"payload": False},
        {"payload": (), "vectors": True},
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
