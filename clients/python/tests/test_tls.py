"""TLS against a real server, and who is sent an API key."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
from either import Either
from lot_client import LotError, RetryPolicy, Tls
from lot_client.pb.lot.v1 import admin_service_pb2 as pb
from lot_client.pb.lot.v1 import admin_service_pb2_grpc as pb_grpc

KEY = "lot_k1_secret"


def given(name: str) -> str:
    found = os.environ.get(name)
    if not found:
        pytest.skip(f"{name} names no server; `make test-python` starts one")
    return found


@pytest.fixture
def folder() -> Path:
    return Path(given("LOT_TEST_TLS_FOLDER"))


@pytest.fixture
def secured() -> str:
    return given("LOT_TEST_TLS_ADDRESS")


@pytest.fixture
def for_agents() -> str:
    """Where a client certificate is needed."""
    return given("LOT_TEST_TLS_CLIENT_ADDRESS")


async def test_a_server_with_tls_is_used_like_any(
    either: Either, secured: str, folder: Path, namespace: str
) -> None:
    tls = Tls(ca_file=folder / "ca.pem")
    async with either(secured, namespace=namespace, tls=tls) as client:
        saved = await client.save_pattern("Rename a branch in git")
        other = client.using(namespace=f"{namespace}-2")
        assert (await client.get_pattern(saved.pattern.pattern_id)).task == saved.pattern.task
        with pytest.raises(LotError, match="PATTERN_NOT_FOUND"):
            await other.get_pattern(saved.pattern.pattern_id)
        async with client.recorder("A task") as recorder:
            await recorder.record("step")


async def test_a_client_certificate_is_shown(
    either: Either, for_agents: str, folder: Path, namespace: str
) -> None:
    own = Tls(folder / "ca.pem", folder / "agent.pem", folder / "agent.key")
    async with either(for_agents, namespace=namespace, tls=own) as client:
        assert (await client.save_pattern("Rename a branch in git")).created
    without = Tls(folder / "ca.pem")
    once = RetryPolicy(attempts=1)
    async with either(for_agents, tls=without, retry=once) as client:
        with pytest.raises(LotError) as caught:
            await client.list_patterns().__anext__()
    assert caught.value.code is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    "tls", [{"ca_file": "stranger.pem"}, {"ca_file": "ca.pem", "server_name": "elsewhere.test"}]
)
async def test_a_server_that_is_not_trusted_fails_at_once(
    either: Either, secured: str, folder: Path, tls: dict[str, str]
) -> None:
    at = Tls(**{**tls, "ca_file": folder / tls["ca_file"]})
    async with either(secured, tls=at) as client:
        with pytest.raises(LotError) as caught:
            await client.save_pattern("Rename a branch in git")
    assert caught.value.code is grpc.StatusCode.UNAVAILABLE
    assert caught.value.tries == 1


async def test_the_name_of_the_server_may_be_given(
    either: Either, secured: str, folder: Path, namespace: str
) -> None:
    tls = Tls(ca_file=folder / "ca.pem", server_name="localhost")
    async with either(secured, namespace=namespace, tls=tls) as client:
        assert (await client.save_pattern("Rename a branch in git")).created


def test_half_a_pair_is_refused() -> None:
    with pytest.raises(ValueError, match="cert_file and key_file need each other"):
        Tls(cert_file="agent.pem")


async def test_a_file_that_is_not_there_is_told(either: Either, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        either("127.0.0.1:1", tls=Tls(ca_file=tmp_path / "missing.pem"))


# --- the API key --------------------------------------------------------------------------------


class Seen(grpc.ServerInterceptor):
    def __init__(self) -> None:
        self.keys: list[Any] = []
        self.other: list[Any] = []

    def intercept_service(self, continuation: Any, details: Any) -> Any:
        sent = dict(details.invocation_metadata)
        self.keys.append(sent.get("authorization"))
        self.other.append(sent.get("x-other"))
        return continuation(details)


class Admin(pb_grpc.AdminServiceServicer):
    def ListNamespaces(self, request: Any, context: Any) -> Any:  # noqa: N802
        return pb.ListNamespacesResponse()


@pytest.fixture
def seen() -> Iterator[tuple[str, Seen]]:
    """A server on loopback, and what it was sent."""
    kept = Seen()
    server = grpc.server(futures.ThreadPoolExecutor(4), interceptors=[kept])
    pb_grpc.add_AdminServiceServicer_to_server(Admin(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}", kept
    server.stop(0).wait()


async def test_the_key_is_sent_with_each_call(either: Either, seen: tuple[str, Seen]) -> None:
    address, kept = seen
    async with either(address, api_key=KEY) as client:
        request = pb.ListNamespacesRequest()
        await client.call(client.admin.ListNamespaces, request)
        other = client.using(namespace="team-b")
        await other.call(other.admin.ListNamespaces, request)
        with pytest.raises(LotError, match="UNIMPLEMENTED"):
            async for _ in client.watch_changes():
                pass
    assert kept.keys == [f"Bearer {KEY}"] * 3


def test_a_stub_sends_it_beside_other_metadata(seen: tuple[str, Seen]) -> None:
    from lot_client import LotClient

    address, kept = seen
    with LotClient(address, api_key=KEY) as client:
        stub = client.admin.ListNamespaces
        metadata = (("x-other", "y"),)
        stub(pb.ListNamespacesRequest(), metadata=metadata)
        stub.with_call(pb.ListNamespacesRequest(), metadata=metadata)
        stub.future(pb.ListNamespacesRequest(), metadata=metadata).result()
        with pytest.raises(grpc.RpcError):
            list(client.episodes.RecordEvents(iter(()), metadata=metadata))
    assert kept.keys == [f"Bearer {KEY}"] * 4
    assert kept.other == ["y"] * 4


async def test_without_a_key_none_is_sent(either: Either, seen: tuple[str, Seen]) -> None:
    address, kept = seen
    async with either(address) as client:
        await client.call(client.admin.ListNamespaces, pb.ListNamespacesRequest())
    assert kept.keys == [None]


@pytest.mark.parametrize("address", ["lot.example.test:50051", "10.0.0.7:50051", "[fe80::1]:50051"])
async def test_a_key_is_not_sent_unencrypted_beyond_loopback(either: Either, address: str) -> None:
    with pytest.raises(ValueError, match=r"is not sent to .* unencrypted: pass tls=") as caught:
        either(address, api_key=KEY)
    assert KEY not in str(caught.value)
    async with either(address, api_key=KEY, allow_plaintext_key=True):
        pass
    async with either(address, api_key=KEY, tls=Tls()):
        pass


@pytest.mark.parametrize("address", ["localhost:1", "127.0.0.1:1", "127.9.9.9:1", "[::1]:1"])
async def test_over_loopback_it_is(either: Either, address: str) -> None:
    async with either(address, api_key=KEY):
        pass


async def test_a_key_for_this_machine_does_not_go_through_a_proxy(
    either: Either, seen: tuple[str, Seen], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, kept = seen
    for name in ("no_proxy", "no_grpc_proxy", "grpc_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        proxy.setblocking(False)
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.getsockname()[1]}")
        async with either(address, api_key=KEY, deadline=3) as client:
            await client.call(client.admin.ListNamespaces, pb.ListNamespacesRequest())
        with pytest.raises(BlockingIOError):
            proxy.accept()
    assert kept.keys == [f"Bearer {KEY}"]


@pytest.mark.parametrize("key", ["two words", "schlüssel", "line\nbreak"])
async def test_what_is_no_key_is_refused_and_not_shown(either: Either, key: str) -> None:
    with pytest.raises(ValueError, match="api_key is not an API key") as caught:
        either("127.0.0.1:1", api_key=key)
    assert key not in str(caught.value)


def test_a_channel_of_ones_own_takes_no_key() -> None:
    from lot_client import LotClient

    with (
        grpc.insecure_channel("127.0.0.1:1") as channel,
        pytest.raises(ValueError, match="tls and api_key are for a new channel"),
    ):
        LotClient(channel=channel, api_key=KEY)
