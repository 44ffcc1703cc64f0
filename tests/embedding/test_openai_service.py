"""The service over an embedding endpoint."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest

from lot_grpc.pb.lot.v1 import pattern_service_pb2, pattern_service_pb2_grpc
from lot_grpc.pb.lot.v1.pattern_pb2 import Pattern
from tests.e2e.process import Served, run, serve
from tests.embedding.openai_helpers import SECRET_TEXT
from tests.embedding.openai_server import KEY, NATIVE, Endpoint, Reply


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
