"""Embedding by an endpoint: what is sent, shared and split."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

import pytest

from lot_grpc.domain.errors import EmbeddingFailedError
from lot_grpc.embedding.windows import MOST_WINDOWS
from tests.embedding.openai_helpers import expected, same, until, vectors
from tests.embedding.openai_server import KEY, NATIVE, EmbeddingRequest, Reply

# --- asking -----------------------------------------------------------------------------------


async def test_the_contract_names_provider_model_and_what_the_start_learned(opened, server):
    embedder = await opened(query_prefix="query: ", max_tokens=512)
    contract = embedder.contract
    assert (contract.model, contract.dimensions) == ("openai:some-model", NATIVE)
    assert (contract.distance, contract.query_prefix) == ("cosine", "query: ")
    assert contract.model_sha256 == contract.vocabulary_sha256 == contract.tokenizer == ""
    assert embedder.max_tokens == 512


async def test_vectors_are_put_in_order_by_their_index_and_made_unit(opened, server):
    embedder = await opened()
    server.always = lambda _: Reply(edit=lambda right: right | {"data": right["data"][::-1]})
    texts = [f"text number {number}" for number in range(10)]
    made = await vectors(embedder, texts)
    assert same(made, await expected(texts))
    assert all(math.isclose(math.hypot(*vector), 1.0, abs_tol=1e-5) for vector in made)


async def test_rows_without_an_index_are_taken_as_they_come(opened, server):
    embedder = await opened()
    server.always = lambda _: Reply(
        edit=lambda right: {"data": [{"embedding": row["embedding"]} for row in right["data"]]}
    )
    texts = ["one", "two", "three"]
    assert same(await vectors(embedder, texts), await expected(texts))


async def test_documents_go_in_batches_of_no_more_than_asked_and_come_back_in_order(opened, server):
    embedder = await opened(batch_size=4, max_concurrent_requests=3)
    texts = [f"text number {number}" for number in range(30)]
    made = await vectors(embedder, texts)
    assert same(made, await expected(texts))
    assert sorted(text for request in server.texts for text in request) == sorted(texts)
    assert max(len(request) for request in server.texts) == 4
    assert len(server.texts) == 8  # Windows of 12, 12 and 6 texts.


async def test_a_request_holds_a_bounded_number_of_bytes(opened, server):
    embedder = await opened()
    await embedder.embed_documents([f"{number} " + "x" * 8000 for number in range(64)])
    assert [len(request) for request in sorted(server.texts, key=len)] == [32, 32]


async def test_no_more_requests_run_at_once_than_allowed_and_one_is_left_for_queries(
    opened, server
):
    embedder = await opened(batch_size=1, max_concurrent_requests=3)
    server.gate.clear()
    imports = [
        asyncio.create_task(embedder.embed_documents([f"{name}{number}" for number in range(6)]))
        for name in "ab"
    ]
    await until(lambda: server.waiting == 2)
    queries = [asyncio.create_task(embedder.embed_query(f"q{number}")) for number in range(3)]
    await until(lambda: server.waiting == 3)
    await asyncio.sleep(0.05)
    assert len(server.requests) == 3
    assert server.texts[2][0].startswith("q")
    server.gate.set()
    await asyncio.gather(*imports, *queries)
    assert server.most == 3


async def test_a_query_goes_alone_and_with_the_prefix(opened, server):
    embedder = await opened(query_prefix="query: ")
    query = await embedder.embed_query("how")
    [document] = await embedder.embed_documents(["how"])
    assert server.texts == [["query: how"], ["how"]]
    assert query.vector != document.vector


async def test_the_request_has_the_key_the_model_and_floats(opened, server):
    embedder = await opened()
    await embedder.embed_query("how")
    [request] = server.requests
    assert request.path == "/v1/embeddings"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {"model": "some-model", "encoding_format": "float", "input": ["how"]}


async def test_without_a_key_none_is_sent(opened, server):
    embedder = await opened(api_key="")
    await embedder.embed_query("how")
    assert "authorization" not in server.requests[0].headers


async def test_dimensions_are_asked_for_and_taken(opened, server):
    embedder = await opened(dimensions=32)
    assert embedder.contract.dimensions == 32
    assert len((await embedder.embed_query("how")).vector) == 32
    assert server.requests[0].body["dimensions"] == 32


async def test_an_empty_text_is_sent_as_a_space(opened, server):
    embedder = await opened()
    [made] = await embedder.embed_documents([""])
    assert server.texts == [[" "]]
    assert not made.truncated
    assert await embedder.embed_documents([]) == []


async def test_what_is_no_unicode_is_sent_as_something_that_is(opened, server):
    embedder = await opened()
    await embedder.embed_documents(["half \ud800 a pair", "数据库"])
    assert server.texts == [["half ? a pair", "数据库"]]


# --- repeated and shared texts ----------------------------------------------------------------


async def test_a_text_that_comes_again_is_not_asked_again(opened, server):
    embedder = await opened()
    first = await embedder.embed_query("again")
    first.vector[0] = 9.0
    second = await embedder.embed_query("again")
    assert second.vector != first.vector
    assert len(server.requests) == 1


async def test_a_cache_of_none_asks_each_time(opened, server):
    embedder = await opened(cache_entries=0)
    await embedder.embed_query("again")
    await embedder.embed_query("again")
    assert len(server.requests) == 2


async def test_the_same_text_at_once_is_asked_once(opened, server):
    embedder = await opened()
    server.gate.clear()
    tasks = [asyncio.create_task(embedder.embed_documents(["same", "same"])) for _ in range(5)]
    await until(lambda: server.waiting == 1)
    server.gate.set()
    made = await asyncio.gather(*tasks)
    assert server.texts == [["same"]]
    assert all(pair == made[0] for pair in made)


async def test_one_who_gives_up_leaves_the_others_their_vector(opened, server):
    embedder = await opened()
    server.gate.clear()
    impatient = asyncio.create_task(embedder.embed_query("same"))
    patient = asyncio.create_task(embedder.embed_query("same"))
    await until(lambda: server.waiting == 1)
    impatient.cancel()
    with pytest.raises(asyncio.CancelledError):
        await impatient
    server.gate.set()
    assert len((await patient).vector) == NATIVE
    assert len(server.requests) == 1


async def test_a_request_that_nobody_waits_for_any_more_is_ended(opened, server):
    embedder = await opened(max_concurrent_requests=1)
    server.gate.clear()
    task = asyncio.create_task(embedder.embed_query("given up"))
    await until(lambda: server.waiting == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not embedder._requests)
    assert not embedder._running
    other = asyncio.create_task(embedder.embed_query("other"))
    await until(lambda: len(server.requests) == 2)  # The only slot is free again.
    server.gate.set()
    await other


async def test_the_event_loop_goes_on_while_the_server_thinks(opened, server):
    embedder = await opened()
    server.gate.clear()
    task = asyncio.create_task(embedder.embed_documents(["slow"]))
    await until(lambda: server.waiting == 1)  # Which needs the loop, too.
    for _ in range(100):
        await asyncio.sleep(0)
    assert not task.done()
    server.gate.set()
    await task


async def test_close_finishes_what_runs_and_refuses_what_comes_after(opened, server):
    embedder = await opened()
    server.gate.clear()
    running = asyncio.create_task(embedder.embed_query("running"))
    await until(lambda: server.waiting == 1)
    closing = asyncio.create_task(embedder.close())
    await asyncio.sleep(0)
    with pytest.raises(EmbeddingFailedError, match="closed"):
        await embedder.embed_query("too late")
    assert not closing.done()
    server.gate.set()
    assert len((await running).vector) == NATIVE
    await closing
    await embedder.close()
    with pytest.raises(EmbeddingFailedError, match="closed"):
        await embedder.embed_documents(["running"])


# --- texts that are too long ------------------------------------------------------------------


def refuse_longer_than(size: int) -> Callable[[EmbeddingRequest], Reply | None]:
    def answer(request: EmbeddingRequest) -> Reply | None:
        error = {"error": {"code": "context_length_exceeded", "message": request.texts[0]}}
        return Reply(400, error) if any(len(text) > size for text in request.texts) else None

    return answer


async def test_as_many_bytes_as_tokens_surely_fit_and_are_not_truncated(opened, server):
    embedder = await opened(max_tokens=108)
    server.always = lambda _: Reply(edit=lambda right: right | {"usage": {"prompt_tokens": 108}})
    made = await embedder.embed_documents(["a" * 100, "b" * 100])
    assert [one.truncated for one in made] == [False, False]
    assert len(server.requests) == 1


async def test_a_longer_text_goes_alone_and_is_whole_when_fewer_tokens_were_read(opened, server):
    embedder = await opened(max_tokens=100)
    made = await embedder.embed_documents(["short", "word " * 30, "also short"])
    assert [one.truncated for one in made] == [False, False, False]
    assert sorted(len(request) for request in server.texts) == [1, 2]


@pytest.mark.parametrize("usage", [{"prompt_tokens": 100}, {}, None])
async def test_a_longer_text_is_split_unless_the_server_says_it_read_it_whole(
    opened, server, usage
):
    embedder = await opened(max_tokens=100)
    server.always = lambda _: Reply(edit=lambda right: right | {"usage": usage})
    [made] = await embedder.embed_documents(["word " * 30])
    assert not made.truncated
    assert server.texts == [["word " * 30], ["word " * 15], ["word " * 15]]


@pytest.mark.parametrize("usage", [{"prompt_tokens": 100}, {}, None])
async def test_a_text_is_truncated_when_the_most_windows_are_not_surely_read_whole(
    opened, server, usage
):
    embedder = await opened(max_tokens=100)
    server.always = lambda _: Reply(edit=lambda right: right | {"usage": usage})
    most = 92 * MOST_WINDOWS
    surely, not_surely = await embedder.embed_documents(["x" * most, "x" * (most + 1)])
    assert not surely.truncated
    assert not_surely.truncated
    [again] = await embedder.embed_documents(["x" * (most + 1)])
    assert again.truncated, "from the cache"


async def test_a_window_is_never_sent_longer_than_four_bytes_a_token(opened, server):
    embedder = await opened(max_tokens=100)
    whole, split, many = await embedder.embed_documents(["a" * 400, "b" * 401, "数" * 200])
    assert [one.truncated for one in (whole, split, many)] == [False] * 3
    assert sorted(len(request[0].encode()) for request in server.texts) == [200, 201, 300, 300, 400]


async def test_what_lies_behind_the_most_windows_is_not_sent_and_that_is_said(opened, server):
    embedder = await opened(max_tokens=100)
    whole, cut = await embedder.embed_documents(["a" * 3200, "b" * 3201])
    assert not whole.truncated
    assert cut.truncated
    assert [len(request[0]) for request in server.texts] == [400] * 2 * MOST_WINDOWS


async def test_each_window_of_a_query_has_the_prefix_and_the_vector_is_their_mean(opened, server):
    embedder = await opened(max_tokens=100, query_prefix="query: ")
    made = await embedder.embed_query("word " * 100)
    assert [request[0] for request in server.texts] == ["query: " + "word " * 50] * 2
    [half] = await embedder.embed_documents(["query: " + "word " * 50])
    assert made.vector == pytest.approx(half.vector, abs=1e-6)


async def test_a_text_that_is_refused_goes_in_twice_as_many_windows_until_they_fit(opened, server):
    embedder = await opened(max_tokens=100)
    server.always = refuse_longer_than(95)
    [made] = await embedder.embed_documents(["x" * 600])
    assert not made.truncated
    lengths = [len(request[0]) for request in server.texts]
    assert lengths[:2] == [300, 150]
    assert sum(lengths[2:]) == 600
    assert len(lengths[2:]) == 8


async def test_windows_that_are_still_refused_are_cut_down_to_what_surely_fits(opened, server):
    embedder = await opened(max_tokens=100)
    server.always = refuse_longer_than(95)
    [made] = await embedder.embed_documents(["x" * 1600])
    assert made.truncated
    assert [len(request[0]) for request in server.texts] == [
        400,
        200,
        *[200, 100, 92] * MOST_WINDOWS,
    ]


async def test_what_is_refused_although_it_surely_fits_is_an_error(opened, server):
    embedder = await opened(max_tokens=100)
    server.always = refuse_longer_than(0)
    with pytest.raises(EmbeddingFailedError, match=r"400 .*\(context_length_exceeded\)"):
        await embedder.embed_documents(["x" * 600])
    assert [len(request[0]) for request in server.texts] == [300, 150, 75]
