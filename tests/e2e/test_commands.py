"""`lot-grpc check`, `compact`, `health` and `LOT_SYNC`, on a real store with the real model."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess

import grpc
import pytest

from lot_grpc.pb.lot.v1 import episode_service_pb2_grpc
from lot_grpc.pb.lot.v1.episode_pb2 import (
    EPISODE_STATUS_FAILED,
    EPISODE_STATUS_SUCCEEDED,
    Episode,
)
from lot_grpc.pb.lot.v1.episode_service_pb2 import RecordEpisodeRequest
from tests.e2e.process import PATIENCE, ROOT, command, environment, run
from tests.e2e.test_start import refused, save, saved


def _can_unshare() -> bool:
    """Whether a process here may be given a network of its own, without any interface."""
    if shutil.which("unshare") is None:
        return False
    tried = subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False)
    return tried.returncode == 0


def test_check_says_ready_and_of_what(data):
    ran = run(data, "check")
    assert ran.code == 0, ran
    for part in ("ready\n", "BAAI/bge-small-en-v1.5, 384-d", str(data), "blocked while checking"):
        assert part in ran.stdout
    assert "traceback" not in ran.stderr.lower()


def files_below(folder):
    """Edge's own journals aside, which opening a store uses up."""
    there = {path.relative_to(folder) for path in folder.rglob("*")}
    return {path for path in there if path.name != "tracker_journal.dat"}


def test_check_makes_nothing(serve, data):
    settings = {"LOT_EMBEDDING_CACHE_DIR": str(data / "cache")}
    ran = run(data, "check", settings=settings)
    assert (ran.code, data.exists()) == (0, False)
    assert f"the first start creates it in {data}" in ran.stdout
    assert serve(data).stop() == 0
    (data / "lot.lock").unlink()
    before = files_below(data)
    assert run(data, "check").code == 0
    assert files_below(data) == before
    assert not (data / "sessions").exists(), "it has had no record yet"
    shutil.rmtree(data / "meta")
    ran = run(data, "check")
    assert (ran.code, "--accept-loss" in ran.stdout) == (1, True), ran


def test_check_says_what_serve_would_download_and_makes_no_cache(data, tmp_path):
    cache = tmp_path / "cache"
    settings = {
        "LOT_EMBEDDING_MODEL": "BAAI/bge-base-en-v1.5",
        "LOT_EMBEDDING_CACHE_DIR": str(cache),
        "HF_HUB_OFFLINE": "",
        "HF_ENDPOINT": "",
    }
    ran = run(data, "check", settings=settings)
    assert ran.code == 1
    source = "https://huggingface.co/Qdrant/bge-base-en-v1.5-onnx-Q (210 MB)"
    assert f"would download it from {source} into {cache}, which is allowed" in ran.stdout
    assert not cache.exists()
    for forbidding in ({"LOT_EMBEDDING_DOWNLOAD": "false"}, {"HF_HUB_OFFLINE": "1"}):
        ran = run(data, "check", settings={**settings, **forbidding})
        assert (ran.code, "downloads are disabled" in ran.stdout) == (1, True)
        assert "would download" not in ran.stdout


