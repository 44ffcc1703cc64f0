"""The embedder that asks another server, against such a server on loopback."""

from __future__ import annotations

import asyncio
import email.utils
import json
import logging
import math
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from lot_grpc.domain.errors import (
    EmbeddingFailedError,
    EmbeddingUnavailableError,
    LotError,
    ModelUnavailableError,
)
from lot_grpc.embedding import endpoint as endpoint_module
from lot_grpc.embedding.catalog import DEFAULT_CACHE_ENTRIES
from lot_grpc.embedding.endpoint_options import EndpointOptions
from lot_grpc.embedding.openai import OpenAIEmbedder, open_openai
from lot_grpc.embedding.windows import MOST_WINDOWS
from lot_grpc.pb.lot.v1 import pattern_service_pb2, pattern_service_pb2_grpc
from lot_grpc.pb.lot.v1.pattern_pb2 import Pattern
from lot_grpc.testing.hashing import HashingEmbedder
from tests.e2e.process import Served, run, serve
from tests.embedding.openai_server import KEY, NATIVE, Asked, Endpoint, Reply, endpoint

Open = Callable[..., Awaitable[OpenAIEmbedder]]

SECRET_TEXT = "the launch code is swordfish"


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with endpoint() as served:
        yield served


@pytest.fixture
async def opened(server: Endpoint) -> AsyncIterator[Open]:
    """Open an embedder on the server; what the start asked is forgotten."""
    made: list[OpenAIEmbedder] = []

    async def open_(**options: Any) -> OpenAIEmbedder:
        given: dict[str, Any] = {"base_url": server.url, "api_key": KEY, "backoff_seconds": 0.001}
        entries = options.pop("cache_entries", DEFAULT_CACHE_ENTRIES)
        made.append(
            await open_openai(
                "some-model", EndpointOptions(**(given | options)), cache_entries=entries
            )
        )
        server.asked.clear()
        server.most = 0
        return made[-1]

    yield open_
    server.gate.set()
    for embedder in made:
        await embedder.close()


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it did not come to that")


async def vectors(embedder: OpenAIEmbedder, texts: list[str]) -> list[list[float]]:
    return [embedding.vector for embedding in await embedder.embed_documents(texts)]


async def expected(texts: list[str]) -> list[list[float]]:
    return [made.vector for made in await HashingEmbedder(NATIVE).embed_documents(texts)]


def same(one: list[list[float]], other: list[list[float]]) -> bool:
    return len(one) == len(other) and all(
        a == pytest.approx(b, abs=1e-6) for a, b in zip(one, other, strict=True)
    )


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
    assert sorted(text for asked in server.texts for text in asked) == sorted(texts)
    assert max(len(asked) for asked in server.texts) == 4
    assert len(server.texts) == 8  # Windows of 12, 12 and 6 texts.


async def test_a_request_holds_a_bounded_number_of_bytes(opened, server):
    embedder = await opened()
    await embedder.embed_documents([f"{number} " + "x" * 8000 for number in range(64)])
    assert [len(asked) for asked in sorted(server.texts, key=len)] == [32, 32]


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
    assert len(server.asked) == 3
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
    [asked] = server.asked
    assert asked.path == "/v1/embeddings"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {"model": "some-model", "encoding_format": "float", "input": ["how"]}


async def test_without_a_key_none_is_sent(opened, server):
    embedder = await opened(api_key="")
    await embedder.embed_query("how")
    assert "authorization" not in server.asked[0].headers


async def test_dimensions_are_asked_for_and_taken(opened, server):
    embedder = await opened(dimensions=32)
    assert embedder.contract.dimensions == 32
    assert len((await embedder.embed_query("how")).vector) == 32
    assert server.asked[0].body["dimensions"] == 32


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
    assert len(server.asked) == 1


async def test_a_cache_of_none_asks_each_time(opened, server):
    embedder = await opened(cache_entries=0)
    await embedder.embed_query("again")
    await embedder.embed_query("again")
    assert len(server.asked) == 2


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
    assert len(server.asked) == 1


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
    await until(lambda: len(server.asked) == 2)  # The only slot is free again.
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


def refuse_longer_than(size: int) -> Callable[[Asked], Reply | None]:
    def answer(asked: Asked) -> Reply | None:
        error = {"error": {"code": "context_length_exceeded", "message": asked.texts[0]}}
        return Reply(400, error) if any(len(text) > size for text in asked.texts) else None

    return answer


