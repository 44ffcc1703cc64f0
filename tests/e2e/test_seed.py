"""Seeding at the start of the real process, with the real model."""

from __future__ import annotations

import json
from pathlib import Path

import grpc

from lot_grpc.knowledge import built_in_packs
from lot_grpc.pb.lot.v1 import (
    admin_service_pb2,
    admin_service_pb2_grpc,
    memory_service_pb2,
    memory_service_pb2_grpc,
    pattern_service_pb2,
    pattern_service_pb2_grpc,
)
from tests.e2e.process import PATIENCE, Served, run

EVERYTHING = sum(pack.size for pack in built_in_packs())
PACK = """
name = "house"
[[memories]]
id = "rule"
content = "Deploys happen on Tuesdays"
"""


def seed(server: Served, namespace: str) -> tuple[int, int, int]:
    with grpc.insecure_channel(server.address) as channel:
        answer = admin_service_pb2_grpc.AdminServiceStub(channel).SeedKnowledge(
            admin_service_pb2.SeedKnowledgeRequest(namespace=namespace, dry_run=True),
            timeout=PATIENCE,
        )
    return answer.created_count, answer.existing_count, answer.skipped_deleted_count


def forget(server: Served, memory_id: str, namespace: str) -> None:
    with grpc.insecure_channel(server.address) as channel:
        stub = memory_service_pb2_grpc.MemoryServiceStub(channel)
        request = memory_service_pb2.DeleteMemoryRequest(namespace=namespace, memory_id=memory_id)
        assert stub.DeleteMemory(request, timeout=PATIENCE).deleted


def recall(server: Served, query: str, namespace: str) -> str:
    with grpc.insecure_channel(server.address) as channel:
        stub = pattern_service_pb2_grpc.PatternServiceStub(channel)
        request = pattern_service_pb2.RecallPatternsRequest(namespace=namespace, query=query)
        hits = stub.RecallPatterns(request, timeout=PATIENCE).hits
    return str(hits[0].pattern.pattern_id)


def own_pack(tmp_path: Path, text: str = PACK) -> dict[str, str]:
    file = tmp_path / "house.toml"
    file.write_text(text)
    return {"LOT_SEED_PACKS": str(file)}


def test_a_start_stores_it_and_the_next_one_leaves_what_was_deleted_away(serve, data, tmp_path):
    settings = {
        "LOT_SEED_ON_START": "true",
        "LOT_SEED_NAMESPACES": "default,team",
        **own_pack(tmp_path),
    }
    server = serve(data, settings)
    for namespace in ("default", "team"):
        assert seed(server, namespace) == (0, EVERYTHING + 1, 0)
    assert seed(server, "another") == (EVERYTHING + 1, 0, 0)
    found = recall(server, "close a connection whatever happens in an async function", "team")
    assert found.startswith("seed:design_patterns:async_context_manager.")
    forget(server, "seed:house:rule", "team")
    assert server.stop() == 0
    server = serve(data, settings)
    assert seed(server, "team") == (0, EVERYTHING, 1)
    assert seed(server, "default") == (0, EVERYTHING + 1, 0)
    assert "Tuesdays" not in server.logged()
    assert server.stop() == 0


def test_nothing_is_stored_unless_somebody_says_so(running):
    assert seed(running, "default") == (EVERYTHING, 0, 0)


def test_a_broken_pack_stops_the_start_and_the_check(data, tmp_path):
    broken = own_pack(tmp_path, PACK.replace("content", "contents"))
    ran = run(data, "serve", settings=broken)
    assert ran.code == 1
    for part in (broken["LOT_SEED_PACKS"], "memories, entry 1 (rule)", "contents", "\nhint: "):
        assert part in ran.errors
    assert not data.exists()
    checked = run(data, "check", "--json", settings=broken)
    assert checked.code == 1
    checks = {check["name"]: check for check in json.loads(checked.stdout)["checks"]}
    assert not checks["knowledge"]["ok"]
    assert "contents" in checks["knowledge"]["detail"]
    assert checks["store"]["ok"]
    good = json.loads(run(data, "check", "--json", settings=own_pack(tmp_path)).stdout)
    assert good["ready"]
    assert any("house (1)" in check["detail"] for check in good["checks"])
