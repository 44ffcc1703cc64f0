"""A server that redacts, as an operator runs it: what is left of a secret in its folder and log."""

from __future__ import annotations

import random
from pathlib import Path

import grpc
import pytest

from lot_grpc.pb.lot.v1 import (
    memory_pb2,
    memory_service_pb2,
    memory_service_pb2_grpc,
    outcome_pb2,
    pattern_service_pb2,
    pattern_service_pb2_grpc,
)
from tests.e2e.conftest import Serve
from tests.e2e.process import PATIENCE, Served, paths_below, run
from tests.secrets import keys

KEYS = [make(random.Random(1)) for make in keys.FIT.values()]


def store(server: Served) -> list[outcome_pb2.Notice]:
    """Store every key in a memory, and ask for it; the notices."""
    told: list[outcome_pb2.Notice] = []
    with grpc.insecure_channel(server.address) as channel:
        memories = memory_service_pb2_grpc.MemoryServiceStub(channel)
        patterns = pattern_service_pb2_grpc.PatternServiceStub(channel)
        for key in KEYS:
            saving = memory_service_pb2.CreateMemoryRequest(
                memory=memory_pb2.Memory(content=f"the deployment uses {key}")
            )
            told += memories.CreateMemory(saving, timeout=PATIENCE).notices
            recall = pattern_service_pb2.RecallPatternsRequest(query=f"deploy with {key}")
            told += patterns.RecallPatterns(recall, timeout=PATIENCE).notices
    return told


def found(folder: Path) -> set[str]:
    """Keys of which anything is in a file below."""
    files = [path.read_bytes() for path in paths_below(folder) if path.is_file()]
    return {key for key in KEYS if any(key[-40:].encode() in content for content in files)}


@pytest.mark.parametrize("redacts", [True, False])
def test_no_byte_of_a_secret_is_in_the_folder_or_the_log(
    serve: Serve, data: Path, redacts: bool
) -> None:
    server = serve(data, {"LOT_REDACT": str(redacts), "LOT_LOG_LEVEL": "debug"})
    told = store(server)
    redacted = [one for one in told if one.code == outcome_pb2.NOTICE_CODE_REDACTED]
    assert len(redacted) == (2 * len(KEYS) if redacts else 0)
    assert not any(key in str(told) for key in KEYS)
    scanned = run(data, "scan", settings={"LOT_ADDRESS": server.address})
    assert scanned.code == (0 if redacts else 1), scanned
    assert not any(key in scanned.stdout + scanned.stderr for key in KEYS)
    assert server.stop() == 0
    assert found(data) == (set() if redacts else set(KEYS))
    assert not any(key in server.logged() for key in KEYS)


def test_rules_that_cannot_be_used_stop_the_start_and_check_says_so(
    data: Path, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text("[[rules]]\nname = 'acme'\npattern = '('\n")
    settings = {"LOT_REDACT": "true", "LOT_REDACT_RULES": str(rules)}
    said = f"redaction rules {rules}: rule acme: pattern: RE2 rejects it"
    served = run(data, "serve", settings=settings)
    assert served.code == 1
    assert said in served.errors
    assert "LOT_REDACT_RULES names the files" in served.errors
    checked = run(data, "check", settings=settings)
    assert checked.code == 1
    assert f"FAILED  redaction   {said}" in checked.stdout
