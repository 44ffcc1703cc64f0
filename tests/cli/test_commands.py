from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import tomllib

import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from lot_grpc import __version__, app, checking
from lot_grpc.cli.app import app as command_line
from lot_grpc.cli.connection import reachable
from lot_grpc.domain.errors import (
    KnowledgePackInvalidError,
    ModelUnavailableError,
    RedactionRulesInvalidError,
    ServingEndedError,
    StoreLockedError,
)
from lot_grpc.reports import Check, CheckReport, CompactReport, ModelReport, StoreReport
from lot_grpc.settings import REFERENCE_FILE
from tests.cli.scripted import served

MODEL = ModelReport("some/model", 384, "/models/model.onnx", "ab" * 32, "pack")
STORE = StoreReport("edge", "/data", {"patterns": 1234, "events": 0}, 2**20, 2**30, writable=True)
GOOD = CheckReport((Check("store", ok=True, detail="opened"),), MODEL, STORE)
BAD = CheckReport((Check("model", ok=False, detail="file is damaged"),), None, STORE)


def checking_gives(monkeypatch, report, *, then=None):
    async def check(settings, *, may_download):
        if then:
            then(settings)
        return report

    monkeypatch.setattr(checking, "check", check)
    monkeypatch.setenv("HF_HUB_OFFLINE", "")


# --- usage and settings -----------------------------------------------------------------------


def test_importing_the_command_line_loads_nothing_heavy():
    code = "import sys, lot_grpc.cli; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"grpc", "google.protobuf", "qdrant_client", "qdrant_edge", "fastembed", "numpy"}
    assert heavy.isdisjoint(loaded)
    assert {"lot_grpc.app", "lot_grpc.settings"}.isdisjoint(loaded)


def test_the_embedded_store_does_not_wait_for_the_client_of_a_qdrant_server():
    code = "import sys, lot_grpc.app; print('qdrant_client' in sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert loaded.stdout == "False\n"


@pytest.mark.parametrize("arguments", [["nope"], ["serve", "--nope"], ["health", "--timeout", "x"]])
def test_wrong_usage_exits_2(runner, arguments):
    assert runner.invoke(command_line, arguments).exit_code == 2


@pytest.mark.parametrize(
    "command",
    [
        "serve",
        "check",
        "compact",
        "settings -e",
        "health",
        "report",
        "seed",
        "review",
        "episodes",
        "replay e-1",
        "watch",
        "recall x",
        "embed x",
        "patterns",
        "stats",
        "errors x",
        "context x",
    ],
)
def test_settings_that_cannot_be_used_exit_2_in_one_message(runner, monkeypatch, command):
    monkeypatch.setenv("LOT_ADRESS", "x")
    monkeypatch.setenv("LOT_MAX_STREAMS", "many")
    result = runner.invoke(command_line, command.split())
    assert result.exit_code == 2
    assert "did you mean LOT_ADDRESS?" in result.stderr
    assert "LOT_MAX_STREAMS" in result.stderr
    assert "hint: `lot-grpc settings`" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (StoreLockedError("/data is in use by pid 7"), "LOT_DATA_DIR"),
        (ModelUnavailableError("the model file is damaged"), "lot-grpc check"),
        (KnowledgePackInvalidError("/p.toml", "", "name", "is bad"), "LOT_SEED_PACKS"),
        (RedactionRulesInvalidError("/r.toml", "x", "is bad"), "LOT_REDACT_RULES"),
        (ServingEndedError("the server no longer accepts calls"), "restart the server"),
    ],
)
def test_what_stops_the_start_is_a_sentence_and_a_hint_and_exits_1(
    runner, monkeypatch, error, hint
):
    async def serve(*_, **__):
        raise error

    monkeypatch.setattr(app, "serve", serve)
    result = runner.invoke(command_line, ["serve"])
    assert result.exit_code == 1
    assert f"error: {error.message}\n" in result.stderr
    assert hint in result.stderr
    assert "Traceback" not in result.stderr


# --- version and settings ---------------------------------------------------------------------