async def test_as_many_bytes_as_tokens_surely_fit_and_are_not_truncated(opened, server):
    embedder = await opened(max_tokens=108)
    server.always = lambda _: Reply(edit=lambda right: right | {"usage": {"prompt_tokens": 108}})
    made = await embedder.embed_documents(["a" * 100, "b" * 100])
    assert [one.truncated for one in made] == [False, False]
    assert len(server.asked) == 1


async def test_a_longer_text_goes_alone_and_is_whole_when_fewer_tokens_were_read(opened, server):
    embedder = await opened(max_tokens=100)
    made = await embedder.embed_documents(["short", "word " * 30, "also short"])
    assert [one.truncated for one in made] == [False, False, False]
    assert sorted(len(asked) for asked in server.texts) == [1, 2]


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
    assert sorted(len(asked[0].encode()) for asked in server.texts) == [200, 201, 300, 300, 400]


async def test_what_lies_behind_the_most_windows_is_not_sent_and_that_is_said(opened, server):
    embedder = await opened(max_tokens=100)
    whole, cut = await embedder.embed_documents(["a" * 3200, "b" * 3201])
    assert not whole.truncated
    assert cut.truncated
    assert [len(asked[0]) for asked in server.texts] == [400] * 2 * MOST_WINDOWS


async def test_each_window_of_a_query_has_the_prefix_and_the_vector_is_their_mean(opened, server):
    embedder = await opened(max_tokens=100, query_prefix="query: ")
    made = await embedder.embed_query("word " * 100)
    assert [asked[0] for asked in server.texts] == ["query: " + "word " * 50] * 2
    [half] = await embedder.embed_documents(["query: " + "word " * 50])
    assert made.vector == pytest.approx(half.vector, abs=1e-6)


async def test_a_text_that_is_refused_goes_in_twice_as_many_windows_until_they_fit(opened, server):
    embedder = await opened(max_tokens=100)
    server.always = refuse_longer_than(95)
    [made] = await embedder.embed_documents(["x" * 600])
    assert not made.truncated
    lengths = [len(asked[0]) for asked in server.texts]
    assert lengths[:2] == [300, 150]
    assert sum(lengths[2:]) == 600
    assert len(lengths[2:]) == 8


async def test_windows_that_are_still_refused_are_cut_down_to_what_surely_fits(opened, server):
    embedder = await opened(max_tokens=100)
    server.always = refuse_longer_than(95)
    [made] = await embedder.embed_documents(["x" * 1600])
    assert made.truncated
    assert [len(asked[0]) for asked in server.texts] == [400, 200, *[200, 100, 92] * MOST_WINDOWS]


async def test_what_is_refused_although_it_surely_fits_is_an_error(opened, server):
    embedder = await opened(max_tokens=100)
    server.always = refuse_longer_than(0)
    with pytest.raises(EmbeddingFailedError, match=r"400 .*\(context_length_exceeded\)"):
        await embedder.embed_documents(["x" * 600])
    assert [len(asked[0]) for asked in server.texts] == [300, 150, 75]


# --- failures that pass, and others -----------------------------------------------------------


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
async def test_a_passing_failure_is_repeated(opened, server, status):
    embedder = await opened()
    server.replies = [Reply(status, {}), Reply(status, b"no JSON")]
    assert len((await embedder.embed_query("how")).vector) == NATIVE
    assert server.texts == [["how"]] * 3


async def test_retry_after_is_waited_for(opened, server, monkeypatch):
    embedder = await opened()
    waits: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", noted)
    server.replies = [
        Reply(429, {}, {"Retry-After": "3"}),
        Reply(503, {}, {"Retry-After": "soon"}),
    ]
    await embedder.embed_query("how")
    assert waits[0] == 3.0
    assert 0 < waits[1] <= 0.002


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        ("2", 2, 2),
        ("0", 0, 0),
        ("-5", 0, 0),
        ("86400", 20, 20),
        (email.utils.formatdate(time.time() - 100, usegmt=True), 0, 0),
        (email.utils.formatdate(time.time() + 9000, usegmt=True), 20, 20),
    ],
    ids=["seconds", "now", "negative", "a day", "a past date", "a date"],
)
def test_retry_after_is_seconds_or_a_date_and_bounded(value, least, most):
    wait = endpoint_module._retry_after(value)
    assert wait is not None
    assert least <= wait <= most


@pytest.mark.parametrize("value", ["", "soon", "nan", "inf"])
def test_a_retry_after_that_says_nothing_is_passed_over(value):
    assert endpoint_module._retry_after(value) is None


