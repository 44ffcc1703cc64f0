"""``lot-grpc check``: whether the service would start here, without the network."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import socket
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import typer

from lot_grpc.cli.options import Config, Json
from lot_grpc.cli.start import begin
from lot_grpc.reports import Check, CheckReport

if TYPE_CHECKING:
    from lot_grpc.settings import Settings

_MIB = 2**20


def check(*, config: Config = None, as_json: Json = False) -> bool:
    """Check, without the network, whether the service can start here: model, store, disk space."""
    report = _check_offline(begin(config))
    if as_json:
        fields = {"ready": report.ready, **dataclasses.asdict(report)}
        typer.echo(json.dumps(fields, indent=2))
    else:
        for line in _lines(report):
            typer.echo(line)
    return report.ready


def _check_offline(settings: Settings) -> CheckReport:
    """The report of ``checking``, plus a check that nothing tried to use the network."""
    from lot_grpc.embedding.download import hub_is_offline

    may_download = settings.embedding.download and not hub_is_offline()
    # Set before the import: huggingface_hub reads it once.
    os.environ["HF_HUB_OFFLINE"] = "1"
    from lot_grpc import checking

    embedding = settings.embedding.model_copy(update={"download": False})
    offline = settings.model_copy(update={"embedding": embedding})
    used = _hosts(settings)
    with network_blocked(list(used.values())) as tried:
        report = asyncio.run(checking.check(offline, may_download=may_download))
    return dataclasses.replace(report, checks=(*report.checks, _network_check(tried, used)))


def _hosts(settings: Settings) -> dict[str, str]:
    """The hosts that these settings name, by purpose."""
    used = {}
    if host := urlsplit(settings.qdrant.url).hostname:
        used["store"] = host
    if settings.embedding.provider == "openai":
        used["model"] = urlsplit(settings.openai.base_url).hostname or ""
    if host := urlsplit(settings.oidc.jwks).hostname:
        used["tokens"] = host
    return used


def _network_check(tried: list[str], used: dict[str, str]) -> Check:
    if tried:
        hosts = ", ".join(dict.fromkeys(tried))
        return Check("network", ok=False, detail=f"blocked, but something tried to reach {hosts}")
    but = " and".join(f" except for the {what} at {host}" for what, host in used.items())
    return Check("network", ok=True, detail=f"blocked while checking{but}; nothing needed it")


def _lines(report: CheckReport) -> list[str]:
    lines = ["ready" if report.ready else "NOT ready"]
    lines += [
        f"  {'ok' if check.ok else 'FAILED':6}  {check.name:10}  {check.detail}"
        for check in report.checks
    ]
    if model := report.model:
        lines.append(f"model   {model.name}, {model.dimensions}-d, from {model.origin}")
        if model.file:
            lines += [f"        {model.file}", f"        sha256 {model.sha256}"]
    if store := report.store:
        points = ", ".join(f"{name} {count:,}" for name, count in store.points.items() if count)
        lines += [
            f"store   {store.backend}, {store.location}",
            f"        points: {points or 'none'}",
            f"        {store.used_bytes // _MIB:,} MiB used, {store.free_bytes // _MIB:,} MiB "
            f"free, {'writable' if store.writable else 'READ ONLY'}",
        ]
    return lines


_CONNECTING = ("connect", "connect_ex", "sendto")


class NetworkBlockedError(ConnectionRefusedError):
    """A connection was attempted although the network is blocked."""


@contextmanager
def network_blocked(allowed_hosts: Collection[str] = ()) -> Iterator[list[str]]:
    """Refuse every connection of Python code except to ``allowed_hosts``.

    Native code that opens sockets by itself is not caught: gRPC does, and ONNX Runtime's telemetry
    would if ``lot_grpc.embedding`` did not turn it off.

    Yields:
        The hosts that were tried, in order; the list grows as they are.
    """
    tried: list[str] = []
    allowed = set(allowed_hosts)
    look_up = socket.getaddrinfo
    originals = {name: getattr(socket.socket, name) for name in _CONNECTING}

    def refuse(host: object) -> None:
        tried.append(str(host))
        raise NetworkBlockedError(f"the network is blocked, {host} was tried")

    def checked_look_up(host: Any, *args: Any, **options: Any) -> Any:
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
        socket.getaddrinfo = checked_look_up
        for name, original in originals.items():
            setattr(socket.socket, name, _reporting_errors(original))
        yield tried
    finally:
        socket.getaddrinfo = look_up
        for name, original in originals.items():
            setattr(socket.socket, name, original)


def _text(host: object) -> str:
    return host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
