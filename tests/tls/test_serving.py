"""A server with TLS as its callers see it."""

from __future__ import annotations

import asyncio
import ssl
import warnings
from datetime import timedelta
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from lot_grpc.server.build import StandardServices
from tests.server.doubles import batch
from tests.server.wire import save, wire
from tests.tls.serving import (
    channel,
    episodes,
    handshake,
    issue,
    patterns,
    presented,
    secured,
)

DAY = timedelta(days=1)


async def refusal(through: grpc.aio.Channel) -> str:
    """gRPC's text about a connection that must fail."""
    async with through:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await patterns(through).SavePattern(save(), timeout=10)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    return caught.value.details() or ""


async def test_calls_are_encrypted_and_need_the_right_authority(authority, stranger, tmp_path):
    async with secured(authority, tmp_path) as it:
        async with channel(it.port, authority.pem) as through:
            assert await patterns(through).SavePattern(save())
        assert "CERTIFICATE_VERIFY_FAILED" in await refusal(channel(it.port, stranger.pem))
        plain = grpc.aio.insecure_channel(f"127.0.0.1:{it.port}")
        assert await refusal(plain)


async def test_a_certificate_for_another_host_is_refused_by_clients(authority, tmp_path):
    async with secured(authority, tmp_path) as it:
        authority.issue("elsewhere.test").write(tmp_path, "server")
        assert "Hostname" in await refusal(channel(it.port, authority.pem))


@pytest.mark.parametrize("which", ["port", "client_port"])
async def test_versions_before_1_2_are_refused(authority, tmp_path, which):
    async with secured(authority, tmp_path) as it:
        port = getattr(it, which)
        for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                with pytest.raises(OSError) as caught:
                    await asyncio.to_thread(handshake, port, version)
            # It was sent, and refused by the other side.
            assert "NO_PROTOCOLS_AVAILABLE" not in str(caught.value)
        assert await asyncio.to_thread(handshake, it.port, ssl.TLSVersion.TLSv1_2) == "TLSv1.2"
        assert await asyncio.to_thread(handshake, it.port, ssl.TLSVersion.TLSv1_3) == "TLSv1.3"


async def test_the_address_for_clients_with_certificates_refuses_those_without_a_good_one(
    authority, stranger, tmp_path
):
    async with secured(authority, tmp_path) as it:
        own = authority.issue("spiffe://example.test/agent")
        async with channel(it.client_port, authority.pem, own) as through:
            assert await patterns(through).SavePattern(save())
        expired = authority.issue("spiffe://example.test/agent", since=-9 * DAY, until=-DAY)
        foreign = stranger.issue("spiffe://example.test/agent")
        for shown in (None, expired, foreign):
            assert await refusal(channel(it.client_port, authority.pem, shown))
        async with channel(it.port, authority.pem) as through:
            assert await patterns(through).SavePattern(save())


async def test_a_new_certificate_is_used_while_a_stream_lives_on(authority, tmp_path):
    async with secured(authority, tmp_path) as it, channel(it.port, authority.pem) as through:
        call = episodes(through).RecordEvents()
        await call.write(batch(1))
        assert (await call.read()).last_sequence == 1
        first = await presented(it.port)

        renewed = issue(authority)
        renewed.write(tmp_path, "server")
        assert await presented(it.port) == renewed.certificate != first
        assert await presented(it.client_port) == renewed.certificate
        await call.write(batch(2))
        assert (await call.read()).last_sequence == 2
        async with channel(it.port, authority.pem) as another:
            assert await patterns(another).SavePattern(save())

        (tmp_path / "server.pem").write_text("broken")
        assert await presented(it.port) == renewed.certificate
        async with channel(it.port, authority.pem) as another:
            assert await patterns(another).SavePattern(save())
        await call.write(batch(3))
        assert (await call.read()).last_sequence == 3
        call.cancel()


async def test_another_authority_of_clients_is_taken_over(authority, stranger, tmp_path):
    async with secured(authority, tmp_path) as it:
        theirs = stranger.issue("spiffe://example.test/agent")
        assert await refusal(channel(it.client_port, authority.pem, theirs))
        (tmp_path / "ca.pem").write_bytes(stranger.pem)
        async with channel(it.client_port, authority.pem, theirs) as through:
            assert await patterns(through).SavePattern(save())
        own = authority.issue("spiffe://example.test/agent")
        assert await refusal(channel(it.client_port, authority.pem, own))


async def test_the_server_itself_notices_changed_files_without_a_caller(
    authority, tmp_path, monkeypatch
):
    monkeypatch.setattr("lot_grpc.server.serving_loop._WATCH_SECONDS", 0.01)
    monkeypatch.setattr("lot_grpc.server.serving_loop.watch_port.__defaults__", (0.01,))
    async with secured(authority, tmp_path) as it:
        renewed = issue(authority)
        renewed.write(tmp_path, "server")
        async with asyncio.timeout(60):
            while it.certificates.current.chain != renewed.certificate:
                await asyncio.sleep(0.01)
        assert not it.server.failed.done()


# --- health and reflection ----------------------------------------------------------------------


async def _offered(through: grpc.aio.Channel) -> tuple[Any, Any]:
    """What health and reflection answer: the status, and the services, or the code."""
    health: Any = health_pb2_grpc.HealthStub(through)
    made: Any = reflection_pb2_grpc.ServerReflectionStub
    reflection = made(through)
    answers: list[Any] = []
    try:
        answers.append((await health.Check(health_pb2.HealthCheckRequest())).status)
    except grpc.aio.AioRpcError as error:
        answers.append(error.code())
    call = reflection.ServerReflectionInfo()
    try:
        await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
        listed = (await call.read()).list_services_response.service
        answers.append({one.name for one in listed})
    except grpc.aio.AioRpcError as error:
        answers.append(error.code())
    call.cancel()
    return answers[0], answers[1]


@pytest.mark.parametrize("health", [True, False])
@pytest.mark.parametrize("reflection", [True, False])
async def test_health_and_reflection_have_their_own_switches(
    authority, tmp_path, health, reflection
):
    absent = grpc.StatusCode.UNIMPLEMENTED
    standard_services = StandardServices(health=health, reflection=reflection)
    async with (
        secured(authority, tmp_path, standard_services) as it,
        channel(it.port, authority.pem) as through,
    ):
        status, services = await _offered(through)
        assert status == (health_pb2.HealthCheckResponse.SERVING if health else absent)
        if reflection:
            assert "lot.v1.PatternService" in services
            assert ("grpc.health.v1.Health" in services) == health
        else:
            assert services is absent
        assert await patterns(through).SavePattern(save())


async def test_a_caller_with_tls_to_a_server_without_it_fails_at_once(authority):
    async with wire() as it:
        assert "WRONG_VERSION_NUMBER" in await refusal(channel(it.port, authority.pem))
