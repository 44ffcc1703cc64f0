"""What refuses to start says why and what to do, with exit code 1 and no traceback."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import grpc
import pytest

from lot_grpc.pb.lot.v1 import pattern_service_pb2, pattern_service_pb2_grpc
from lot_grpc.pb.lot.v1.pattern_pb2 import Pattern
from tests.e2e.process import PATIENCE, ROOT, Ran, Served, command, environment, run

SOME_DOC = b"\x32\x01x"
"""An ONNX file that ends so has a documentation of "x": still a whole model, with another hash."""


def refused(ran: Ran) -> str:
    """The one message of a command that could not be carried out."""
    assert ran.code == 1, ran
    assert ran.errors.startswith("error: ")
    assert "\nhint: " in ran.errors
    assert "Traceback" not in ran.stderr
    assert "serving" not in ran.stdout
    return ran.errors


def save(server: Served, task: str) -> None:
    with grpc.insecure_channel(server.address) as channel:
        stub = pattern_service_pb2_grpc.PatternServiceStub(channel)
        stub.SavePattern(
            pattern_service_pb2.SavePatternRequest(pattern=Pattern(task=task)), timeout=PATIENCE
        )


def saved(server: Served) -> list[str]:
    with grpc.insecure_channel(server.address) as channel:
        stub = pattern_service_pb2_grpc.PatternServiceStub(channel)
        answer = stub.ListPatterns(pattern_service_pb2.ListPatternsRequest(), timeout=PATIENCE)
        return [pattern.task for pattern in answer.patterns]


@pytest.fixture
def copied(pack: Path, tmp_path: Path) -> Path:
    """A copy of the model's folder, whose files are links until a test makes one its own."""
    folder = tmp_path / "model"
    folder.mkdir()
    for file in pack.iterdir():
        (folder / file.name).symlink_to(file)
    return folder


def own(file: Path, content: bytes) -> str:
    """Give a linked file a content of its own; its hash."""
    file.unlink()
    file.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


# --- the folder and the port ------------------------------------------------------------------


def test_a_second_server_on_the_same_folder_is_told_who_has_it(running):
    told = refused(run(running.data, "serve"))
    assert f"process {running.process.pid}" in told
    assert str(running.data) in told
    assert "LOT_DATA_DIR" in told
    save(running, "t")
    assert "t" in saved(running)


def test_a_second_server_on_the_same_port_is_told_so(running, data):
    told = refused(run(data, "serve", settings={"LOT_ADDRESS": running.address}))
    assert f"cannot listen on {running.address}" in told
    assert "another process uses port" in told
    assert f"lsof -i :{running.port}" in told
    save(running, "t")
    assert "t" in saved(running)
    assert run(data, "check").code == 0, "it left its own folder locked or broken"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    assert str(closed) in refused(run(closed / "data", "serve"))


