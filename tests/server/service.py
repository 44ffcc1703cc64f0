"""The whole service on the wire: real servicers and services over a store in memory.

The same tests run against a server that is there already (``--target``). Then there is neither a
clock to move nor a store to stop, and tests that need one are skipped.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import grpc
import grpc.aio
import pytest

from lot_grpc.domain.errors import ModelUnavailableError
from lot_grpc.domain.quota import Quota
from lot_grpc.pb.lot.v1 import (
    admin_service_pb2,
    episode_service_pb2,
    learning_service_pb2,
    memory_service_pb2,
    pattern_service_pb2,
)
from lot_grpc.ports import Embedder, VectorStore
from lot_grpc.server.build import LotServer, build_server
from lot_grpc.server.guards import Guards
from lot_grpc.server.limits import Limits
from lot_grpc.server.servicers import build_servicers
from lot_grpc.services.build import Services
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.runtime import ServiceSettings, open_runtime
from lot_grpc.services.store_metadata import open_store
from lot_grpc.services.store_stack import NO_QUOTA
from lot_grpc.testing.hashing import HashingEmbedder, OverlapReranker
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock

SERVICES = {
    service.name: service
    for module in (
        admin_service_pb2,
        episode_service_pb2,
        learning_service_pb2,
        memory_service_pb2,
        pattern_service_pb2,
    )
    for service in module.DESCRIPTOR.services_by_name.values()
}
"""Every service of the contract."""

OPTIONS = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.enable_http_proxy", 0),
]


class Stub:
    """A service whose RPCs take a request's fields, in the test's namespace unless they say."""

    def __init__(
        self, channel: grpc.aio.Channel, service: Any, namespace: str, key: str = ""
    ) -> None:
        self._channel = channel
        self._service = service
        self._namespace = namespace
        self._metadata = (("authorization", f"Bearer {key}"),) if key else None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = self._service.methods_by_name[name]
        kind = method.input_type._concrete_class
        shape = (
            f"{'stream' if method.client_streaming else 'unary'}"
            f"_{'stream' if method.server_streaming else 'unary'}"
        )
        call = getattr(self._channel, shape)(
            f"/{self._service.full_name}/{name}",
            request_serializer=kind.SerializeToString,
            response_deserializer=method.output_type._concrete_class.FromString,
        )
        if method.client_streaming:
            return partial(call, metadata=self._metadata)

        def ask(*, timeout: float = 30, **fields: Any) -> Any:
            if "namespace" in kind.DESCRIPTOR.fields_by_name:
                fields.setdefault("namespace", self._namespace)
            return call(kind(**fields), timeout=timeout, metadata=self._metadata)

        return ask


@dataclass
class Lot:
    """A service under test. ``log`` has a line a call; with ``--target`` it stays empty."""

    channel: Any
    namespace: str
    log: list[Mapping[str, Any]] = field(default_factory=list)
    own_clock: FixedClock | None = None
    server: LotServer | None = None
    own_services: Services | None = None
    address: str = ""
    key: str = ""
    """An API key to send, if any."""

    def __getattr__(self, name: str) -> Any:
        """``patterns``, ``episodes``, ``memories``, ``admin``, ``learning``."""
        services = {"memories": "MemoryService"}
        service = services.get(name, f"{name.removesuffix('s').title()}Service")
        if service not in SERVICES:
            raise AttributeError(name)
        return Stub(self.channel, SERVICES[service], self.namespace, self.key)

    @property
    def clock(self) -> FixedClock:
        """The server's clock, to be moved."""
        if self.own_clock is None:
            pytest.skip("needs a clock that it can move, which a server at --target does not have")
        return self.own_clock

    def raw(self, path: str) -> Any:
        """A unary call of bytes, ``/lot.v1.Service/Method``."""
        return self.channel.unary_unary(path)

    def on(self, namespace: str) -> Lot:
        """The same server, asked for another namespace."""
        return replace(self, namespace=namespace)

    def by(self, key: str) -> Lot:
        """The same server, called with an API key."""
        return replace(self, key=key)


def new_namespace() -> str:
    return f"test-{secrets.token_hex(8)}"


async def open_double(model: str) -> Embedder:
    """The models of the service in this process, by ``test-double/hashing-`` and dimensions."""
    name, _, dimensions = model.rpartition("-")
    if model == HashingEmbedder().contract.model:
        return HashingEmbedder()
    if name != HashingEmbedder().contract.model:
        raise ModelUnavailableError(f"{model!r} is not known to these tests")
    return HashingEmbedder(int(dimensions))


@asynccontextmanager
async def serving(
    store: VectorStore | None = None,
    embedder: Embedder | None = None,
    *,
    clock: FixedClock | None = None,
    max_batch_items: int = 500,
    limits: Limits | None = None,
    probe: Callable[[str], None] | None = None,
    guards: Guards | None = None,
    quota: Quota = NO_QUOTA,
) -> AsyncIterator[Lot]:
    """The service in this process, on a free port. ``probe`` takes what is wrong with the store."""
    clock = clock or FixedClock()
    store = store or InMemoryStore(clock)
    embedder = embedder or HashingEmbedder()
    await open_store(store, REGISTRY, embedder.contract)
    given = (store, REGISTRY, embedder, OverlapReranker(), clock)
    services = Services(open_runtime(*given, ServiceSettings(quota=quota)), open_double)
    limits = limits or Limits()
    servicers = build_servicers(
        services,
        clock,
        version="0.0.0-test",
        limits=limits,
        max_batch_items=max_batch_items,
        min_free_bytes=0,
    )
    log: list[Mapping[str, Any]] = []
    server = build_server(
        servicers,
        limits,
        log=lambda record: log.append(dict(record)),
        gate=services.runtime.gate,
        guards=guards,
    )
    port = await server.start("127.0.0.1:0")
    following = asyncio.create_task(
        server.follow(store.check, probe, seconds=0.02) if probe else asyncio.sleep(0)
    )
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=OPTIONS) as channel:
        try:
            yield Lot(channel, new_namespace(), log, clock, server, services, f"127.0.0.1:{port}")
        finally:
            following.cancel()
            await asyncio.wait([following])
            await server.stop(0)
            await store.close()


@asynccontextmanager
async def reaching(address: str) -> AsyncIterator[Lot]:
    """The service at an address, in a namespace of its own."""
    async with grpc.aio.insecure_channel(address, options=OPTIONS) as channel:
        yield Lot(channel, new_namespace(), address=address)


def output_only(message: Any, *names: str) -> Any:
    """A copy without the fields that the server gives, to compare with what was sent."""
    copy = type(message)()
    copy.CopyFrom(message)
    for name in names:
        copy.ClearField(name)
    return copy
