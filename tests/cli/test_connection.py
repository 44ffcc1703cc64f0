"""How commands connect: TLS by the settings or by options, and the API key."""

# ruff: noqa: N802 - RPCs are named in the contract

from __future__ import annotations

from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health, health_pb2_grpc

from lot_grpc.cli.app import app
from lot_grpc.cli.connection import tls_problem
from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1 import admin_service_pb2_grpc as pb_grpc
from lot_grpc.testing.certificates import Authority, Issued

KEY = "lot_k1_secret"


class Keys(grpc.ServerInterceptor):
    """Keeps what callers send to say who they are."""

    def __init__(self) -> None:
        self.seen: list[str | bytes] = []

    def intercept_service(self, continuation: Any, details: Any) -> Any:
        sent = dict(details.invocation_metadata)
        self.seen.append(sent.get("authorization", ""))
        return continuation(details)


class Admin(pb_grpc.AdminServiceServicer):
    """Answers two calls, one of them a stream."""

    def ListNamespaces(self, request, context):
        return pb.ListNamespacesResponse()

    def Reindex(self, request, context):
        yield pb.ReindexResponse(phase=pb.REINDEX_PHASE_DONE, detail="done")


class Server:
    """On a port of loopback, with TLS if it has a certificate."""

    def __init__(self, issued: Issued | None = None, client_ca: bytes | None = None) -> None:
        self.keys = Keys()
        self.server = grpc.server(futures.ThreadPoolExecutor(4), interceptors=[self.keys])
        pb_grpc.add_AdminServiceServicer_to_server(Admin(), self.server)  # type: ignore[abstract]
        health_pb2_grpc.add_HealthServicer_to_server(health.HealthServicer(), self.server)
        if issued is None:
            port = self.server.add_insecure_port("127.0.0.1:0")
        else:
            credentials = grpc.ssl_server_credentials(
                [(issued.key, issued.certificate)], client_ca, client_ca is not None
            )
            port = self.server.add_secure_port("127.0.0.1:0", credentials)
        self.address = f"127.0.0.1:{port}"
        self.server.start()


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def started() -> Iterator[Any]:
    servers: list[Server] = []

    def start(*arguments: Any) -> Server:
        servers.append(Server(*arguments))
        return servers[-1]

    yield start
    for server in servers:
        server.server.stop(None).wait()


@pytest.fixture
def secure(started, authority) -> Server:
    """With TLS, for another host than loopback."""
    server: Server = started(authority.issue("lot.test", "127.0.0.1"))
    return server


@pytest.fixture
def ca(authority, tmp_path) -> Path:
    path: Path = tmp_path / "ca.pem"
    path.write_bytes(authority.pem)
    return path


# --- TLS ----------------------------------------------------------------------------------------


def test_a_server_with_tls_is_called_with_its_authority(runner, secure, ca):
    done = runner.invoke(app, ["namespaces", "-a", secure.address, "--tls-ca", str(ca)])
    assert done.exit_code == 0, done.output
    done = runner.invoke(app, ["health", "-a", secure.address, "--tls-ca", str(ca)])
    assert done.stdout == f"{secure.address}: SERVING\n"


def test_the_environment_may_name_the_files(runner, secure, ca, monkeypatch):
    monkeypatch.setenv("LOT_CLIENT_TLS_CA", str(ca))
    assert runner.invoke(app, ["namespaces", "-a", secure.address]).exit_code == 0


def test_an_unknown_authority_is_told(runner, secure, tmp_path):
    other = tmp_path / "other.pem"
    other.write_bytes(Authority("other").pem)
    failed = runner.invoke(app, ["namespaces", "-a", secure.address, "--tls-ca", str(other)])
    assert failed.exit_code == 1
    assert "hint: its certificate has expired, or its authority is not in --tls-ca" in failed.stderr


