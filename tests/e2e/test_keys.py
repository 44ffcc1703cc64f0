"""Keys made on the command line, on a real server: accepted, used, revoked, without a restart."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import grpc
import pytest

from lot_grpc.pb.lot.v1 import memory_service_pb2 as pb
from lot_grpc.pb.lot.v1.memory_pb2 import Memory
from lot_grpc.pb.lot.v1.memory_service_pb2_grpc import MemoryServiceStub
from tests.auth.issuer import AUDIENCE, ISSUER, issuing, signed
from tests.e2e.process import PATIENCE, Served, paths_below, run, wait_for


class Keys:
    """`lot-grpc keys` on one file, and calls with what it prints."""

    def __init__(self, data: Path, file: Path) -> None:
        self.data = data
        self.settings = {"LOT_AUTH_KEYS": str(file)}
        self.printed: list[str] = []
        self.said = ""

    def __call__(self, *arguments: str) -> str:
        ran = run(self.data, "keys", *arguments, settings=self.settings)
        assert ran.code == 0, ran.stderr
        self.said += ran.stderr
        if arguments[0] in ("create", "rotate"):
            self.printed.append(ran.stdout.strip())
        return ran.stdout.strip()

    def create(self, name: str, *more: str) -> str:
        return self("create", name, "-n", "team-a", "--role", "writer", *more)


def saved(server: Served, text: str) -> str:
    """Save a memory with a key; the reason if that is refused."""
    metadata = (("authorization", f"Bearer {text}"),) if text else ()
    request = pb.CreateMemoryRequest(memory=Memory(content="the harbour opens at six"))
    with grpc.insecure_channel(server.address) as channel:
        create = MemoryServiceStub(channel).CreateMemory
        call = create.future(request, metadata=metadata, timeout=PATIENCE)
        if call.exception() is None:
            return ""
        trailing: dict[str, Any] = dict(call.trailing_metadata() or ())
    details = trailing["grpc-status-details-bin"]
    reasons = ("CREDENTIALS_REQUIRED", "CREDENTIALS_INVALID", "AUTH_UNAVAILABLE")
    return next((one for one in reasons if one.encode() in details), str(call.code()))


@pytest.fixture
def keys(data: Path, tmp_path: Path) -> Keys:
    return Keys(data, tmp_path / "keys.json")


def test_a_key_opens_until_it_is_rotated_or_revoked(serve, data, keys, tmp_path):
    first = keys.create("planner")
    server = serve(data, keys.settings)
    assert saved(server, "") == "CREDENTIALS_REQUIRED"
    assert saved(server, first) == ""
    second = keys.create("second")
    wait_for(lambda: saved(server, second) == "")
    rotated = keys("rotate", "planner")
    wait_for(lambda: saved(server, first) == "CREDENTIALS_INVALID")
    assert saved(server, rotated) == ""
    keys("revoke", "second")
    wait_for(lambda: saved(server, second) == "CREDENTIALS_INVALID")
    assert saved(server, rotated) == ""
    assert server.stop() == 0
    used = [json.loads(line)["last_use_time"] for line in keys("list", "--json").splitlines()]
    assert all(used)
    log = server.logged()
    assert "is revoked" in log
    assert len(set(keys.printed)) == 3
    written = [one.read_bytes() for one in paths_below(tmp_path) if one.is_file()]
    for text in keys.printed:
        secret = text.rpartition("_")[2]
        assert secret not in log
        assert secret not in keys.said
        assert not [one for one in written if secret.encode() in one]


def test_a_server_goes_on_with_what_it_read_and_does_not_start_without(serve, data, keys):
    text = keys.create("planner")
    file = Path(keys.settings["LOT_AUTH_KEYS"])
    server = serve(data, keys.settings)
    content = file.read_bytes()
    file.write_bytes(content[:50])
    wait_for(lambda: "cannot use a changed file; keeping the last good state" in server.logged())
    assert saved(server, text) == ""
    file.write_bytes(content)
    wait_for(lambda: "can use the file again" in server.logged())
    assert server.stop() == 0
    assert server.logged().count("cannot use a changed file") == 1
    file.chmod(0o644)
    for command in ("serve", "check"):
        ran = run(data, command, settings=keys.settings)
        assert ran.code == 1
        assert "is open to others (mode 0644)" in ran.errors + ran.stdout


def test_tokens_and_keys_are_accepted_side_by_side(serve, data, keys):
    text = keys.create("planner")
    with issuing() as issuer:
        settings = keys.settings | {
            "LOT_OIDC_ISSUER": ISSUER,
            "LOT_OIDC_AUDIENCE": AUDIENCE,
            "LOT_OIDC_JWKS": issuer.url,
        }
        issuer.status = 503
        server = serve(data, settings)
        payload = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "agent-7",
            "exp": int(time.time()) + 600,
            "lot_role": "writer",
            "lot_namespaces": ["team-a"],
        }
        token = signed(json.dumps(payload).encode(), header={"kid": "k1"})
        assert saved(server, token) == "AUTH_UNAVAILABLE"
        assert saved(server, text) == ""
        issuer.status = 200
        wait_for(lambda: saved(server, token) == "")
        issuer.status = 503
        assert saved(server, token) == ""
        payload["aud"] = "another"
        other = signed(json.dumps(payload).encode(), header={"kid": "k1"})
        assert saved(server, other) == "CREDENTIALS_INVALID"
        assert server.stop() == 0
    log = server.logged()
    assert "the issuer's keys cannot be read" in log
    assert "for another audience" in log
    for part in (*token.split("."), *other.split(".")[1:]):
        assert part not in log


def test_a_check_asks_the_issuer_and_nobody_else(data, keys):
    keys.create("planner")
    with issuing() as issuer:
        settings = keys.settings | {
            "LOT_OIDC_ISSUER": ISSUER,
            "LOT_OIDC_AUDIENCE": AUDIENCE,
            "LOT_OIDC_JWKS": issuer.url,
        }
        ran = run(data, "check", settings=settings)
        assert ran.code == 0, ran.stdout
        assert "1 valid" in ran.stdout
        assert f"1 key of {ISSUER} at {issuer.url}" in ran.stdout
        assert "except for the tokens at 127.0.0.1; nothing needed it" in ran.stdout
        issuer.status = 500
        ran = run(data, "check", settings=settings)
    assert ran.code == 1
    assert f"{issuer.url} returned 500; until it can be read, no token is accepted" in ran.stdout
