"""The connection to a server: where it is, TLS, and the API key."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import grpc
import typer
from typer import Option

from lot_grpc.cli.options import Config

if TYPE_CHECKING:
    from lot_grpc.settings import Settings

KEY_VARIABLE = "LOT_CLIENT_API_KEY"
"""The API key, which is never an argument: other users of the machine see those."""

_OPTIONS = (
    ("grpc.enable_http_proxy", 0),
    # Bytes; the server limits its responses, so there is no limit here.
    ("grpc.max_receive_message_length", -1),
    # Detects a silently broken connection even while nothing is sent on it. The server accepts a
    # ping every 10 s.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)
_ANY_HOST = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - to call a server bound there


def _checked_address(value: str) -> str:
    """Check an address as the settings do, so that a typo does not look like a server failure."""
    if not value:
        return value
    from lot_grpc.addresses import normal_address, split_address

    try:
        port = split_address(value)[1]
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if not port:
        raise typer.BadParameter("port 0 cannot be called; use the port that the server printed")
    return normal_address(value)


def reachable(address: str) -> str:
    """The address to call for a server that listens on ``address``."""
    from lot_grpc.addresses import split_address

    host, port = split_address(address)
    host = _ANY_HOST.get(host, host)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def connected(target: str) -> grpc.Channel:
    """A channel to the server, for use in a ``with``."""
    return grpc.insecure_channel(target, options=_OPTIONS)


Address = Annotated[
    str,
    Option(
        "--address",
        "-a",
        metavar="HOST:PORT",
        help="Server to call; defaults to the one in the settings.",
        callback=_checked_address,
    ),
]
_PEM: dict[str, Any] = {"metavar": "FILE", "show_default": False, "show_envvar": True}


@dataclass(frozen=True)
class Endpoint:
    """A server to call. ``pinned``: ``roots`` is the certificate in this server's settings."""

    target: str
    tls: bool = False
    roots: bytes | None = None
    certificate: bytes | None = field(default=None, repr=False)
    key: bytes | None = field(default=None, repr=False)
    pinned: bool = False

    def channel(self, api_key: str = "") -> grpc.Channel:
        """A channel, for use in a ``with``."""
        if not self.tls:
            channel = connected(self.target)
        else:
            # The address in the settings need not be one that the certificate names.
            named = (("grpc.ssl_target_name_override", _name_in(self.roots)),)
            channel = grpc.secure_channel(
                self.target,
                grpc.ssl_channel_credentials(self.roots, self.key, self.certificate),
                options=(*_OPTIONS, *named) if self.pinned else _OPTIONS,
            )
        return grpc.intercept_channel(channel, _Bearer(api_key)) if api_key else channel

    def as_presented(self) -> Endpoint:
        """The same, but trusting what the server shows now.

        For calls that send no secret: a running server may still use a certificate from before
        its file was replaced.
        """
        if not self.pinned:
            return self
        import ssl

        from lot_grpc.addresses import split_address

        shown: bytes | None = self.roots
        with suppress(OSError):  # if it cannot be reached, the call itself reports that
            shown = ssl.get_server_certificate(split_address(self.target), timeout=2).encode()
        return Endpoint(self.target, True, shown, self.certificate, self.key, pinned=True)


def _name_in(chain: bytes | None) -> str:
    """A host name that a certificate is for."""
    from lot_grpc.tls.certificates import names_in

    return next(iter(names_in(chain or b"")), "localhost").replace("*", "any")


