"""Proving that nothing needs the network: name look-ups and connections are refused and noted."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

_CONNECTING = ("connect", "connect_ex", "sendto")


class NetworkBlockedError(ConnectionRefusedError):
    """A connection that was tried although the network is blocked."""


@contextmanager
def network_blocked(allowed_hosts: Collection[str] = ()) -> Iterator[list[str]]:
    """Refuse every connection of Python code but those to ``allowed_hosts``.

    Native code that opens sockets by itself is not caught: gRPC does, and ONNX Runtime's telemetry
    would if ``lot_grpc.embedding`` did not turn it off.

    Yields:
        The hosts that were tried, in order, filled as it goes.
    """
    tried: list[str] = []
    allowed = set(allowed_hosts)
    look_up = socket.getaddrinfo
    kept = {name: getattr(socket.socket, name) for name in _CONNECTING}

    def refuse(host: object) -> None:
        tried.append(str(host))
        raise NetworkBlockedError(f"the network is blocked, {host} was tried")

    def guarded_look_up(host: Any, *args: Any, **options: Any) -> Any:
        if host is not None and _text(host) not in allowed:
            refuse(_text(host))
        found = look_up(host, *args, **options)
        allowed.update(str(entry[4][0]) for entry in found)
        return found

    def _reporting_errors(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: socket.socket, *args: Any) -> Any:
            address = args[-1]
            is_local = self.family == socket.AF_UNIX or not isinstance(address, tuple)
            if not is_local and str(address[0]) not in allowed:
                refuse(address[0])
            return original(self, *args)

        return call

    try:
        socket.getaddrinfo = guarded_look_up
        for name, original in kept.items():
            setattr(socket.socket, name, _reporting_errors(original))
        yield tried
    finally:
        socket.getaddrinfo = look_up
        for name, original in kept.items():
            setattr(socket.socket, name, original)


def _text(host: object) -> str:
    return host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
