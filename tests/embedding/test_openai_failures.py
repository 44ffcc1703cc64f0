"""An embedding endpoint that fails, or answers what cannot be used."""

from __future__ import annotations

import asyncio
import email.utils
import logging
import math
import time
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from lot_grpc.domain.errors import (
    EmbeddingFailedError,
    EmbeddingUnavailableError,
    LotError,
    ModelUnavailableError,
)
from lot_grpc.embedding import endpoint as endpoint_module
from lot_grpc.embedding.endpoint_options import EndpointOptions
from lot_grpc.embedding.openai import open_openai
from tests.embedding.openai_helpers import SECRET_TEXT, expected, same, until, vectors
from tests.embedding.openai_server import KEY, NATIVE, Reply, endpoint

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
    assert len(server.requests) == 4
    server.always = lambda _: None
    await embedder.embed_query("how")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_a_refusal_is_not_repeated_and_says_who_can_mend_it(opened, server, status):
    embedder = await opened()
    server.always = lambda _: Reply(status, {"error": {"code": "some_code"}})
    with pytest.raises(EmbeddingFailedError, match=rf"{status}.*\(some_code\); the operator") as e:
        await embedder.embed_documents(["how"])
    assert not isinstance(e.value, EmbeddingUnavailableError)
    assert len(server.requests) == 1


async def test_a_spent_quota_is_not_repeated(opened, server):
    embedder = await opened()
    server.always = lambda _: Reply(429, {"error": {"code": "insufficient_quota"}})
    with pytest.raises(EmbeddingFailedError, match="raise the quota"):
        await embedder.embed_query("how")
    assert len(server.requests) == 1


async def test_a_server_that_does_not_answer_in_time_is_asked_again(opened, server):
    embedder = await opened(timeout_seconds=0.2, retries=1)
    server.gate.clear()
    with pytest.raises(EmbeddingUnavailableError, match=r"not respond within 0.2 s, 2 times"):
        await embedder.embed_query("how")
    assert len(server.requests) == 2


async def test_a_server_that_went_away_is_unavailable(opened, server):
    with endpoint() as gone:
        gone.always = lambda _: Reply(headers={"Connection": "close"})
        embedder = await opened(base_url=gone.url)
    with pytest.raises(EmbeddingUnavailableError, match=r"cannot be reached.* 3 times in a row"):
        await embedder.embed_query("how")


async def test_one_failed_batch_fails_the_call_and_the_next_call_is_free_of_it(opened, server):
    embedder = await opened(batch_size=2, max_concurrent_requests=2)
    server.always = lambda request: Reply(401, {}) if "bad" in request.texts else None
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
        (lambda right: right | {"model": "some-other"}, "a different model than at startup"),
    ],
)
async def test_an_answer_that_cannot_be_used_is_an_error_and_never_repaired(
    opened, server, edit, problem
):
    embedder = await opened()
    server.always = lambda _: Reply(edit=edit)
    with pytest.raises(EmbeddingFailedError, match=problem):
        await embedder.embed_documents(["one", "two"])
    assert len(server.requests) == 1
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
        assert thief.requests == []


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
        assert proxy.requests == []
    assert server.texts == [["how"]]