async def test_it_gives_up_after_the_repeats_and_says_that_it_may_work_later(opened, server):
    embedder = await opened(retries=3)
    server.always = lambda _: Reply(503, {"error": {"message": "busy"}})
    with pytest.raises(EmbeddingUnavailableError, match=r"503.* 4 times in a row; retry later"):
        await embedder.embed_query("how")
    assert len(server.asked) == 4
    server.always = lambda _: None
    await embedder.embed_query("how")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_a_refusal_is_not_repeated_and_says_who_can_mend_it(opened, server, status):
    embedder = await opened()
    server.always = lambda _: Reply(status, {"error": {"code": "some_code"}})
    with pytest.raises(EmbeddingFailedError, match=rf"{status}.*\(some_code\); the operator") as e:
        await embedder.embed_documents(["how"])
    assert not isinstance(e.value, EmbeddingUnavailableError)
    assert len(server.asked) == 1


async def test_a_spent_quota_is_not_repeated(opened, server):
    embedder = await opened()
    server.always = lambda _: Reply(429, {"error": {"code": "insufficient_quota"}})
    with pytest.raises(EmbeddingFailedError, match="raise the quota"):
        await embedder.embed_query("how")
    assert len(server.asked) == 1


async def test_a_server_that_does_not_answer_in_time_is_asked_again(opened, server):
    embedder = await opened(timeout_seconds=0.2, retries=1)
    server.gate.clear()
    with pytest.raises(EmbeddingUnavailableError, match=r"not respond within 0.2 s, 2 times"):
        await embedder.embed_query("how")
    assert len(server.asked) == 2


async def test_a_server_that_went_away_is_unavailable(opened, server):
    with endpoint() as gone:
        gone.always = lambda _: Reply(headers={"Connection": "close"})
        embedder = await opened(base_url=gone.url)
    with pytest.raises(EmbeddingUnavailableError, match=r"cannot be reached.* 3 times in a row"):
        await embedder.embed_query("how")


async def test_one_failed_batch_fails_the_call_and_the_next_call_is_free_of_it(opened, server):
    embedder = await opened(batch_size=2, max_concurrent_requests=2)
    server.always = lambda asked: Reply(401, {}) if "bad" in asked.texts else None
    with pytest.raises(EmbeddingFailedError):
        await embedder.embed_documents(["a", "b", "bad", "c"])
    await until(lambda: not embedder._requests)
    assert not embedder._running
    assert same(await vectors(embedder, ["a", "b", "c"]), await expected(["a", "b", "c"]))


# --- answers that cannot be used --------------------------------------------------------------


def with_vector(value: Any) -> Callable[[dict[str, Any]], Any]:
    def edit(right: dict[str, Any]) -> dict[str, Any]:
        right["data"][0]["embedding"] = value
        return right

    return edit


def with_index(value: Any) -> Callable[[dict[str, Any]], Any]:
    def edit(right: dict[str, Any]) -> dict[str, Any]:
        right["data"][0]["index"] = value
        return right

    return edit


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (lambda right: right | {"data": right["data"][:1]}, "has 1 vectors for 2 texts"),
        (lambda right: right | {"data": right["data"] * 2}, "has 4 vectors for 2 texts"),
        (lambda right: right | {"data": None}, "has 0 vectors"),
        (lambda right: right["data"], "something other than a list"),
        (lambda right: {"data": ["a", "b"]}, "something other than a list"),
        (lambda right: {}, "something other than a list"),
        (lambda right: b"<html>", "something other than a list"),
        (lambda right: b"", "something other than a list"),
        (with_index(1), "does not number"),
        (with_index(7), "does not number"),
        (with_index(None), "does not number"),
        (with_index([]), "something other than a list"),
        (with_vector([1.0] * 63), "has 63 dimensions instead of 64"),
        (with_vector([]), "not a list of numbers|0 dimensions"),
        (with_vector([math.nan] + [1.0] * 63), "zero or not finite"),
        (with_vector([math.inf] + [1.0] * 63), "zero or not finite"),
        (with_vector([1e300] * 64), "zero or not finite"),
        (with_vector([0.0] * 64), "zero or not finite"),
        (with_vector([None] + [1.0] * 63), "not a list of numbers"),
        (with_vector(["1.0"] * 64), "not a list of numbers"),
        (with_vector([[1.0]] * 64), "not a list of numbers"),
        (with_vector("AAAA"), "not a list of numbers"),
        (lambda right: right | {"model": "some-other"}, "another model than at startup"),
    ],
)
async def test_an_answer_that_cannot_be_used_is_an_error_and_never_repaired(
    opened, server, edit, problem
):
    embedder = await opened()
    server.always = lambda _: Reply(edit=edit)
    with pytest.raises(EmbeddingFailedError, match=problem):
        await embedder.embed_documents(["one", "two"])
    assert len(server.asked) == 1
    server.always = lambda _: None
    assert same(await vectors(embedder, ["one", "two"]), await expected(["one", "two"]))