def test_a_certificate_for_another_host_is_told(runner, started, authority, ca):
    server = started(authority.issue("lot.test"))
    failed = runner.invoke(app, ["namespaces", "-a", server.address, "--tls-ca", str(ca)])
    assert failed.exit_code == 1
    assert "hint: its certificate is for another host name" in failed.stderr


def test_a_server_that_asks_for_a_client_certificate_gets_one(
    runner, started, authority, ca, tmp_path
):
    server = started(authority.issue("127.0.0.1"), authority.pem)
    call = ["namespaces", "-a", server.address, "--tls-ca", str(ca)]
    failed = runner.invoke(app, call)
    assert failed.exit_code == 1
    assert "it may require a client certificate (--tls-cert, --tls-key)" in failed.stderr
    certificate, key = authority.issue("agent.test").write(tmp_path, "agent")
    shown = ["--tls-cert", str(certificate), "--tls-key", str(key)]
    assert runner.invoke(app, call + shown).exit_code == 0
    half = runner.invoke(app, call + shown[:2])
    assert half.exit_code == 2
    assert "--tls-cert and --tls-key need each other" in half.stderr


def test_with_tls_to_a_server_without_it_and_the_other_way_round(runner, started, secure):
    plain = started()
    failed = runner.invoke(app, ["namespaces", "-a", plain.address, "--tls"])
    assert "hint: it does not use TLS there; try --plaintext" in failed.stderr
    failed = runner.invoke(app, ["namespaces", "-a", secure.address])
    assert "it may require TLS (--tls-ca)" in failed.stderr


def test_a_file_that_cannot_be_read_is_wrong_usage(runner, secure, tmp_path):
    missing = str(tmp_path / "missing.pem")
    failed = runner.invoke(app, ["namespaces", "-a", secure.address, "--tls-ca", missing])
    assert failed.exit_code == 2
    assert "cannot read" in failed.stderr
    failed = runner.invoke(
        app, ["namespaces", "-a", secure.address, "--plaintext", "--tls-ca", missing]
    )
    assert failed.exit_code == 2
    assert "certificates need TLS" in failed.stderr


# --- by the settings ----------------------------------------------------------------------------


@pytest.fixture
def configured(started, authority, tmp_path, monkeypatch) -> Server:
    """A server whose settings are those of the commands; its certificate names another host."""
    issued = authority.issue("*.example.test")
    certificate, key = issued.write(tmp_path, "server")
    server: Server = started(issued)
    monkeypatch.setenv("LOT_ADDRESS", server.address)
    monkeypatch.setenv("LOT_TLS_CERT", str(certificate))
    monkeypatch.setenv("LOT_TLS_KEY", str(key))
    return server


def test_commands_follow_the_settings(runner, configured):
    done = runner.invoke(app, ["namespaces"])
    assert done.exit_code == 0, done.output
    assert runner.invoke(app, ["health"]).stdout == f"{configured.address}: SERVING\n"


def test_a_server_that_shows_another_certificate_is_not_called_but_its_health_is_seen(
    runner, configured, authority, tmp_path
):
    """After a file was replaced by a bad one, say: the server goes on with the last good one."""
    authority.issue("other.test").write(tmp_path, "server")
    failed = runner.invoke(app, ["namespaces"], env={"LOT_CLIENT_API_KEY": KEY})
    assert failed.exit_code == 1
    assert configured.keys.seen == []
    assert runner.invoke(app, ["health"]).stdout == f"{configured.address}: SERVING\n"


