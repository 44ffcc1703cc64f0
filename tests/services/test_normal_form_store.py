"""Texts are compared in one Unicode form, and come back as they were sent."""

from __future__ import annotations

from lot_grpc.ports import Equals, Fallback, Record, SearchQuery, SparseVector
from lot_grpc.services.normal_form_store import NormalFormStore
from lot_grpc.services.records.collections import PATTERNS, SPARSE_VECTOR
from lot_grpc.services.resources import REGISTRY
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.contract.generated import uid

DECOMPOSED, COMPOSED = "cafe\u0301", "caf\u00e9"


async def test_a_fallback_meets_conditions_in_any_form_and_sees_records_as_sent() -> None:
    store = NormalFormStore(InMemoryStore(FixedClock()), REGISTRY)
    await store.ensure_collections(REGISTRY.collection_specs(8))
    words = [SparseVector([number], [1.0]) for number in range(2)]
    records = [
        Record(uid(number), "a", {"category": DECOMPOSED}, {SPARSE_VECTOR: one})
        for number, one in enumerate(words)
    ]
    await store.put(PATTERNS, records)
    seen: list[object] = []

    def accepts(best: Record) -> bool:
        seen.append(best.payload["category"])
        return False

    first, second = (
        SearchQuery(SPARSE_VECTOR, one, 5, [Equals("category", form)], records=1)
        for one, form in zip(words, (COMPOSED, DECOMPOSED), strict=True)
    )
    query = SearchQuery(
        first.using, first.vector, first.limit, first.where, fallback=Fallback(second, accepts)
    )
    found = await store.search(PATTERNS, "a", [query])
    assert seen == [DECOMPOSED]
    assert [list(hits) for hits in found.hits] == [[uid(1)]]
    assert found.records[uid(1)].payload["category"] == DECOMPOSED
