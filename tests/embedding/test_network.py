"""No network where none is allowed; a hub on loopback where one is."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from lot_grpc.domain.errors import ModelUnavailableError
from lot_grpc.embedding.catalog import DEFAULT_MODEL, card_of
from lot_grpc.embedding.fastembed import open_fastembed
from lot_grpc.embedding.model_files import locate

REPOSITORY = "Qdrant/bge-small-en-v1.5-onnx-Q"
REVISION = "a" * 40
FILES = {
    "model_optimized.onnx": b"a model, as far as the hub knows " * 4000,
    "tokenizer.json": b"{}",
    "tokenizer_config.json": b"{ }",
    "config.json": b"{  }",
}


def forbid_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on: an event loop needs a pair of sockets to start."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.model
async def test_an_installed_model_loads_without_network(monkeypatch: pytest.MonkeyPatch):
    forbid_network(monkeypatch)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    embedder = await open_fastembed(threads=1, allow_download=True)
    assert len((await embedder.embed_query("ready?")).vector) == 384
    await embedder.close()


@pytest.mark.parametrize(("offline", "allowed"), [("1", True), ("", False)])
def test_a_missing_model_is_refused_without_network_and_with_the_ways_out(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    offline: str,
    allowed: bool,
):
    forbid_network(monkeypatch)
    monkeypatch.setenv("HF_HUB_OFFLINE", offline)
    card = card_of("BAAI/bge-base-en-v1.5")
    with pytest.raises(ModelUnavailableError, match=r"not on this machine.*LOT_EMBEDDING_PATH"):
        locate(card, cache_dir=tmp_path, allow_download=allowed)


def test_importing_the_room_loads_neither_fastembed_nor_onnx_runtime():
    script = (
        "import sys, lot_grpc.embedding.fastembed, lot_grpc.testing.hashing;"
        "import lot_grpc.embedding.reranking;"
        "print({'fastembed', 'onnxruntime', 'huggingface_hub'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


# --- a download ------------------------------------------------------------------------------


class Hub(BaseHTTPRequestHandler):
    """As much of the model hub's HTTP as a snapshot download asks for."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if f"/resolve/{REVISION}/" in path:
            content = FILES[path.rpartition("/")[2]]
            etag = hashlib.sha256(content).hexdigest()
            self._answer(content, {"ETag": f'"{etag}"', "X-Repo-Commit": REVISION})
        elif "/tree/" in path:
            self._answer(json.dumps([_entry(name) for name in FILES]).encode())
        elif path.startswith(f"/api/models/{REPOSITORY}"):
            siblings = [{"rfilename": name} for name in FILES]
            facts = {"_id": "1", "id": REPOSITORY, "sha": REVISION, "siblings": siblings}
            self._answer(json.dumps(facts).encode())
        else:
            self._answer(b"{}", status=404)

    do_HEAD = do_GET  # noqa: N815 - the name is http.server's

    def _answer(
        self, content: bytes, headers: dict[str, str] | None = None, status: int = 200
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {"Content-Type": "application/json"}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def _entry(name: str) -> dict[str, Any]:
    size, sha256 = len(FILES[name]), hashlib.sha256(FILES[name]).hexdigest()
    lfs = {"oid": sha256, "size": size, "pointerSize": 130}
    return {"type": "file", "path": name, "size": size, "oid": sha256[:40], "lfs": lfs}


@pytest.fixture
def hub() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


SCRIPT = """
import json, sys
from pathlib import Path
from lot_grpc.domain.errors import ModelUnavailableError
from lot_grpc.embedding.catalog import DEFAULT_MODEL, card_of
from lot_grpc.embedding.model_files import locate
told = []
try:
    found = locate(card_of(DEFAULT_MODEL), cache_dir=Path(sys.argv[1]), packs=(),
                   allow_download=sys.argv[2] == "yes", progress=lambda *facts: told.append(facts))
    print(json.dumps({"sha256": found.sha256, "file": found.model_file, "told": told}))
except ModelUnavailableError as error:
    print(json.dumps({"error": error.message}))
"""


def run(cache: Path, allow: bool, endpoint: str) -> dict[str, Any]:
    """In a process of its own: the hub's library reads its endpoint when it is imported."""
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(cache), "yes" if allow else "no"],
        env=os.environ | {"HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    result: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return result


def test_a_download_is_reported_verified_and_then_served_from_the_cache(hub: str, tmp_path: Path):
    downloaded = run(tmp_path, allow=True, endpoint=hub)
    expected = hashlib.sha256(FILES["model_optimized.onnx"]).hexdigest()
    assert downloaded["sha256"] == expected
    whole = sum(map(len, FILES.values()))
    assert downloaded["told"][-1] == [DEFAULT_MODEL, whole, whole]

    unreachable = "http://127.0.0.1:9"
    again = run(tmp_path, allow=False, endpoint=unreachable)
    assert (again["sha256"], again["told"]) == (expected, [])

    [model] = tmp_path.glob("models--*/snapshots/*/model_optimized.onnx")
    damaged = bytearray(model.read_bytes())
    damaged[100] ^= 1
    model.resolve().write_bytes(damaged)
    refused = run(tmp_path, allow=False, endpoint=unreachable)
    assert f"expected SHA-256 {expected}" in refused["error"]

    model.resolve().write_bytes(damaged[:1000])
    refused = run(tmp_path, allow=False, endpoint=unreachable)
    assert "incomplete or damaged" in refused["error"]
