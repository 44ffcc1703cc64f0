"""Conditions on keys that no record has yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from lot_grpc.ports import AnyOf, CollectionSpec, Equals, Index, Not, Range, Record, SearchQuery
from lot_grpc.storage.edge import EdgeStore
from tests.contract.clock import FixedClock

INDEXES = {"state": Index.KEYWORD, "until": Index.INTEGER}
SPEC = CollectionSpec("c", dense={"text": 2}, indexes=INDEXES)
A, B = "00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-00000000000b"
HIDES = [
    Not(AnyOf("state", ("held", "out"))),
    Not(Equals("state", "held")),
    Not(Range("until", gte=1)),
]


@pytest.mark.parametrize("hides", HIDES, ids=lambda one: type(one.condition).__name__)
async def test_a_condition_on_a_key_holds_from_the_first_record_that_has_it(
    tmp_path: Path, hides: Not
) -> None:
    async def found(store: EdgeStore) -> set[str]:
        query = SearchQuery("text", [1.0, 0.0], 9, [hides])
        [hits] = (await store.search("c", "ns", [query])).hits
        return set(hits)

    clock = FixedClock()
    store = EdgeStore(tmp_path / "data", clock, min_free_bytes=0)
    await store.ensure_collections([SPEC])
    await store.insert("c", [Record(A, "ns", {"n": 1}, {"text": [1.0, 0.0]})])
    await store.insert("c", [Record(B, "ns", {"n": 2}, {"text": [0.6, 0.8]})])
    assert await found(store) == {A, B}
    await store.update("c", "ns", B, set={"state": "held", "until": 2})
    assert await found(store) == {A}
    await store.close()
    store = EdgeStore(tmp_path / "data", clock, min_free_bytes=0)
    await store.ensure_collections([SPEC])
    assert await found(store) == {A}
    await store.update("c", "ns", B, set={}, unset=["state", "until"])
    assert await found(store) == {A, B}
    await store.close()
