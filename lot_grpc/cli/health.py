"""``lot-grpc health``: one call of ``grpc.health.v1``, for container health checks."""

from __future__ import annotations

import json
from typing import Any

import grpc
import typer
from grpc_health.v1 import health_pb2, health_pb2_grpc
from typer import Option

from lot_grpc.cli.calls import Server
from lot_grpc.cli.options import Json


def health(
    *,
    service: str = Option("", "--service", help="Full name of a service; empty: the whole server."),
    server: Server = Server(timeout=5.0),
    as_json: Json = False,
) -> bool:
    """Check whether a running server is serving (grpc.health.v1)."""
    status = _status(server, service)
    if as_json:
        fields = {"address": server.target, "service": service, "status": status}
        typer.echo(json.dumps(fields))
    else:
        typer.echo(f"{server.target}: {status}", err=status != "SERVING")
    return status == "SERVING"


def _status(server: Server, service: str) -> str:
    """The serving status, or the gRPC code of a failed call (UNAVAILABLE, NOT_FOUND)."""
    with server.endpoint.as_presented().channel() as channel:  # no key is needed
        request = health_pb2.HealthCheckRequest(service=service)
        try:
            # Its type stubs leave the methods out.
            stub: Any = health_pb2_grpc.HealthStub(channel)
            reply = stub.Check(request, timeout=server.timeout)
        except grpc.RpcError as error:
            code = error.code() if isinstance(error, grpc.Call) else None
            return code.name if code else "UNKNOWN"
        return str(health_pb2.HealthCheckResponse.ServingStatus.Name(reply.status))