def test_version_is_one_json_object(runner):
    result = runner.invoke(command_line, ["version", "--json"])
    told = json.loads(result.stdout)
    assert result.exit_code == 0
    assert told["version"] == __version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", told["packages"]["grpcio"])
    assert runner.invoke(command_line, ["--version"]).stdout == f"lot-grpc {__version__}\n"


def test_settings_prints_the_reference_as_it_is(runner):
    assert runner.invoke(command_line, ["settings"]).stdout == REFERENCE_FILE.read_text()


def test_settings_in_effect_are_masked_and_can_be_read_again(runner, monkeypatch, tmp_path):
    monkeypatch.setenv("LOT_STORE", "qdrant")
    monkeypatch.setenv("LOT_QDRANT_URL", "http://127.0.0.1:6333")
    monkeypatch.setenv("LOT_QDRANT_API_KEY", "hush-hush")
    plain = runner.invoke(command_line, ["settings", "--effective"]).stdout
    told = json.loads(runner.invoke(command_line, ["settings", "--json"]).stdout)
    assert "hush-hush" not in plain + json.dumps(told)
    assert tomllib.loads(plain)["qdrant"]["url"] == "http://127.0.0.1:6333"
    assert told["storage.store"] == {
        "variable": "LOT_STORE",
        "value": "qdrant",
        "origin": "environment",
    }


# --- check and compact ------------------------------------------------------------------------


def test_check_says_ready_and_which_model_and_store(runner, monkeypatch):
    checking_gives(monkeypatch, GOOD)
    result = runner.invoke(command_line, ["check"])
    assert result.exit_code == 0
    for part in ("ready", "/models/model.onnx", "ab" * 32, "/data", "patterns 1,234", "1,024 MiB"):
        assert part in result.stdout


def test_check_as_json_carries_all_of_it(runner, monkeypatch):
    checking_gives(monkeypatch, GOOD)
    told = json.loads(runner.invoke(command_line, ["check", "--json"]).stdout)
    assert told["ready"] is True
    assert told["model"]["sha256"] == "ab" * 32
    assert told["store"]["points"]["patterns"] == 1234
    assert {check["name"] for check in told["checks"]} == {"store", "network"}


def test_check_that_fails_exits_1_and_says_why(runner, monkeypatch):
    checking_gives(monkeypatch, BAD)
    result = runner.invoke(command_line, ["check"])
    assert result.exit_code == 1
    assert result.stdout.startswith("NOT ready")
    assert "file is damaged" in result.stdout


def test_check_looks_offline_and_may_not_download(runner, monkeypatch):
    seen = []
    checking_gives(
        monkeypatch,
        GOOD,
        then=lambda settings: seen.append(
            (settings.embedding.download, os.environ["HF_HUB_OFFLINE"])
        ),
    )
    assert runner.invoke(command_line, ["check"]).exit_code == 0
    assert seen == [(False, "1")]


def test_check_fails_when_something_reaches_for_the_network(runner, monkeypatch):
    def reach(_):
        with pytest.raises(OSError, match="blocked"):
            socket.create_connection(("model-hub.invalid", 443), timeout=1)

    checking_gives(monkeypatch, GOOD, then=reach)
    result = runner.invoke(command_line, ["check"])
    assert result.exit_code == 1
    assert "something tried to reach model-hub.invalid" in result.stdout


def test_compact_shows_what_it_did(runner, monkeypatch):
    def compact(settings, progress):
        progress("patterns", 1, 2)
        progress("patterns", 2, 2)
        return CompactReport(True, "/data", 300 * 2**20, 100 * 2**20, 2.5)

    monkeypatch.setattr(app, "compact", compact)
    result = runner.invoke(command_line, ["compact"])
    assert result.exit_code == 0
    assert result.stdout == "compacted /data in 2.5 s: 300 MiB before, 100 MiB now\n"
    steps = [json.loads(line) for line in result.stderr.splitlines()]
    assert [(step["what"], step["percent"]) for step in steps] == [
        ("patterns", 50),
        ("patterns", 100),
    ]
    told = json.loads(runner.invoke(command_line, ["compact", "--json"]).stdout)
    assert (told["changed"], told["bytes_after"]) == (True, 100 * 2**20)


