"""What every store promises of writes."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import Any

import pytest

from lot_grpc.domain.errors import ContentionError
from lot_grpc.ports import (
    EXPIRES_KEY,
    AllOf,
    Equals,
    IdIn,
    Missing,
    Range,
    Record,
    SparseVector,
    Update,
    VectorStore,
)
from tests.contract.clock import FixedClock
from tests.contract.comparing import assert_same_hits, assert_same_records, same_record
from tests.contract.generated import condition, query, records, uid
from tests.contract.records import ALL, entry, fill, payload_of, thing


def terms(*numbers: int) -> SparseVector:
    return SparseVector(list(numbers), [1.5] * len(numbers))


# --- writing ----------------------------------------------------------------------------------


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
async def test_update_many_decides_for_each_record_by_itself(
    store: VectorStore, clock: FixedClock
) -> None:
    lapsed = Record(uid(5), "a", {"n": 1, EXPIRES_KEY: clock.now()}, {"text": [1.0] + [0.0] * 7})
    await store.put("things", [*(thing(number, n=number) for number in range(1, 5)), lapsed])
    updated = await store.update_many(
        "things",
        [
            Update("a", uid(1), {"n": 11, "kind": "fix"}, [Equals("n", 1)]),
            Update("a", uid(2), {"n": 12}, [Equals("n", 1)]),
            Update("b", uid(3), {"n": 13}),
            Update("a", uid(4), {"rate": 0.5}),
            Update("a", uid(5), {"n": 15}),
            Update("a", uid(6), {"n": 16}),
        ],
    )
    assert updated == {uid(1), uid(4)}
    found = await store.get("things", "a", [uid(number) for number in range(7)], vectors=True)
    assert {point: record.payload for point, record in found.items()} == {
        uid(1): {"n": 11, "kind": "fix"},
        uid(2): {"n": 2},
        uid(3): {"n": 3},
        uid(4): {"n": 4, "rate": 0.5},
    }
    assert all(set(record.vectors) == {"text"} for record in found.values())
    assert await store.count("things", "a", [Range("n", gte=11)]) == 1
    assert await store.update_many("things", []) == set()


@pytest.mark.category("update")
async def test_update_many_of_records_that_were_read_is_seen_by_the_next_read(
    store: VectorStore,
) -> None:
    for collection, made in (("things", thing), ("log", entry)):
        ids = [uid(name) for name in ("one", "two", "three")]
        await store.put(collection, [made(name, seq=1) for name in ("one", "two", "three")])
        for seq in (2, 3):
            await store.get(collection, "a", ids)
            alike = [Update("a", one, {"seq": seq}, [Equals("seq", seq - 1)]) for one in ids]
            assert await store.update_many(collection, alike) == set(ids)
            found = await store.get(collection, "a", ids)
            assert [found[one].payload["seq"] for one in ids] == [seq] * 3


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


# --- vectors ----------------------------------------------------------------------------------


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