@dataclass(frozen=True)
class Connection:
    """How to reach the server that a command calls."""

    address: Address = ""
    tls: Annotated[
        bool | None,
        Option(
            "--tls/--plaintext",
            show_default=False,
            help="Whether to use TLS; default: as in the settings, or plaintext with --address. An "
            "API key is sent unencrypted to another machine only with --plaintext.",
        ),
    ] = None
    tls_ca: Annotated[
        Path | None,
        Option(
            "--tls-ca",
            envvar="LOT_CLIENT_TLS_CA",
            help="Authorities (PEM) to trust for the server's certificate; implies --tls.",
            **_PEM,
        ),
    ] = None
    tls_cert: Annotated[
        Path | None,
        Option(
            "--tls-cert",
            envvar="LOT_CLIENT_TLS_CERT",
            help="Client certificate to present (PEM); implies --tls.",
            **_PEM,
        ),
    ] = None
    tls_key: Annotated[
        Path | None,
        Option("--tls-key", envvar="LOT_CLIENT_TLS_KEY", help="Its private key (PEM).", **_PEM),
    ] = None
    api_key_file: Annotated[
        Path | None,
        Option(
            "--api-key-file",
            envvar="LOT_CLIENT_API_KEY_FILE",
            help="File with the API key; default: the variable LOT_CLIENT_API_KEY.",
            **_PEM,
        ),
    ] = None
    config: Config = None

    @property
    def target(self) -> str:
        """The address to call.

        Raises:
            SettingsError: No address is given, and the settings are invalid.
        """
        return self.endpoint.target

    @cached_property
    def endpoint(self) -> Endpoint:
        """Where and how to connect. Raises SettingsError as ``target``, or BadParameter."""
        files = (self.tls_ca, self.tls_cert, self.tls_key)
        if (self.tls_cert is None) != (self.tls_key is None):
            raise typer.BadParameter("--tls-cert and --tls-key need each other; give both")
        if self.tls is False and any(files):
            raise typer.BadParameter("certificates need TLS; omit either them or --plaintext")
        given = True if any(files) else self.tls
        roots, certificate, key = (_read(path) if path else None for path in files)
        if self.address:
            return Endpoint(self.address, bool(given), roots, certificate, key)
        settings = self._settings()
        target = settings.server.address
        if certificate and settings.tls.client_address:
            target = settings.tls.client_address
        tls = settings.tls.enabled if given is None else given
        pinned = tls and roots is None and settings.tls.cert is not None
        if pinned and settings.tls.cert:
            roots = _read(settings.tls.cert)
        return Endpoint(reachable(target), tls, roots, certificate, key, pinned=pinned)

    def channel(self) -> grpc.Channel:
        """A channel that sends the API key, for use in a ``with``.

        Raises:
            SettingsError: As ``target``.
            BadParameter: A file cannot be used, or the key would be sent unencrypted.
        """
        return self.endpoint.channel(self._api_key())

    def _settings(self) -> Settings:
        from lot_grpc.settings_file import load_settings

        return load_settings(self.config)

    def _api_key(self) -> str:
        """The key to send; empty for none."""
        from lot_grpc.addresses import is_loopback, split_address

        stored = _read(self.api_key_file).decode(errors="replace") if self.api_key_file else None
        key = (os.environ.get(KEY_VARIABLE, "") if stored is None else stored).strip()
        if not key:
            return ""
        if not key.isascii() or not key.isprintable() or " " in key:
            place = self.api_key_file or KEY_VARIABLE
            raise typer.BadParameter(
                f"{place} is not an API key: a key is ASCII text without spaces"
            )
        at = self.endpoint
        if not at.tls and self.tls is None and not is_loopback(split_address(at.target)[0]):
            raise typer.BadParameter(
                f"the API key is not sent to {at.target} unencrypted; use --tls or --tls-ca FILE, "
                "or --plaintext if nobody can listen on the network path"
            )
        return key


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"cannot read {path}: {error.strerror or error}") from None


class _Details(NamedTuple):
    """The details of a call; gRPC's own class cannot be instantiated."""

    method: str
    timeout: float | None
    metadata: Any
    credentials: grpc.CallCredentials | None
    wait_for_ready: bool | None
    compression: grpc.Compression | None


class _Bearer(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamUnaryClientInterceptor,
    grpc.StreamStreamClientInterceptor,
):
    """Sends the key with each call."""

    def __init__(self, key: str) -> None:
        self._metadata = (("authorization", f"Bearer {key}"),)

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        return continuation(self._with_key(details), request)

    def intercept_unary_stream(self, continuation: Any, details: Any, request: Any) -> Any:
        return continuation(self._with_key(details), request)

    def intercept_stream_unary(self, continuation: Any, details: Any, requests: Any) -> Any:
        return continuation(self._with_key(details), requests)

    def intercept_stream_stream(self, continuation: Any, details: Any, requests: Any) -> Any:
        return continuation(self._with_key(details), requests)

    def _with_key(self, details: Any) -> _Details:
        metadata = (*(details.metadata or ()), *self._metadata)
        return _Details(
            details.method,
            details.timeout,
            metadata,
            details.credentials,
            details.wait_for_ready,
            details.compression,
        )


_PROBLEMS = {
    "CERTIFICATE_VERIFY_FAILED": "its certificate has expired, or its authority is not in --tls-ca",
    "Hostname": "its certificate is for another host name; give --address one that it names",
    "WRONG_VERSION_NUMBER": "it does not use TLS there; try --plaintext",
}


def tls_problem(details: str, *, tls: bool) -> str:
    """Why a server cannot be reached, if gRPC's text shows that TLS is the reason; else empty."""
    for sign, problem in _PROBLEMS.items():
        if sign in details:
            return problem
    if "Socket closed" in details or "Connection reset" in details:
        needed = "a client certificate (--tls-cert, --tls-key)" if tls else "TLS (--tls-ca)"
        return f"it closed the connection; it may require {needed}"
    return ""
