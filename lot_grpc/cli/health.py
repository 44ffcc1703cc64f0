"""``lot-grpc health``: one call of ``grpc.health.v1``, as container health checks want it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import grpc
import typer
from grpc_health.v1 import health_pb2, health_pb2_grpc

from lot_grpc.addresses import split_address
from lot_grpc.settings_file import load_settings

_ANY_HOST = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - to call a server bound there


def run(address: str, service: str, timeout: float, config: Path | None, *, as_json: bool) -> bool:
    """Ask, print the answer, and tell whether it is SERVING. An unreachable server is not.

    Raises:
        SettingsError: No address is given, and the settings cannot be used.
    """
    target = address or reachable(load_settings(config).server.address)
    status = _status(target, service, timeout)
    if as_json:
        typer.echo(json.dumps({"address": target, "service": service, "status": status}))
    else:
        typer.echo(f"{target}: {status}", err=status != "SERVING")
    return status == "SERVING"


def reachable(address: str) -> str:
    """The address to call for a server that listens on ``address``."""
    host, port = split_address(address)
    host = _ANY_HOST.get(host, host)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _status(target: str, service: str, timeout: float) -> str:
    """The serving status, or the gRPC code of a failed call (UNAVAILABLE, NOT_FOUND)."""
    with grpc.insecure_channel(target, options=[("grpc.enable_http_proxy", 0)]) as channel:
        request = health_pb2.HealthCheckRequest(service=service)
        try:
            # Its type stubs leave the methods out.
            stub: Any = health_pb2_grpc.HealthStub(channel)
            reply = stub.Check(request, timeout=timeout)
        except grpc.RpcError as error:
            code = error.code() if isinstance(error, grpc.Call) else None
            return code.name if code else "UNKNOWN"
        return str(health_pb2.HealthCheckResponse.ServingStatus.Name(reply.status))
