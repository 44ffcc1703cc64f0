from __future__ import annotations

import pytest

from lot_grpc.clock import SystemClock
from lot_grpc.evaluation.loading import load_dataset
from lot_grpc.evaluation.measuring import measure
from lot_grpc.evaluation.searcher import LEGS
from lot_grpc.evaluation.through_service import PatternSearcher
from lot_grpc.services.build import Services
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.runtime import open_runtime
from lot_grpc.services.store_metadata import open_store
from lot_grpc.testing.hashing import HashingEmbedder, OverlapReranker
from lot_grpc.testing.in_memory import InMemoryStore
from tests.evaluation.made import DOCUMENTS, write_set

# More than a batch, most of them alike.
MANY = [{"id": f"noise {n}", "text": f"Water plant number {n}."} for n in range(150)]


def silent(*_):
    pass


async def searcher_over(embedder, filter_field=""):
    store = InMemoryStore(SystemClock())
    await open_store(store, REGISTRY, embedder.contract)
    services = Services(open_runtime(store, REGISTRY, embedder, OverlapReranker(), SystemClock()))
    return services, PatternSearcher(services, filter_field)


async def test_documents_are_saved_under_ids_that_the_service_takes_and_found_under_their_own(
    tmp_path,
):
    dataset = load_dataset(write_set(tmp_path, documents=[*DOCUMENTS, *MANY]))
    services, searcher = await searcher_over(HashingEmbedder())
    await searcher.index(dataset.documents, silent)
    info = await services.admin.store_info()
    assert info.points["patterns"] == 154
    for document in dataset.documents[::40]:
        query = dataset.queries[0].__class__("q", document.text)
        found = await searcher.search(query, LEGS[0], 3, rerank=False)
        assert found.ids[0] == document.id
        assert len(found.ids) == 3


async def test_documents_with_the_same_text_stay_two(tmp_path):
    twins = [*DOCUMENTS, DOCUMENTS[1] | {"id": "twin"}]
    dataset = load_dataset(write_set(tmp_path, documents=twins))
    _, searcher = await searcher_over(HashingEmbedder())
    await searcher.index(dataset.documents, silent)
    query = dataset.queries[1].__class__("q", DOCUMENTS[1]["text"])
    found = await searcher.search(query, LEGS[0], 2, rerank=False)
    assert set(found.ids) == {"bicycle", "twin"}


async def test_blank_documents_are_not_saved_and_long_ones_are_counted(tmp_path):
    documents = [*DOCUMENTS, {"id": "blank", "text": " "}, {"id": "long", "text": "word " * 200}]
    dataset = load_dataset(write_set(tmp_path, documents=documents))
    services, searcher = await searcher_over(HashingEmbedder(max_words=20))
    indexed = await searcher.index(dataset.documents, silent)
    assert indexed.truncated == 1
    assert (await services.admin.store_info()).points["patterns"] == 5


@pytest.mark.parametrize("field", ["language", "shelf"])
async def test_a_filter_lets_through_only_documents_that_agree_with_the_query(tmp_path, field):
    documents = [
        {"id": f"{value} {n}", "text": f"Bake bread {n}", field: value}
        for value in ("one", "two")
        for n in range(20)
    ]
    queries = [{"id": v, "text": "Bake bread 3", field: v} for v in ("one", "two")]
    qrels = [(v, f"{v} 3", 1) for v in ("one", "two")]
    folder = write_set(tmp_path, documents=documents, queries=queries, qrels=qrels)
    dataset = load_dataset(folder, field)
    _, searcher = await searcher_over(HashingEmbedder(), field)
    found = await measure(dataset, searcher, LEGS, silent)
    for query in dataset.queries:
        got = await searcher.search(query, LEGS[0], 20, rerank=False)
        assert len(got.ids) == 20
        assert all(document.startswith(query.id) for document in got.ids)
        assert found.per_query[LEGS[0]][query.id]["hit@1"] == 1