def test_a_health_check_shows_a_client_certificate_where_one_is_required(
    runner, started, authority, tmp_path, monkeypatch
):
    issued = authority.issue("lot.test")
    certificate, key = issued.write(tmp_path, "server")
    server = started(issued, authority.pem)
    plain = started(issued)
    monkeypatch.setenv("LOT_ADDRESS", plain.address)
    monkeypatch.setenv("LOT_TLS_CERT", str(certificate))
    monkeypatch.setenv("LOT_TLS_KEY", str(key))
    monkeypatch.setenv("LOT_TLS_CLIENT_CA", str(certificate))
    monkeypatch.setenv("LOT_TLS_CLIENT_ADDRESS", server.address)
    assert runner.invoke(app, ["health"]).stdout == f"{plain.address}: SERVING\n"
    own, its_key = authority.issue("agent.test").write(tmp_path, "agent")
    monkeypatch.setenv("LOT_CLIENT_TLS_CERT", str(own))
    monkeypatch.setenv("LOT_CLIENT_TLS_KEY", str(its_key))
    assert runner.invoke(app, ["health"]).stdout == f"{server.address}: SERVING\n"
    assert runner.invoke(app, ["namespaces"]).exit_code == 0


def test_the_health_of_a_server_that_is_not_there(runner, configured):
    configured.server.stop(None).wait()
    failed = runner.invoke(app, ["health"])
    assert failed.exit_code == 1
    assert failed.stderr.endswith(": UNAVAILABLE\n")


# --- the API key --------------------------------------------------------------------------------


def test_the_key_is_sent_with_every_kind_of_call(runner, secure, ca, tmp_path, monkeypatch):
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    at = ["-a", secure.address, "--tls-ca", str(ca)]
    monkeypatch.setenv("LOT_CLIENT_API_KEY", "another")
    for call in (["namespaces"], ["reindex", "some-model"]):
        done = runner.invoke(app, [*call, *at, "--api-key-file", str(file)])
        assert done.exit_code == 0, done.output
    assert runner.invoke(app, ["namespaces", *at]).exit_code == 0
    assert secure.keys.seen == [f"Bearer {KEY}", f"Bearer {KEY}", "Bearer another"]


def test_health_sends_no_key(runner, secure, ca, monkeypatch):
    monkeypatch.setenv("LOT_CLIENT_API_KEY", KEY)
    runner.invoke(app, ["health", "-a", secure.address, "--tls-ca", str(ca)])
    assert secure.keys.seen == [""]


def test_a_key_goes_unencrypted_over_loopback_only(runner, started, monkeypatch):
    plain = started()
    monkeypatch.setenv("LOT_CLIENT_API_KEY", KEY)
    assert runner.invoke(app, ["namespaces", "-a", plain.address]).exit_code == 0
    assert plain.keys.seen == [f"Bearer {KEY}"]
    refused = runner.invoke(app, ["namespaces", "-a", "lot.invalid:1"])
    assert refused.exit_code == 2
    told = " ".join(refused.stderr.replace("│", "").split())
    assert "the API key is not sent to lot.invalid:1 unencrypted; use --tls" in told
    assert KEY not in refused.output
    by_name = runner.invoke(app, ["namespaces", "-a", "lot.invalid:1", "--plaintext"])
    assert "lot.invalid:1: UNAVAILABLE" in by_name.stderr


@pytest.mark.parametrize("key", ["two words", "schlüssel", "line\nbreak"])
def test_what_is_no_key_is_refused_and_not_shown(runner, started, monkeypatch, key):
    monkeypatch.setenv("LOT_CLIENT_API_KEY", key)
    refused = runner.invoke(app, ["namespaces", "-a", started().address])
    assert refused.exit_code == 2
    assert "LOT_CLIENT_API_KEY is not an API key" in refused.stderr
    assert key not in refused.output


def test_a_server_that_wants_a_key_says_where_it_comes_from(runner, authority):
    class Closed(pb_grpc.AdminServiceServicer):
        def ListNamespaces(self, request, context):
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "no credentials")

    from tests.cli.scripted import served

    with served(pb_grpc.add_AdminServiceServicer_to_server, Closed()) as address:  # type: ignore[abstract]
        failed = runner.invoke(app, ["namespaces", "-a", address])
    assert "hint: set the API key by LOT_CLIENT_API_KEY or --api-key-file FILE" in failed.stderr


def test_an_unreachable_server_is_no_problem_of_tls():
    assert tls_problem("Failed to connect to remote host: Connection refused", tls=True) == ""
