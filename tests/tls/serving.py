"""A server with TLS in this process, and channels to it."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from lot_grpc.pb.lot.v1 import episode_service_pb2_grpc, pattern_service_pb2_grpc
from lot_grpc.server.build import LotServer, StandardServices, build_server
from lot_grpc.testing.certificates import Authority, Issued
from lot_grpc.tls.certificates import CertificateFiles
from lot_grpc.tls.reloading import ReloadedCertificates
from tests.server.doubles import Episodes, Patterns
from tests.server.wire import EPISODES, PATTERNS

NAME = "lot.example.test"
"""Whom the server's certificate is for, besides loopback."""


@dataclass
class Secured:
    """A server that is running; ``client_port`` asks for client certificates."""

    server: LotServer
    folder: Path
    port: int
    client_port: int
    certificates: ReloadedCertificates


@asynccontextmanager
async def secured(
    authority: Authority, folder: Path, standard_services: StandardServices | None = None
) -> AsyncIterator[Secured]:
    """Serve with a certificate of ``authority`` in ``folder``, which clients need one of too."""
    certificate, key = issue(authority).write(folder, "server")
    ca = folder / "ca.pem"
    ca.write_bytes(authority.pem)
    certificates = ReloadedCertificates(CertificateFiles(certificate, key, ca))
    server = build_server(
        {PATTERNS: Patterns(), EPISODES: Episodes()}, standard_services=standard_services
    )
    asking = certificates.credentials(client_certificates=True)
    client_port = server.listen("127.0.0.1:0", asking)
    port = await server.start("127.0.0.1:0", certificates.credentials(client_certificates=False))
    try:
        yield Secured(server, folder, port, client_port, certificates)
    finally:
        await server.stop(0)


def issue(authority: Authority, **options: Any) -> Issued:
    """A certificate for the server."""
    return authority.issue(NAME, "127.0.0.1", "localhost", **options)


def channel(port: int, roots: bytes, shown: Issued | None = None) -> grpc.aio.Channel:
    """A channel that trusts ``roots`` and shows a client certificate."""
    key, chain = (shown.key, shown.certificate) if shown else (None, None)
    credentials = grpc.ssl_channel_credentials(roots, key, chain)
    alone = [("grpc.use_local_subchannel_pool", 1)]  # no connection of another channel
    return grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials, options=alone)


def patterns(through: grpc.aio.Channel) -> Any:
    return pattern_service_pb2_grpc.PatternServiceStub(through)


def episodes(through: grpc.aio.Channel) -> Any:
    return episode_service_pb2_grpc.EpisodeServiceStub(through)


async def presented(port: int) -> bytes:
    """The certificate that a new connection is shown."""
    address = ("127.0.0.1", port)
    return (await asyncio.to_thread(ssl.get_server_certificate, address, timeout=10)).encode()


def handshake(port: int, version: ssl.TLSVersion) -> str | None:
    """The version that a client with just this one gets. Raises SSLError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")  # without it, old versions are not even tried
    context.minimum_version = context.maximum_version = version
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname=NAME) as encrypted,
    ):
        return encrypted.version()
