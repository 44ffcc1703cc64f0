"""A service with TLS as an operator runs it: grpcurl, commands, and certificates renewed."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from lot_grpc.testing.certificates import Authority
from tests.e2e.conftest import Serve
from tests.e2e.process import PATIENCE, Ran, run, wait_for

GRPCURL = Path(sys.executable).with_name("grpcurl")
DAY = timedelta(days=1)

needs_grpcurl = pytest.mark.skipif(
    not GRPCURL.exists(), reason="needs grpcurl beside the interpreter"
)


def grpcurl(folder: Path, address: str, *options: str) -> Ran:
    """CheckReady, by a client that knows no more than its options; their files are in a folder."""
    method = "lot.v1.AdminService/CheckReady"
    done = subprocess.run(
        [GRPCURL, "-max-time", "60", *options, address, method],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


@needs_grpcurl
def test_grpcurl_needs_the_authority_and_the_right_name(secured):
    address = secured.served.address
    (secured.folder / "stranger.pem").write_bytes(Authority("a stranger").pem)
    assert json.loads(grpcurl(secured.folder, address, "-cacert", "ca.pem").stdout)["ready"]
    for options, why in (
        (["-cacert", "stranger.pem"], "certificate signed by unknown authority"),
        (["-cacert", "ca.pem", "-servername", "elsewhere.test"], "elsewhere.test"),
        (["-plaintext"], ""),
    ):
        failed = grpcurl(secured.folder, address, *options)
        assert failed.code != 0
        assert why in failed.stderr


@needs_grpcurl
def test_grpcurl_needs_a_good_client_certificate_where_one_is_required(secured):
    address, folder = secured.served.client_address, secured.folder
    stranger = Authority("a stranger").issue("spiffe://example.test/agent")
    stranger.write(folder, "foreign")
    late = secured.authority.issue("spiffe://example.test/agent", since=-9 * DAY, until=-DAY)
    late.write(folder, "late")
    trusting = ["-cacert", "ca.pem"]
    own = [*trusting, "-cert", "agent.pem", "-key", "agent.key"]
    assert json.loads(grpcurl(secured.folder, address, *own).stdout)["ready"]
    assert grpcurl(secured.folder, address, *trusting).code != 0
    for name in ("foreign", "late"):
        shown = [*trusting, "-cert", f"{name}.pem", "-key", f"{name}.key"]
        assert grpcurl(secured.folder, address, *shown).code != 0


def tls(folder: Path, authority: Authority, **options: Any) -> dict[str, str]:
    """The settings of a server with a certificate in a folder."""
    certificate, key = authority.issue("lot.example.test", **options).write(folder, "server")
    return {"LOT_TLS_CERT": str(certificate), "LOT_TLS_KEY": str(key)}


def test_a_certificate_is_renewed_while_a_stream_is_open(serve: Serve, data, tmp_path):
    authority = Authority()
    served = serve(data, tls(tmp_path, authority))
    address = ("127.0.0.1", served.port)
    first = ssl.get_server_certificate(address, timeout=60)
    credentials = grpc.ssl_channel_credentials(authority.pem)
    named = [("grpc.ssl_target_name_override", "lot.example.test")]
    with grpc.secure_channel(served.address, credentials, options=named) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        watch = stub.Watch(health_pb2.HealthCheckRequest())
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVING

        successor = Authority("its successor")
        renewed = successor.issue("lot.example.test")
        renewed.write(tmp_path, "server")
        wait_for(lambda: "reloaded certificates" in served.logged())  # without any caller
        shown = ssl.get_server_certificate(address, timeout=60)
        assert shown.encode() == renewed.certificate
        assert shown != first
        if GRPCURL.exists():
            for trusted, code in ((authority, 1), (successor, 0)):
                (tmp_path / "ca.pem").write_bytes(trusted.pem)
                trusting = ["-cacert", "ca.pem", "-servername", "lot.example.test"]
                assert grpcurl(tmp_path, served.address, *trusting).code == code

        (tmp_path / "server.key").write_text("broken")
        wait_for(lambda: "cannot use the changed certificates" in served.logged())
        assert ssl.get_server_certificate(address, timeout=60).encode() == renewed.certificate
        assert watch.is_active()
        served.process.terminate()
        assert next(watch).status == health_pb2.HealthCheckResponse.NOT_SERVING
    assert served.process.wait(PATIENCE) == 0
    assert served.logged().count("cannot use the changed certificates") == 1


def test_commands_call_the_server_of_their_settings_with_tls(serve: Serve, data, tmp_path):
    settings = tls(tmp_path, Authority())
    served = serve(data, settings)
    there = {**settings, "LOT_ADDRESS": served.address}
    for command in (["health"], ["stats", "--json"], ["export", str(tmp_path / "all.lot")]):
        done = run(data, *command, settings=there)
        assert done.code == 0, done.stderr


def test_what_start_says_to_try_works(serve: Serve, data, tmp_path):
    settings = tls(tmp_path, Authority())
    served = serve(data, settings)
    wait_for(lambda: len(served.lines) == 2)
    command, _, condition = served.lines[1].removeprefix("try: ").partition("  # ")
    assert condition == "with the same settings\n"
    done = run(data, *command.split()[1:], settings={**settings, "LOT_ADDRESS": served.address})
    assert done.code == 0, done.stderr


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda s, f, a: Path(s["LOT_TLS_KEY"]).unlink(), "cannot read"),
        (lambda s, f, a: Path(s["LOT_TLS_CERT"]).write_text("x"), "has no certificate in PEM"),
        (lambda s, f, a: Path(s["LOT_TLS_KEY"]).write_bytes(a.issue("x").key), "is not the key of"),
        (lambda s, f, a: tls(f, a, since=-9 * DAY, until=-DAY), "expired on"),
    ],
)
def test_bad_files_are_told_by_check_and_refused_at_the_start(data, tmp_path, change, told):
    authority = Authority()
    settings = tls(tmp_path, authority)
    change(settings, tmp_path, authority)
    checked = run(data, "check", settings=settings)
    assert checked.code == 1
    assert told in checked.stdout
    refused = run(data, "serve", settings=settings)
    assert refused.code == 1
    assert told in refused.errors


def test_what_should_be_changed_is_told_by_check_and_at_the_start(serve: Serve, data, tmp_path):
    settings = tls(tmp_path, Authority(), until=9 * DAY)
    Path(settings["LOT_TLS_KEY"]).chmod(0o644)
    checked = run(data, "check", settings=settings)
    assert checked.code == 0, checked.stdout
    lines = [line.split(maxsplit=2) for line in checked.stdout.splitlines() if " tls " in line]
    assert [line[:2] for line in lines] == [["ok", "tls"]] * 3
    assert "lot.example.test, until" in lines[0][2]
    assert "expires on" in lines[1][2]
    assert "every user of this machine may open" in lines[2][2]
    served = serve(data, settings)
    assert served.logged().count("TLS needs attention") == 2


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"LOT_ADDRESS": "0.0.0.0:0"}, ["LOT_ALLOW_PLAINTEXT=true", "LOT_ALLOW_ANONYMOUS=true"]),
        ({"LOT_ADDRESS": "0.0.0.0:0", "LOT_ALLOW_PLAINTEXT": "true"}, ["LOT_ALLOW_ANONYMOUS=true"]),
        ({"LOT_ADDRESS": "0.0.0.0:0", "LOT_ALLOW_ANONYMOUS": "true"}, ["LOT_ALLOW_PLAINTEXT=true"]),
    ],
)
def test_an_address_beyond_loopback_is_refused(data, given: Mapping[str, str], told: list[str]):
    refused = run(data, "serve", settings=given)
    assert refused.code == 2
    for one in ("LOT_ALLOW_PLAINTEXT=true", "LOT_ALLOW_ANONYMOUS=true"):
        assert (one in refused.errors) == (one in told)


def test_connections_that_fail_neither_end_serving_nor_alarm_anybody(serve: Serve, data, tmp_path):
    authority = Authority()
    ca = tmp_path / "ca.pem"
    ca.write_bytes(authority.pem)
    both = {"LOT_TLS_CLIENT_CA": str(ca), "LOT_TLS_CLIENT_ADDRESS": "127.0.0.1:0"}
    served = serve(data, {**tls(tmp_path, authority), **both})
    distrusting = ssl.create_default_context()
    careless = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    careless.check_hostname, careless.verify_mode = False, ssl.CERT_NONE
    for address in (served.address, served.client_address):
        at = ("127.0.0.1", int(address.rpartition(":")[2]))
        for noise in (b"GET / HTTP/1.1\r\n\r\n", bytes(500), b"\x16\x03\x01" + bytes(100)):
            with socket.create_connection(at, timeout=60) as out:
                out.sendall(noise)
                out.shutdown(socket.SHUT_WR)
                out.recv(1000)
        for context in (distrusting, careless):  # the second one without h2, or a certificate
            with (
                socket.create_connection(at, timeout=60) as plain,
                suppress(OSError),
                context.wrap_socket(plain, server_hostname="lot.example.test") as out,
            ):
                out.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
                out.recv(1000)
    settings = {**tls(tmp_path, authority), "LOT_ADDRESS": served.address}  # and renewed
    assert run(data, "health", settings=settings).code == 0
    assert served.stop() == 0
    lines = [line for line in served.logged().splitlines() if line.startswith("{")]
    assert {json.loads(line)["level"] for line in lines} == {"info"}, lines