async def test_an_answer_without_end_is_not_read_to_it(opened, server, monkeypatch):
    monkeypatch.setattr(endpoint_module, "_MOST_BYTES", 2**20)
    embedder = await opened()
    server.always = lambda _: Reply(body=b" " * (3 * 2**20))
    with pytest.raises(EmbeddingFailedError, match="more than 1 MiB"):
        await embedder.embed_query("how")


# --- starting ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (401, "LOT_OPENAI_API_KEY"),
        (403, "LOT_OPENAI_API_KEY"),
        (404, "LOT_EMBEDDING_MODEL"),
        (400, "LOT_OPENAI_DIMENSIONS"),
        (503, "LOT_OPENAI_BASE_URL"),
    ],
)
async def test_a_start_without_vectors_is_refused_with_url_status_and_remedy(
    opened, server, status, remedy
):
    server.always = lambda _: Reply(status, {"error": {"code": "why", "message": "long story"}})
    with pytest.raises(ModelUnavailableError) as caught:
        await opened()
    told = caught.value.message
    assert f"{server.url}/embeddings returned {status}" in told
    assert "some-model" in told
    assert remedy in told
    assert "(why)" in told
    assert "long story" not in told


async def test_a_start_waits_for_a_server_that_is_just_coming_up(opened, server):
    server.replies = [Reply(503, {}), Reply(503, {})]
    assert (await opened()).contract.dimensions == NATIVE


async def test_dimensions_that_are_not_honoured_refuse_the_start(opened, server):
    def ignore(right: dict[str, Any]) -> dict[str, Any]:
        right["data"][0]["embedding"] = [1.0] * 64
        return right

    server.always = lambda _: Reply(edit=ignore)
    with pytest.raises(ModelUnavailableError, match="64 dimensions instead of 32"):
        await opened(dimensions=32)


@pytest.mark.parametrize("key", ["sk hush-hush", "sk-hüsh-hush", "sk-hush-hush\nX: y"])
async def test_a_key_that_cannot_be_sent_is_refused_and_not_quoted(opened, key):
    with pytest.raises(ModelUnavailableError, match="has an API key with") as caught:
        await opened(api_key=key)
    assert "sh-hush" not in everything(caught.value)


async def test_a_server_that_is_not_there_refuses_the_start():
    with endpoint() as gone:
        url = gone.url
    with pytest.raises(ModelUnavailableError, match=r"cannot be reached.*3 times in a row; check"):
        await open_openai("m", EndpointOptions(base_url=url, backoff_seconds=0.001))


# --- what must stay here ----------------------------------------------------------------------


def everything(error: BaseException) -> str:
    """All that could be printed of an error and of what caused it."""
    lines = traceback.TracebackException.from_exception(error).format()
    facts = error.metadata if isinstance(error, LotError) else {}
    return "".join(lines) + repr(error) + str(dict(facts))


@pytest.mark.parametrize("status", [307, 308, 301, 302])
async def test_a_redirect_is_refused_and_the_other_host_gets_nothing(opened, server, status):
    embedder = await opened()
    with endpoint() as thief:
        headers = {"Location": f"{thief.url}/embeddings"}
        server.always = lambda _: Reply(status, {}, headers)
        with pytest.raises(EmbeddingFailedError, match="redirects elsewhere"):
            await embedder.embed_query("how")
        with pytest.raises(ModelUnavailableError, match="LOT_OPENAI_BASE_URL"):
            await opened()
        assert thief.asked == []


@pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
async def test_neither_key_nor_text_is_in_an_error_a_log_or_a_repr(opened, server, caplog, status):
    caplog.set_level(logging.DEBUG)
    for name in ("httpx", "httpcore"):  # As `logs` sets them.
        logging.getLogger(name).setLevel(logging.WARNING)
    embedder = await opened(retries=1)
    parrot = {"error": {"code": KEY, "message": f"{KEY} {SECRET_TEXT}", "type": SECRET_TEXT}}
    server.always = lambda _: Reply(status, parrot)
    with pytest.raises(EmbeddingFailedError) as caught:
        await embedder.embed_documents([SECRET_TEXT])
    state = repr([embedder, vars(embedder), embedder._endpoint, embedder._endpoint._client])
    for told in (everything(caught.value), caplog.text, state):
        assert KEY not in told
        assert "swordfish" not in told


