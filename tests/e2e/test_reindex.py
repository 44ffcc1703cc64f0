"""To another model with the real process, the real store and a real second model.

The second model is the file of the first one as another model reads it: with the mean of all words
instead of the first one's vector, and without a prefix on queries. It has as many dimensions, so
that vectors of both would be compared without a word.
"""

from __future__ import annotations

import json
from pathlib import Path

import grpc
import pytest

from lot_grpc.embedding.catalog import card_of
from lot_grpc.embedding.file_hash import file_sha256
from lot_grpc.embedding.model_files import locate
from lot_grpc.pb.lot.v1 import (
    admin_service_pb2,
    admin_service_pb2_grpc,
    pattern_pb2,
    pattern_service_pb2,
    pattern_service_pb2_grpc,
)
from tests.e2e.forked import Forked
from tests.e2e.process import PATIENCE, ROOT, Served, environment, paths_below, run, wait_for

OTHER = "sentence-transformers/all-MiniLM-L6-v2"
COUNT = 500
"""Enough that a reindex is still at work when it is seen to have begun, also on a busy machine."""


@pytest.fixture
def folder() -> Path:
    return locate(card_of("BAAI/bge-small-en-v1.5")).folder


def fill(server: Served) -> None:
    items = [
        pattern_service_pb2.SavePatternItem(
            pattern=pattern_pb2.Pattern(task=f"Deploy service number {n} to region {n % 7}"),
            pattern_id=f"p{n}",
        )
        for n in range(COUNT)
    ]
    with grpc.insecure_channel(server.address) as channel:
        stub = pattern_service_pb2_grpc.PatternServiceStub(channel)
        request = pattern_service_pb2.BatchSavePatternsRequest(items=items)
        assert stub.BatchSavePatterns(request, timeout=PATIENCE).failed_count == 0


def similarity(server: Served, number: int) -> float:
    """Of a pattern to its own text; it must come first."""
    query = f"Deploy service number {number} to region {number % 7}"
    with grpc.insecure_channel(server.address) as channel:
        stub = pattern_service_pb2_grpc.PatternServiceStub(channel)
        request = pattern_service_pb2.RecallPatternsRequest(query=query, limit=1)
        [hit] = stub.RecallPatterns(request, timeout=PATIENCE).hits
    assert hit.pattern.pattern_id == f"p{number}"
    return float(hit.similarity)


def model(server: Served) -> str:
    with grpc.insecure_channel(server.address) as channel:
        stub = admin_service_pb2_grpc.AdminServiceStub(channel)
        return str(
            stub.GetServerInfo(admin_service_pb2.GetServerInfoRequest(), timeout=PATIENCE).model
        )


def written(wanted: str) -> list[str]:
    """The arguments of the command of docs/reindex.md that has ``wanted``, for the second model."""
    page = (ROOT / "docs" / "reindex.md").read_text()
    [line] = [one for one in page.splitlines() if "lot-grpc reindex" in one and wanted in one][:1]
    return line.partition("lot-grpc ")[2].replace("BAAI/bge-base-en-v1.5", OTHER).split()


def test_killed_half_way_the_former_model_serves_and_the_same_command_ends_it(serve, data, folder):
    sha256 = file_sha256(folder / "model.onnx")
    there = {"LOT_REINDEX_PATH": str(folder)}
    server = serve(data, there)
    unsure = run(data, "reindex", OTHER, "--address", server.address)
    assert unsure.code == 1
    assert "LOT_REINDEX_SHA256" in unsure.errors
    server.stop()
    there["LOT_REINDEX_SHA256"] = sha256
    server = serve(data, there)
    fill(server)
    before = similarity(server, 17)
    command_line = ["reindex", OTHER, "--address", server.address]
    asked = Forked(command_line, env=environment(data), cwd=ROOT)
    wait_for(lambda: half_way(data))
    server.kill()
    _, told = asked.communicate(PATIENCE)
    assert asked.returncode == 1
    assert "the previous model is still in use" in told

    server = serve(data, there)
    assert model(server) == "BAAI/bge-small-en-v1.5"
    assert similarity(server, 17) == before
    command_line = [*written("reindex BAAI"), "--address", server.address, "--json"]
    done = run(data, *command_line)
    assert done.code == 0, done.stderr
    assert json.loads(done.stdout)["phase"] == "DONE"
    assert json.loads(done.stdout)["total_count"] == COUNT
    assert model(server) == OTHER
    # The same text as query and document is one vector for this model, which has no prefix.
    assert similarity(server, 17) == pytest.approx(1.0, abs=1e-3)
    assert before < 0.999
    server.kill()

    refused = run(data, "serve")
    assert refused.code == 1
    assert "lot-grpc reindex" in refused.errors
    assert OTHER in refused.errors
    theirs = {
        "LOT_EMBEDDING_MODEL": OTHER,
        "LOT_EMBEDDING_PATH": str(folder),
        "LOT_EMBEDDING_SHA256": sha256,
    }
    server = serve(data, theirs)
    assert similarity(server, COUNT - 1) == pytest.approx(1.0, abs=1e-3)
    assert server.stop() == 0

    back = run(data, *written("--offline"), "--json")
    assert back.code == 0, back.stderr
    assert json.loads(back.stdout)["embedded"] == COUNT
    assert "already" in run(data, "reindex", "--offline").stdout
    server = serve(data)
    assert similarity(server, 17) == pytest.approx(before, abs=1e-6)


def half_way(data: Path) -> bool:
    """Whether the place of the new vectors is made."""
    return any("text-1" in path.name for path in paths_below(data / "patterns"))


def test_offline_needs_the_store_for_itself_and_a_store(serve, data):
    data.mkdir()
    empty = run(data, "reindex", "--offline")
    assert empty.code == 1
    assert "nothing to reindex" in empty.errors
    served = serve(data)
    away = run(data, "reindex", "openai:text-embedding-3-small", "--address", served.address)
    assert away.code == 1
    assert "sends no text elsewhere" in away.errors
    locked = run(data, "reindex", "--offline")
    assert locked.code == 1
    assert str(served.process.pid) in locked.errors


def test_how_it_is_called_is_checked(data):
    assert run(data, "reindex").code == 2
    assert run(data, "reindex", OTHER, "--offline").code == 2
    away = run(data, "reindex", OTHER, "--address", "127.0.0.1:1")
    assert away.code == 1
    assert "run the command again" in away.errors