def test_compact_of_a_store_in_use_exits_1(runner, monkeypatch):
    def compact(settings, progress):
        raise StoreLockedError("/data is in use by pid 7")

    monkeypatch.setattr(app, "compact", compact)
    result = runner.invoke(command_line, ["compact"])
    assert result.exit_code == 1
    assert "in use by pid 7" in result.stderr


# --- health -----------------------------------------------------------------------------------


@pytest.fixture
def health_server():
    servicer = health.HealthServicer()
    with served(health_pb2_grpc.add_HealthServicer_to_server, servicer) as address:
        yield servicer, address


def test_health_tells_serving_from_not_serving(runner, health_server):
    servicer, address = health_server
    statuses = health_pb2.HealthCheckResponse
    servicer.set("", statuses.SERVING)
    serving = runner.invoke(command_line, ["health", "--address", address, "--json"])
    servicer.set("", statuses.NOT_SERVING)
    draining = runner.invoke(command_line, ["health", "--address", address])
    unknown = runner.invoke(command_line, ["health", "-a", address, "--service", "lot.v1.Nope"])
    assert (serving.exit_code, json.loads(serving.stdout)["status"]) == (0, "SERVING")
    assert (draining.exit_code, draining.stderr) == (1, f"{address}: NOT_SERVING\n")
    assert (unknown.exit_code, unknown.stderr) == (1, f"{address}: NOT_FOUND\n")


def test_health_takes_the_address_of_the_settings(runner, health_server, monkeypatch):
    _, address = health_server
    monkeypatch.setenv("LOT_ADDRESS", address)
    assert runner.invoke(command_line, ["health"]).exit_code == 0


def test_health_of_a_server_that_is_not_there_exits_1(runner):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers there
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = runner.invoke(command_line, ["health", "-a", address, "--timeout", "1"])
    assert result.exit_code == 1
    assert "UNAVAILABLE" in result.stderr


def test_a_server_on_all_addresses_is_asked_on_loopback():
    assert reachable("0.0.0.0:50051") == "127.0.0.1:50051"
    assert reachable("[::]:50051") == "[::1]:50051"
    assert reachable("10.1.2.3:5") == "10.1.2.3:5"


# --- serve and signals ------------------------------------------------------------------------

SERVE = """
    import asyncio, sys
    from lot_grpc import app
    from lot_grpc.cli import main
    from lot_grpc.reports import Ready

    async def serve(settings, *, ready, stop, progress, accept_loss, embedder):
        progress("patterns", 1, 4)
        ready(Ready("127.0.0.1:7", "edge", "/data", 1234, "some/model", 384, 0.25))
        await stop.wait()
        print("draining", flush=True)
        {drain}

    app.serve = serve
    sys.argv = ["lot-grpc", "serve"]
    main()
"""


def serving(drain: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SERVE.format(drain=drain))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def start_lines(server: subprocess.Popen[str]) -> list[str]:
    assert server.stdout is not None
    return [server.stdout.readline() for _ in range(2)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_says_where_and_stops_cleanly_on_a_signal(number):
    with serving("pass") as server:
        line, example = start_lines(server)
        server.send_signal(number)
        stdout, stderr = server.communicate(timeout=30)
    assert server.returncode == 0
    assert line == (
        f"lot-grpc {__version__} is serving on 127.0.0.1:7 (edge store /data, 1,234 points;"
        " some/model, 384-d; ready in 0.2 s)\n"
    )
    assert re.fullmatch(r"try: \S+ (-plaintext 127.0.0.1:7 lot\.v1\.\S+|stats .+)\n", example)
    assert stdout == "draining\n"
    logged = [json.loads(text) for text in stderr.splitlines()]
    assert [entry["message"] for entry in logged] == ["starting", "working", "stopping"]
    assert logged[2]["signal"] == number.name


def test_a_second_signal_ends_it_at_once():
    with serving("await asyncio.sleep(60)") as server:
        start_lines(server)
        server.terminate()
        assert server.stdout is not None
        assert server.stdout.readline() == "draining\n"
        server.terminate()
        _, stderr = server.communicate(timeout=30)
    assert server.returncode == 128 + signal.SIGTERM
    assert "stopped at once" in stderr
