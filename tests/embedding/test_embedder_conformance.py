"""What every embedder owes its callers."""

from __future__ import annotations

import asyncio
import math

import pytest

from lot_grpc.ports import Embedder
from lot_grpc.testing.hashing import HashingEmbedder

TEXTS = [
    "Retry the request with exponential backoff",
    "def parse(path: str) -> Config: return Config.load(path)",
    "ECONNREFUSED 127.0.0.1:6334 while opening the store",
    "数据库连接超时 请重试",
    "x",
    "",
    "Retry the request with exponential backoff and jitter, at most five times. " * 20,
]


@pytest.fixture(params=["hashing", "openai", pytest.param("fastembed", marks=pytest.mark.model)])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    if request.param == "hashing":
        return HashingEmbedder()
    made: Embedder = request.getfixturevalue(f"{request.param}_embedder")
    return made


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


async def test_vectors_are_unit_and_as_long_as_the_contract_says(embedder: Embedder):
    made = [*await embedder.embed_documents(TEXTS), await embedder.embed_query(TEXTS[0])]
    for embedding in made:
        assert len(embedding.vector) == embedder.contract.dimensions
        assert math.isclose(math.hypot(*embedding.vector), 1.0, abs_tol=1e-5)
        assert all(type(value) is float for value in embedding.vector)


async def test_documents_come_back_in_order_whatever_their_length(embedder: Embedder):
    together = await embedder.embed_documents(TEXTS)
    alone = [(await embedder.embed_documents([text]))[0] for text in TEXTS]
    assert together == alone


async def test_no_documents_give_no_vectors(embedder: Embedder):
    assert await embedder.embed_documents([]) == []


async def test_overlapping_texts_are_nearer_than_others(embedder: Embedder):
    near, far = await embedder.embed_documents(
        ["retry the request with a backoff", "the cat sleeps on a warm windowsill"]
    )
    asked = await embedder.embed_query("retry request with exponential backoff")
    assert cosine(asked.vector, near.vector) > cosine(asked.vector, far.vector) + 0.1


async def test_a_query_differs_from_a_document_just_where_there_is_a_prefix(embedder: Embedder):
    [document] = await embedder.embed_documents([TEXTS[0]])
    query = await embedder.embed_query(TEXTS[0])
    assert (query.vector != document.vector) == bool(embedder.contract.query_prefix)


async def test_a_text_that_is_too_long_says_so_and_others_do_not(embedder: Embedder):
    short, long, cut = await embedder.embed_documents(
        ["word " * 100, "word " * 1000, "word " * 9000]
    )
    assert not short.truncated
    assert not long.truncated, "it is read in windows"
    assert cut.truncated
    assert (await embedder.embed_query("word " * 9000)).truncated


async def test_the_caller_owns_the_vector(embedder: Embedder):
    first = await embedder.embed_query("the same text")
    kept = list(first.vector)
    first.vector[0] = 9.0
    assert (await embedder.embed_query("the same text")).vector == kept


async def test_many_at_once_give_what_each_gives_alone(embedder: Embedder):
    texts = [f"{text} {number}" for number in range(6) for text in TEXTS[:4]]
    alone = [await embedder.embed_query(text) for text in texts]
    assert await asyncio.gather(*map(embedder.embed_query, texts)) == alone


async def test_close_may_be_called_twice(embedder: Embedder):
    await embedder.close()
    await embedder.close()


async def test_it_says_how_much_of_a_text_it_reads(embedder):
    assert embedder.max_tokens == 512
