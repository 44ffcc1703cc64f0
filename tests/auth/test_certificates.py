"""Client certificates over TLS: the names that gRPC finds in them, mapped by the key file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import grpc.aio
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from lot_grpc.auth.authenticator import Authenticator
from lot_grpc.auth.keys import KeyVerifier
from lot_grpc.domain.access import Principal
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pb
from lot_grpc.pb.lot.v1.pattern_service_pb2_grpc import PatternServiceStub
from lot_grpc.server.build import build_server
from lot_grpc.server.guards import Guards
from tests.auth.keys import NOW, Clock, add_key, change_key
from tests.server.doubles import Patterns
from tests.server.wire import PATTERNS, failure

SPIFFE = "spiffe://example.org/importer"


class Pair(NamedTuple):
    """A certificate with its key, as PEM."""

    key: bytes
    certificate: bytes


class Authority:
    """An authority that signs certificates for servers and clients."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority")])
        authority = x509.BasicConstraints(ca=True, path_length=0)
        self.certificate = self._signed(self._key, self._name, authority)

    def issue(self, names: Iterable[x509.GeneralName], common_name: str = "x") -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])
        listed = list(names)
        extension = x509.SubjectAlternativeName(listed) if listed else None
        pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return Pair(pem, self._signed(key, name, extension))

    def _signed(
        self,
        key: ec.EllipticCurvePrivateKey,
        name: x509.Name,
        extension: x509.ExtensionType | None,
    ) -> bytes:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
        )
        if extension is not None:
            builder = builder.add_extension(extension, critical=False)
        signed = builder.sign(self._key, hashes.SHA256())
        return signed.public_bytes(serialization.Encoding.PEM)


@cache
def authority() -> Authority:
    return Authority()


class Seen:
    """An authenticator that keeps whom it found."""

    def __init__(self, path: Path) -> None:
        self._authenticator = Authenticator(KeyVerifier(path, Clock()), None)
        self.callers: list[Principal] = []

    async def authenticate(self, credentials) -> Principal:
        caller = await self._authenticator.authenticate(credentials)
        self.callers.append(caller)
        return caller


@asynccontextmanager
async def over_tls(path: Path, client: Pair) -> AsyncIterator[tuple[Any, Seen]]:
    """A stub that presents a certificate, and what the server made of it."""
    own, seen = authority().issue([x509.DNSName("localhost")]), Seen(path)
    server = build_server({PATTERNS: Patterns()}, guards=Guards(authenticator=seen))
    port = await server.start(
        "127.0.0.1:0",
        grpc.ssl_server_credentials(
            [own], root_certificates=authority().certificate, require_client_auth=True
        ),
    )
    credentials = grpc.ssl_channel_credentials(authority().certificate, *client)
    async with grpc.aio.secure_channel(f"localhost:{port}", credentials) as channel:
        try:
            yield PatternServiceStub(channel), seen
        finally:
            await server.stop(0)


def request() -> pb.GetPatternRequest:
    return pb.GetPatternRequest(pattern_id="p")


@pytest.mark.parametrize(
    ("name", "san"),
    [
        (x509.UniformResourceIdentifier(SPIFFE), SPIFFE),
        (x509.DNSName("importer.example.org"), "importer.example.org"),
        (x509.RFC822Name("importer@example.org"), "importer@example.org"),
        (x509.IPAddress(ip_address("192.0.2.7")), "192.0.2.7"),
    ],
)
async def test_a_name_of_any_kind_tells_who_calls(tmp_path, name, san):
    path = tmp_path / "keys.json"
    add_key(path, name="importer", san=san)
    other = x509.DNSName("other.example.org")
    async with over_tls(path, authority().issue([other, name])) as (patterns, seen):
        await patterns.GetPattern(request())
        assert [one.id for one in seen.callers] == [f"cert:{san}"]


async def test_only_alternative_names_count_and_only_those_of_the_file(tmp_path):
    path = tmp_path / "keys.json"
    add_key(path, name="importer", san=SPIFFE)
    for names in ([x509.DNSName("other.example.org")], [x509.DNSName("importer")]):
        async with over_tls(path, authority().issue(names, SPIFFE)) as (patterns, _):
            failed = await failure(patterns.GetPattern(request()))
            assert (failed.code, failed.reason) == ("UNAUTHENTICATED", "CREDENTIALS_INVALID")
    async with over_tls(path, authority().issue([], SPIFFE)) as (patterns, _):
        assert (await failure(patterns.GetPattern(request()))).code == "UNAUTHENTICATED"


async def test_a_key_may_be_sent_over_the_connection_of_a_certificate(tmp_path):
    path = tmp_path / "keys.json"
    text = add_key(path)
    add_key(path, name="importer", san=SPIFFE)
    pair = authority().issue([x509.UniformResourceIdentifier(SPIFFE)])
    async with over_tls(path, pair) as (patterns, seen):
        await patterns.GetPattern(request(), metadata=(("authorization", f"Bearer {text}"),))
        await patterns.GetPattern(request())
        assert [one.id for one in seen.callers] == ["key:planner", f"cert:{SPIFFE}"]
        wrong = (("authorization", f"Bearer {text[:-1]}"),)
        failed = await failure(patterns.GetPattern(request(), metadata=wrong))
        assert failed.reason == "CREDENTIALS_INVALID"


async def test_a_revoked_certificate_is_refused(tmp_path):
    path = tmp_path / "keys.json"
    add_key(path, name="importer", san=SPIFFE)
    change_key(path, "importer", revoke_time=NOW)
    pair = authority().issue([x509.UniformResourceIdentifier(SPIFFE)])
    async with over_tls(path, pair) as (patterns, _):
        failed = await failure(patterns.GetPattern(request()))
        assert failed.reason == "CREDENTIALS_INVALID"
