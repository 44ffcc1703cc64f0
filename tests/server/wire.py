"""A real server on a free port with the test's own servicers, and failures as callers see them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2_grpc

from lot_grpc.pb.lot.v1 import (
    episode_service_pb2,
    episode_service_pb2_grpc,
    pattern_service_pb2,
    pattern_service_pb2_grpc,
)
from lot_grpc.server.build import LotServer, build_server
from lot_grpc.server.guards import Guards
from lot_grpc.server.limits import Limits

PATTERNS = pattern_service_pb2.DESCRIPTOR.services_by_name["PatternService"]
EPISODES = episode_service_pb2.DESCRIPTOR.services_by_name["EpisodeService"]
SAVE = "/lot.v1.PatternService/SavePattern"


@dataclass
class Wire:
    """A running server, a channel to it, and what it logged."""

    server: LotServer
    channel: grpc.aio.Channel
    port: int
    log: list[dict[str, Any]] = field(default_factory=list)

    @property
    def patterns(self) -> Any:
        return pattern_service_pb2_grpc.PatternServiceStub(self.channel)

    @property
    def episodes(self) -> Any:
        return episode_service_pb2_grpc.EpisodeServiceStub(self.channel)

    @property
    def health(self) -> Any:
        return health_pb2_grpc.HealthStub(self.channel)

    async def logged(self, count: int = 1) -> dict[str, Any]:
        """The last line of the log, once it has ``count``: a status arrives before its line."""
        await until(lambda: len(self.log) >= count)
        return self.log[-1]

    def raw(self, path: str = SAVE) -> Any:
        """A unary call of bytes."""
        return self.channel.unary_unary(path)


@asynccontextmanager
async def wire(
    patterns: object = None,
    episodes: object = None,
    guards: Guards | None = None,
    **limits: Any,
) -> AsyncIterator[Wire]:
    """Serve the given servicers; what is None has no methods."""
    log: list[dict[str, Any]] = []
    server = build_server(
        {PATTERNS: patterns or object(), EPISODES: episodes or object()},
        Limits(**limits),
        lambda record: log.append(dict(record)),
        guards=guards,
    )
    port = await server.start("127.0.0.1:0")
    options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        try:
            yield Wire(server, channel, port, log)
        finally:
            await server.stop(0)


@dataclass
class Failure:
    """A status as the caller gets it."""

    code: str
    message: str
    reason: str
    metadata: Mapping[str, str]
    details: Mapping[str, Any]
    call_id: str
    size: int

    @property
    def fields(self) -> dict[str, str]:
        """Violated rules by field path."""
        return {v.field: v.reason for v in self.details["BadRequest"].field_violations}


async def failure(call: Awaitable[Any]) -> Failure:
    """The failure of a call; it is an error if there is none."""
    try:
        answer = await call
    except grpc.aio.AioRpcError as error:
        return failure_of(error)
    raise AssertionError(f"expected a failure, got {answer!r}")


def failure_of(error: grpc.aio.AioRpcError) -> Failure:
    """What an error says. Fails if it has no reason."""
    trailing = dict(error.trailing_metadata() or ())
    raw: Any = trailing.get("grpc-status-details-bin", b"")
    status = status_pb2.Status.FromString(raw)
    details = {}
    for each in status.details:
        name = each.type_url.rpartition(".")[2]
        message = getattr(error_details_pb2, name)()
        each.Unpack(message)
        details[name] = message
    assert "ErrorInfo" in details, f"no reason: {error.code()} {error.details()}"
    info = details["ErrorInfo"]
    assert info.domain == "lot.v1"
    assert status.code == error.code().value[0]
    assert status.message == error.details()
    return Failure(
        error.code().name,
        status.message,
        info.reason,
        dict(info.metadata),
        details,
        str(trailing.get("lot-call-id", "")),
        len(raw),
    )


def save(task: str = "add a rate limiter") -> Any:
    """A valid SavePatternRequest."""
    request = pattern_service_pb2.SavePatternRequest()
    request.pattern.task = task
    return request


def saved(pattern_id: str = "p-1") -> Any:
    """An answer to it."""
    response = pattern_service_pb2.SavePatternResponse(created=True)
    response.pattern.pattern_id = pattern_id
    return response


async def until(condition: Any, seconds: float = 10) -> None:
    """Wait until ``condition()`` holds."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.002)
