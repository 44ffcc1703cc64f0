"""TLS and API keys, for both clients."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import grpc

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Tls:
    """An encrypted connection. Files are PEM, and read when the client is created.

    Attributes:
        ca_file: certificates that vouch for the server's; None: public authorities, as gRPC has
            them.
        cert_file: certificate to show, for a server that requires one; its chain may follow in it.
        key_file: the private key of ``cert_file``.
        server_name: host name to expect in the server's certificate; empty: that of the address.
    """

    ca_file: str | Path | None = None
    cert_file: str | Path | None = None
    key_file: str | Path | None = None
    server_name: str = ""

    def __post_init__(self) -> None:
        """Refuse half a pair.

        Raises:
            ValueError: only one of ``cert_file`` and ``key_file`` is given.
        """
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file need each other; give both, or neither")

    def credentials(self) -> grpc.ChannelCredentials:
        """What gRPC needs of the files. Raises OSError if one cannot be read."""
        ca, key, cert = (
            Path(file).read_bytes() if file is not None else None
            for file in (self.ca_file, self.key_file, self.cert_file)
        )
        return grpc.ssl_channel_credentials(ca, key, cert)

    def options(self) -> tuple[tuple[str, str], ...]:
        """Options of the channel."""
        name = self.server_name
        return (("grpc.ssl_target_name_override", name),) if name else ()


def check_api_key(key: str, address: str, tls: Tls | None, *, plaintext: bool) -> None:
    """Refuse a key that is none, or that others could read on its way.

    Raises:
        ValueError: why, without the key.
    """
    if not key:
        return
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError("api_key is not an API key: a key is ASCII text without spaces")
    if tls is None and not plaintext and not _is_loopback(address):
        raise ValueError(
            f"the API key is not sent to {address} unencrypted: pass tls=Tls(…), or "
            "allow_plaintext_key=True if nobody can listen on the network path"
        )


def proxy_options(address: str) -> tuple[tuple[str, int], ...]:
    """Options of a channel: what is for this machine goes through no proxy of the environment."""
    return (("grpc.enable_http_proxy", 0),) if _is_loopback(address) else ()


def _is_loopback(address: str) -> bool:
    """Whether only this machine is reached; a name other than localhost may be any."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def with_api_key(channel: C, key: str) -> C:
    """A channel, sync or asyncio, that sends ``key`` with each call; the same one without a key."""
    return cast("C", _KeyChannel(channel, key)) if key else channel


class _KeyChannel:
    """Adds the key to calls. Not an interceptor, which for `grpc.aio` costs a task a call."""

    def __init__(self, channel: Any, key: str) -> None:
        self._channel = channel
        self._metadata = (("authorization", f"Bearer {key}"),)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    def unary_unary(self, *arguments: Any, **options: Any) -> Any:
        return _KeyCalls(self._channel.unary_unary(*arguments, **options), self._metadata)

    def unary_stream(self, *arguments: Any, **options: Any) -> Any:
        return _KeyCalls(self._channel.unary_stream(*arguments, **options), self._metadata)

    def stream_unary(self, *arguments: Any, **options: Any) -> Any:
        return _KeyCalls(self._channel.stream_unary(*arguments, **options), self._metadata)

    def stream_stream(self, *arguments: Any, **options: Any) -> Any:
        return _KeyCalls(self._channel.stream_stream(*arguments, **options), self._metadata)


class _KeyCalls:
    """A method of a stub that sends the key."""

    def __init__(self, method: Any, metadata: tuple[tuple[str, str], ...]) -> None:
        self._method = method
        self._metadata = metadata

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._made(self._method, arguments, options)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """`future` and `with_call`."""
        method = getattr(self._method, name)
        return lambda *arguments, **options: self._made(method, arguments, options)

    def _made(self, method: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        metadata = (*(options.pop("metadata", None) or ()), *self._metadata)
        return method(*arguments, metadata=metadata, **options)