async def test_a_proxy_of_the_environment_does_not_see_what_stays_on_this_machine(
    opened, server, monkeypatch
):
    with endpoint() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        embedder = await opened()
        await embedder.embed_query("how")
        assert proxy.asked == []
    assert server.texts == [["how"]]


# --- the service ------------------------------------------------------------------------------


def remote(server: Endpoint, **more: str) -> dict[str, str]:
    return {
        "LOT_EMBEDDING_PROVIDER": "openai",
        "LOT_EMBEDDING_MODEL": "some-model",
        "LOT_OPENAI_BASE_URL": server.url,
        "LOT_OPENAI_API_KEY": KEY,
        "LOT_OPENAI_RETRIES": "1",
        "LOT_LOG_LEVEL": "debug",
    } | more


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[[dict[str, str]], Served]]:
    """Start the service on one folder."""
    running: list[Served] = []

    def start(settings: dict[str, str]) -> Served:
        running.append(serve(tmp_path / "data", tmp_path / "server.log", settings))
        return running[-1]

    yield start
    for one in running:
        if one.process.poll() is None:
            one.kill()


def test_a_service_saves_and_recalls_by_the_endpoint_and_says_so_when_it_is_away(started, server):
    service = started(remote(server))
    assert f"openai:some-model, {NATIVE}-d" in service.lines[0]
    with grpc.insecure_channel(service.address) as channel:
        stub = pattern_service_pb2_grpc.PatternServiceStub(channel)
        for task in (SECRET_TEXT, "the cat sleeps on a warm windowsill"):
            request = pattern_service_pb2.SavePatternRequest(pattern=Pattern(task=task))
            stub.SavePattern(request, timeout=30)
        recall = pattern_service_pb2.RecallPatternsRequest(query="what is the launch code", limit=1)
        [hit] = stub.RecallPatterns(recall, timeout=30).hits
        assert hit.pattern.task == SECRET_TEXT
        assert any(SECRET_TEXT in text for texts in server.texts for text in texts)

        server.always = lambda _: Reply(503, {"error": {"message": KEY}})
        unseen = pattern_service_pb2.RecallPatternsRequest(query="never asked before")
        with pytest.raises(grpc.RpcError) as caught:
            stub.RecallPatterns(unseen, timeout=30)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert "retry later" in str(caught.value.details())
        assert len(stub.ListPatterns(pattern_service_pb2.ListPatternsRequest()).patterns) == 2
    assert service.stop() == 0
    logged = service.logged() + "".join(service.lines)
    assert "EMBEDDING_UNAVAILABLE" in logged
    assert KEY not in logged
    assert "swordfish" not in logged


def test_check_names_the_model_its_dimensions_and_where_it_is(server, tmp_path):
    ran = run(tmp_path / "data", "check", settings=remote(server))
    assert ran.code == 0, ran
    assert f"openai:some-model, {NATIVE}-d, from {server.url}" in ran.stdout
    assert "blocked while checking except for the model at 127.0.0.1" in ran.stdout
    told = json.loads(run(tmp_path / "data", "check", "--json", settings=remote(server)).stdout)
    assert (told["model"]["name"], told["model"]["sha256"]) == ("openai:some-model", "")
    assert KEY not in ran.stdout + ran.stderr + str(told)


def test_a_start_with_a_wrong_key_is_refused_in_a_sentence(server, tmp_path):
    server.always = lambda _: Reply(401, {"error": {"code": "invalid_api_key", "message": KEY}})
    ran = run(tmp_path / "data", "serve", settings=remote(server))
    assert ran.code == 1
    assert "returned 401 Unauthorized (invalid_api_key)" in ran.errors
    assert "LOT_OPENAI_API_KEY" in ran.errors
    assert KEY not in ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.model
def test_a_store_of_the_local_model_is_not_opened_with_the_remote_one(started, server):
    service = started({})
    assert service.stop() == 0
    ran = run(service.data, "serve", settings=remote(server))
    assert ran.code == 1
    assert "BAAI/bge-small-en-v1.5" in ran.errors
    assert "openai:some-model" in ran.errors
    assert "cannot be compared" in ran.errors


def test_a_store_with_other_dimensions_of_the_same_model_is_not_opened(started, server):
    service = started(remote(server))
    assert service.stop() == 0
    ran = run(service.data, "serve", settings=remote(server, LOT_OPENAI_DIMENSIONS="32"))
    assert ran.code == 1
    assert f"dimensions={NATIVE}" in ran.errors
    assert "dimensions=32" in ran.errors
