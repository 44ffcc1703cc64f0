"""A stand-in for an OIDC provider: keys, tokens, and a server on loopback for the keys."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from tests.auth.keys import NOW

ISSUER = "https://id.example"
AUDIENCE = "lot-grpc"


def private_key(kind: str, number: int = 0) -> Any:
    """A private key: ``RSA``, ``RSA1024``, ``EC`` or ``OKP``; the same for the same number."""
    return _made(kind, number)


@cache
def _made(kind: str, _: int) -> Any:
    if kind == "EC":
        return ec.generate_private_key(ec.SECP256R1())
    if kind == "OKP":
        return ed25519.Ed25519PrivateKey.generate()
    return rsa.generate_private_key(65537, 1024 if kind == "RSA1024" else 2048)


def published(kind: str, kid: str | None, number: int = 0, **more: Any) -> dict[str, Any]:
    """The public key as it is in a set."""
    algorithms: dict[str, Any] = {"EC": ECAlgorithm, "OKP": OKPAlgorithm}
    public = private_key(kind, number).public_key()
    entry: dict[str, Any] = json.loads(algorithms.get(kind, RSAAlgorithm).to_jwk(public))
    entry.pop("key_ops", None)
    return entry | ({"kid": kid} if kid is not None else {}) | more


def key_set(*entries: dict[str, Any]) -> bytes:
    return json.dumps({"keys": list(entries) or [published("RSA", "k1")]}).encode()


def payload(**more: Any) -> dict[str, Any]:
    """What a good token says; None leaves out."""
    now = int(NOW.timestamp())
    given = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "agent-7",
        "iat": now,
        "exp": now + 3600,
        "lot_namespaces": ["team-a:*", "shared"],
        "lot_role": "writer",
    } | more
    return {name: value for name, value in given.items() if value is not None}


def token(
    kind: str = "RSA",
    algorithm: str = "RS256",
    kid: str | None = "k1",
    *,
    number: int = 0,
    header: dict[str, Any] | None = None,
    **more: Any,
) -> str:
    headers = ({"kid": kid} if kid is not None else {}) | (header or {})
    content = json.dumps(payload(**more)).encode()
    return signed(content, kind, algorithm, number=number, header=headers)


def signed(
    content: bytes,
    kind: str = "RSA",
    algorithm: str = "RS256",
    *,
    number: int = 0,
    header: dict[str, Any],
) -> str:
    """A token with any content, also one that a library would refuse to sign."""
    return jwt.api_jws.encode(content, private_key(kind, number), algorithm, headers=header)


def coded(part: Any) -> str:
    text = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def unsigned(header: Any, claims: Any, signature: bytes = b"") -> str:
    """A token put together by hand."""
    return f"{coded(header)}.{coded(claims)}.{coded(signature)}"


@dataclass
class Issuer:
    """What the server answers, and how often it was asked."""

    url: str = ""
    content: bytes = field(default_factory=key_set)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    clock_behind: float = 0.0
    requests: int = 0
    waits: threading.Event | None = None
    """What it waits for before it answers."""


@contextmanager
def issuing() -> Iterator[Issuer]:
    """The provider on a free port of loopback."""
    state = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.requests += 1
            if state.waits is not None:
                state.waits.wait(30)
            self.send_response_only(state.status)
            self.send_header("Date", formatdate(time.time() - state.clock_behind, usegmt=True))
            self.send_header("Content-Length", str(len(state.content)))
            for name, value in state.headers.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(state.content)
            except ConnectionError:
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}/keys"
    try:
        yield state
    finally:
        if state.waits is not None:
            state.waits.set()
        server.shutdown()
        server.server_close()
        thread.join()