@pytest.mark.skipif(not _can_unshare(), reason="needs `unshare -n`, that is Linux and its rights")
def test_check_says_ready_where_there_is_no_network_at_all(data):
    ran = subprocess.run(
        ["unshare", "-n", *command("check", "--json")],
        env=environment(data),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ran.returncode == 0, ran
    report = json.loads(ran.stdout)
    assert report["ready"] is True
    assert {check["name"]: check["ok"] for check in report["checks"]} == {
        "knowledge": True,
        "redaction": True,
        "model file": True,
        "model": True,
        "store": True,
        "reranker": True,
        "network": True,
    }
    assert report["model"]["dimensions"] == 384
    assert report["store"]["writable"] is True


def test_check_and_compact_beside_a_running_server_say_who_has_the_folder(running):
    ran = run(running.data, "check")
    assert ran.code == 1
    assert ran.stdout.startswith("NOT ready")
    assert f"process {running.process.pid}" in ran.stdout
    told = refused(run(running.data, "compact"))
    assert f"process {running.process.pid}" in told
    save(running, "t")
    assert "t" in saved(running)


def test_compact_of_a_stopped_store_keeps_all_of_it(serve, data):
    server = serve(data)
    for n in range(20):
        save(server, f"task {n}")
    before = saved(server)
    assert server.stop() == 0
    ran = run(data, "compact", "--json")
    assert ran.code == 0, ran
    report = json.loads(ran.stdout)
    assert report["location"] == str(data)
    assert report["bytes_after"] > 0
    assert saved(serve(data)) == before


@pytest.mark.parametrize("arguments", [["compact"], ["reindex", "--offline"]], ids=" ".join)
def test_a_folder_that_is_missing_is_not_made(data, arguments):
    told = refused(run(data, *arguments))
    assert str(data) in told
    assert not data.exists()


def test_health_tells_whether_the_server_serves(running, data):
    address = running.address
    ran = run(data, "health", "--address", address, "--json")
    assert (ran.code, json.loads(ran.stdout)["status"]) == (0, "SERVING")
    named = run(data, "health", "-a", address, "--service", "lot.v1.PatternService")
    assert (named.code, named.stdout) == (0, f"{address}: SERVING\n")
    assert run(data, "health", settings={"LOT_ADDRESS": address}).code == 0
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers there
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        gone = run(data, "health", "-a", address, "--timeout", "1")
    assert (gone.code, gone.stderr) == (1, f"{address}: UNAVAILABLE\n")


def test_report_tells_how_tasks_went_on_the_server(running, data):
    namespace = "for-the-report"
    with grpc.insecure_channel(running.address) as channel:
        stub = episode_service_pb2_grpc.EpisodeServiceStub(channel)
        for number in range(10):
            status = EPISODE_STATUS_SUCCEEDED if number < 9 else EPISODE_STATUS_FAILED
            episode = Episode(task="t", category="ops", approach="plan", status=status)
            stub.RecordEpisode(
                RecordEpisodeRequest(namespace=namespace, episode=episode), timeout=PATIENCE
            )
    asked = ("report", "-a", running.address, "-n", namespace)
    ran = run(data, *asked)
    assert ran.code == 0, ran
    for part in (f"Performance of {namespace}\n", "(90.0%)", "90.0% of 10", "plan (9)"):
        assert part in ran.stdout
    told = json.loads(run(data, *asked, "--json").stdout)
    assert (told["total_count"], told["success_count"]) == ("10", "9")
    again = [run(data, *asked, "--markdown").stdout, told["markdown"]]
    minute = r"\d{4}-\d\d-\d\d \d\d:\d\d"  # it may have passed in between
    assert len({re.sub(minute, "", text) for text in again}) == 1
    assert run(data, *asked, "--json", "--markdown").code == 2
    empty = run(data, "report", "-n", "nobody", settings={"LOT_ADDRESS": running.address})
    assert (empty.code, "No episode has ended." in empty.stdout) == (0, True)
    assert not data.exists()


def test_report_without_a_server_says_what_to_look_at(data):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers there
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        told = refused(run(data, "report", "-a", address, "--timeout", "1"))
    assert told.startswith(f"error: {address}: UNAVAILABLE\nhint: is the server running")


def test_writes_that_wait_for_the_disk_are_there_after_a_kill(serve, data):
    server = serve(data, {"LOT_SYNC": "always"})
    save(server, "synced")
    server.kill()
    assert saved(serve(data, {"LOT_SYNC": "always"})) == ["synced"]


def test_check_fails_for_a_reranker_that_is_not_where_it_was_named(tmp_path):
    missing = tmp_path / "nowhere"
    settings = {"LOT_RERANK_PATH": str(missing)}
    ran = subprocess.run(
        command("check", "--json"),
        env=environment(tmp_path / "data", settings),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ran.returncode == 1, ran
    [reranker] = [one for one in json.loads(ran.stdout)["checks"] if one["name"] == "reranker"]
    assert not reranker["ok"]
    assert str(missing) in reranker["detail"]