def test_a_folder_that_is_a_file_is_named(tmp_path):
    file = tmp_path / "data"
    file.write_text("not a folder")
    told = refused(run(file, "serve"))
    assert str(file) in told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_it_starts_ends_it_with_one_line(data, number):
    with subprocess.Popen(
        command("serve"),
        env=environment(data),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as starting:
        assert starting.stderr is not None
        first = json.loads(starting.stderr.readline())
        assert (first["message"], first["location"]) == ("starting", str(data))
        starting.send_signal(number)
        stdout, stderr = starting.communicate(timeout=30)
    assert (starting.returncode, stdout) == (128 + number, "")
    assert [json.loads(line)["message"] for line in stderr.splitlines()] == [
        "stopped while starting"
    ]


# --- the model --------------------------------------------------------------------------------


def test_a_model_that_is_not_there_is_named_and_what_to_do(data, tmp_path):
    nowhere = {"LOT_EMBEDDING_PATH": str(tmp_path / "nowhere")}
    told = refused(run(data, "serve", settings=nowhere))
    assert str(tmp_path / "nowhere") in told
    assert "LOT_EMBEDDING_PATH" in told
    assert not data.exists(), "a store was made without a model"


def test_a_missing_file_of_the_model_is_named(copied, data):
    (copied / "tokenizer.json").unlink()
    told = refused(run(data, "serve", settings={"LOT_EMBEDDING_PATH": str(copied)}))
    assert f"{copied / 'tokenizer.json'} is missing" in told


def test_a_damaged_model_file_is_refused_with_both_hashes(copied, data):
    content = bytearray((copied / "model.onnx").read_bytes())
    good = hashlib.sha256(content).hexdigest()
    content[len(content) // 2] ^= 1
    bad = own(copied / "model.onnx", bytes(content))
    told = refused(run(data, "serve", settings={"LOT_EMBEDDING_PATH": str(copied)}))
    assert f"expected SHA-256 {good}, found {bad}" in told
    assert "copy the file again" in told


def test_a_model_that_is_not_known_is_refused(data):
    told = refused(run(data, "serve", settings={"LOT_EMBEDDING_MODEL": "no/such-model"}))
    assert "'no/such-model' is not known" in told
    assert "BAAI/bge-small-en-v1.5" in told


def test_a_store_of_another_model_is_left_alone_and_both_are_named(serve, copied, data):
    model = (copied / "model.onnx").read_bytes()
    other = own(copied / "model.onnx", model + SOME_DOC)
    theirs = {"LOT_EMBEDDING_PATH": str(copied), "LOT_EMBEDDING_SHA256": other}
    made = serve(data, theirs)
    save(made, "made by another model")
    assert made.stop() == 0
    told = refused(run(data, "serve"))
    assert f"model_sha256={other}" in told
    assert f"model_sha256={hashlib.sha256(model).hexdigest()}" in told
    assert "LOT_EMBEDDING_PATH" in told
    assert saved(serve(data, theirs)) == ["made by another model"]


@pytest.mark.timeout(300)
def test_a_folder_that_lost_something_is_served_only_when_that_is_accepted(serve, data):
    server = serve(data)
    save(server, "lost with its folder")
    assert server.stop() == 0
    shutil.rmtree(data / "patterns")
    missing = "collection 'patterns' with 1 record is missing"
    checked = run(data, "check")
    assert checked.code == 1
    assert missing in checked.stdout
    message = refused(run(data, "serve"))
    assert missing in message
    assert "lot-grpc serve --accept-loss" in message
    assert "lot-grpc import" in message
    server = serve(data, None, "--accept-loss")
    assert "started with data missing" in server.logged()
    assert saved(server) == []
    save(server, "new")
    server.kill()
    server = serve(data)
    assert saved(server) == ["new"]
    assert server.stop() == 0


# --- what a start loads -----------------------------------------------------------------------

TELL_MODULES = """
    import os, signal, sys
    from lot_grpc.cli import main, serve

    def tell(*_):
        print(*sys.modules, flush=True)
        os.kill(os.getpid(), signal.SIGTERM)

    serve._announce = tell
    sys.argv = ["lot-grpc", "serve"]
    main()
"""

NOT_FOR_SERVING = {
    "PIL",
    "cryptography",
    "fastembed",
    "httpx",
    "huggingface_hub",
    "lot_grpc.checking",
    "lot_grpc.evaluation.loading",
    "lot_grpc.offline_reindex",
    "lot_grpc.parsing.code",
    "lot_grpc.parsing.helper",
    "lot_grpc.storage.qdrant",
    "lot_grpc.testing",
    "qdrant_client",
    "requests",
    "tree_sitter",
    "tree_sitter_python",
}


def test_a_server_with_the_default_settings_loads_only_what_it_needs(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(TELL_MODULES)],
        env=environment(tmp_path / "data"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ran.returncode == 0, ran.stderr
    loaded = set(ran.stdout.split())
    assert {"lot_grpc.app", "onnxruntime", "qdrant_edge"} <= loaded
    assert sorted(NOT_FOR_SERVING & loaded) == []
    commands = {path.stem for path in (ROOT / "lot_grpc" / "cli").glob("*.py")}
    of_commands = {name for name in commands if f"lot_grpc.cli.{name}" in loaded}
    assert of_commands == {"app", "failures", "options", "progress", "serve", "start", "words"}
