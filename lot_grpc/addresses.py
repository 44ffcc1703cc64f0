"""Network addresses in the form that operators write."""

from __future__ import annotations

import ipaddress


def split_address(address: str) -> tuple[str, int]:
    """Host (without brackets) and port of ``host:port`` or ``[v6]:port``.

    Raises:
        ValueError: It is neither.
    """
    host, colon, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError("an IPv6 host needs brackets, as in [::1]:50051")
    if not colon or not host or any(letter.isspace() for letter in host):
        raise ValueError("should be host:port, as in 127.0.0.1:50051")
    if not (port.isascii() and port.isdigit() and int(port) <= 65535):
        raise ValueError(f"port {port!r} should be a number from 0 to 65535")
    return host, int(port)


def normal_address(address: str) -> str:
    """The same address with brackets round an IPv6 host only.

    Raises:
        ValueError: It is none.
    """
    host, port = split_address(address)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches ``host``. A name other than localhost counts as not."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
