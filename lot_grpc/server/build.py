"""Builds a server from servicers, starts it, and stops it without losing work in progress.

What gRPC's core refuses by itself, before any of our code sees the call, has no reason:
messages over ``Limits.max_message_bytes`` (RESOURCE_EXHAUSTED "Received message larger than max"),
metadata over 8 to 16 KiB (RESOURCE_EXHAUSTED), frames that are not gRPC, and calls after the drain
(UNAVAILABLE).
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import grpc
import grpc.aio
from google.protobuf.descriptor import ServiceDescriptor

from lot_grpc.domain.errors import ServingEndedError, StartupError
from lot_grpc.domain.rate_limits import RateLimiter
from lot_grpc.server import health, layers, reflection
from lot_grpc.server.access import authentication, recheck
from lot_grpc.server.audit import audit
from lot_grpc.server.call import Call, Context, Handler, Method
from lot_grpc.server.calllog import CallLog
from lot_grpc.server.fair_queue import FairQueue
from lot_grpc.server.guards import Guards
from lot_grpc.server.inflight import InFlight
from lot_grpc.server.limits import Limits
from lot_grpc.server.refusals import Refusals
from lot_grpc.server.server_state import Layer, ServerState
from lot_grpc.server.servicer_handler import not_implemented, serve
from lot_grpc.server.serving_loop import CallServer, watch_port
from lot_grpc.services.reindex.gate import ModelGate

_LAST_WORDS_SECONDS: Final = 1.0
"""How long cancelled calls may take to end after the grace period."""
_FLUSH_SECONDS: Final = 0.5
"""How long gRPC may take to send the last statuses."""

_LIBRARY: Final = (layers.admission, layers.single_request, layers.checked_requests)
"""Layers around a library's servicer."""
_MOST_NAME: Final = 100
"""Characters kept of the name of an unknown RPC."""
_HEALTH: Final = (layers.error_boundary,)
_REFLECTION: Final = (audit, layers.error_boundary, authentication)
"""The layers around those. Orchestrators that watch health have no credentials."""


@dataclass(frozen=True, slots=True)
class StandardServices:
    """Which services of gRPC itself a server has."""

    health: bool = True
    reflection: bool = True


class LotServer:
    """A server that is built but not started. Made by ``build_server``.

    Attributes:
        draining: set when the server begins to stop. Streams then end with SHUTTING_DOWN: request
            streams at their next read, response-only streams at once.
        failed: done when the server no longer accepts calls although it was not stopped. Then stop
            it and end the process.
    """

    def __init__(
        self,
        server: CallServer,
        health_service: health.Health,
        state: ServerState,
        draining: asyncio.Event,
        failed: asyncio.Future[ServingEndedError],
    ) -> None:
        self.draining = draining
        self.failed = failed
        self._watches: list[asyncio.Task[None]] = []
        self._ports: list[tuple[str, int]] = []
        self._server = server
        self._health = health_service
        self._inflight = state.inflight
        self._guards = state.guards
        self._stopping: asyncio.Task[None] | None = None

    @property
    def calls_in_flight(self) -> int:
        """Running calls, including writes whose callers have disconnected."""
        return len(self._inflight)

    async def start(self, address: str, credentials: grpc.ServerCredentials | None = None) -> int:
        """Listen and serve, there and at what ``listen`` added before. The port, as ``listen``."""
        port = self.listen(address, credentials)
        await self._server.start()
        await self._health.serving()
        ended = partial(_fail, self.failed)
        watches = [watch_port(host, port, ended) for host, port in self._ports]
        watches.append(self._inflight.bytes.watch())
        if self._guards.authenticator is not None:
            watches.append(recheck(self._inflight.streams, self._guards))
        self._watches += map(asyncio.create_task, watches)
        return port

    def listen(self, address: str, credentials: grpc.ServerCredentials | None = None) -> int:
        """Add an address, before the start. ``address`` is ``host:port``; port 0: a free one.

        Returns:
            The port.

        Raises:
            StartupError: the address cannot be used; the message says why and what to do.
        """
        # Try a plain socket first: it reports why, while gRPC's core writes to stderr.
        if cause := _why_not(address):
            raise StartupError(f"cannot listen on {address}: {cause}", address=address)
        try:
            if credentials is None:
                port = self._server.add_insecure_port(address)
            else:
                port = self._server.add_secure_port(address, credentials)
        except RuntimeError as error:
            raise StartupError(
                f"cannot listen on {address}: gRPC could not bind it; "
                "choose another port or try again",
                address=address,
            ) from error
        self._ports.append((address.rpartition(":")[0].strip("[]"), port))
        return port

    async def stop(self, grace_seconds: float) -> None:
        """Drain and stop. Repeated calls wait for the same stop.

        Health becomes NOT_SERVING, new calls are refused and streams end with SHUTTING_DOWN, and
        running calls and writes have ``grace_seconds`` to finish. What is left after that is
        cancelled with SHUTTING_DOWN. When this returns, nothing is running any more, so the store
        may be closed.
        """
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._drain(grace_seconds))
        await asyncio.shield(self._stopping)

    async def follow(
        self,
        check: Callable[[], Awaitable[None]],
        report: Callable[[str], None],
        seconds: float = health.PROBE_SECONDS,
    ) -> None:
        """Let health reflect whether the store is usable (``Health.follow``), until cancelled."""
        await self._health.follow(check, report, seconds)

    async def wait(self) -> None:
        """Wait until the server has stopped."""
        await self._server.wait_for_termination()

    async def _drain(self, grace_seconds: float) -> None:
        self.draining.set()
        for watch in self._watches:
            watch.cancel()
        await self._health.draining()
        self._inflight.interrupt()
        if not await self._inflight.wait(grace_seconds):
            self._inflight.cancel()
            await self._inflight.wait(_LAST_WORDS_SECONDS)
        self._health.end()
        await self._server.stop(_FLUSH_SECONDS)


def build_server(
    servicers: Mapping[ServiceDescriptor, object],
    limits: Limits | None = None,
    log: CallLog | None = None,
    draining: asyncio.Event | None = None,
    gate: ModelGate | None = None,
    guards: Guards | None = None,
    standard_services: StandardServices | None = None,
) -> LotServer:
    """A server of ``servicers``, with health and reflection. Call it in the loop that will serve.

    Args:
        servicers: by the descriptor of the service. Each has coroutine methods (async generators
            for response streams) named like the RPCs, taking the request (an iterator for request
            streams) and the context. Requests arrive parsed and checked. RPCs that a servicer lacks
            or only inherits from the generated base class answer NOT_IMPLEMENTED.
        limits: None: the defaults.
        log: receives one record per call; None: no log.
        draining: the event to set when the server begins to stop, for servicers created before it.
        gate: calls pass it together, so that the model is switched only while none is running.
        guards: what checks and observes the calls; None: nothing does.
        standard_services: which of the two it has; None: both.
    """
    limits = limits or Limits()
    draining = draining or asyncio.Event()
    guards = guards or Guards()
    inflight = InFlight(limits, draining, guards.principal_limits)
    rate_limiter = RateLimiter(guards.principal_limits, guards.monotonic)
    gate = gate or ModelGate()
    fair_queue = FairQueue() if guards.fair and guards.authenticator is not None else None
    state = ServerState(
        limits, inflight, log, gate, guards, rate_limiter, Refusals(draining), fair_queue
    )
    failed: asyncio.Future[ServingEndedError] = asyncio.get_running_loop().create_future()
    server = CallServer(limits.channel_options(), partial(_fail, failed))
    for service, servicer in servicers.items():
        _add(server, service.full_name, _handlers(service, servicer, state))
    names = [service.full_name for service in servicers]
    health_service = health.Health(names)
    standard_services = standard_services or StandardServices()
    if standard_services.health:
        # Apart from the rest: it answers under load and in a drain, and its callers, of whom nobody
        # knows who they are, take nothing from others.
        least = replace(limits, max_request_bytes=limits.max_message_bytes)
        apart = InFlight(least, asyncio.Event())
        apart.bytes = inflight.bytes  # of connections, which both may use
        beside = replace(state, inflight=apart)
        _add(
            server, health.NAME, _library_handlers(health.SERVICE, health_service, beside, _HEALTH)
        )
        names.append(health.NAME)
    if standard_services.reflection:
        reflected = _library_handlers(
            reflection.SERVICE, reflection.servicer(names), state, _REFLECTION
        )
        for name in reflection.NAMES:
            _add(server, name, reflected)
    server.add_generic_rpc_handlers((_UnknownRpcs(state),))
    return LotServer(server, health_service, state, draining, failed)


def _fail(failed: asyncio.Future[ServingEndedError], cause: BaseException) -> None:
    """Record why no calls are accepted; the first cause counts."""
    if not failed.done():
        error = ServingEndedError(f"the server no longer accepts calls: {cause!r}")
        error.__cause__ = cause
        failed.set_result(error)


def _add(server: CallServer, name: str, handlers: dict[str, Any]) -> None:
    # Not `add_registered_method_handlers` as in generated code: grpc.aio then waits on all methods
    # again for each call, which costs 70 us with the contract's 80.
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, handlers),))


def _handlers(
    service: ServiceDescriptor, servicer: object, state: ServerState
) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
    handlers = {}
    for descriptor in service.methods:
        method = Method.of(descriptor)
        behaviour = _behaviour(servicer, descriptor.name)
        if behaviour is None:
            handler = not_implemented(method.name)
        else:
            limits = state.limits
            handler = serve(method, behaviour, limits.max_message_bytes, limits.max_send_seconds)
            handler = layers.compose(layers.INNER, method, handler, state)
        handler = layers.compose(layers.OUTER, method, handler, state)
        handlers[descriptor.name] = _rpc_handler(method, handler)
    return handlers


def _library_handlers(
    service: Any, servicer: object, state: ServerState, boundary: tuple[Layer, ...]
) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
    """The handlers of a read-only servicer from a library."""
    handlers = {}
    for descriptor in service.methods:
        method = replace(Method.of(descriptor), writes=False)
        behaviour = _behaviour(servicer, descriptor.name)
        if behaviour is None:
            handler = layers.compose(layers.OUTER, method, not_implemented(method.name), state)
            handlers[descriptor.name] = _rpc_handler(method, handler)
        elif method.client_streaming:
            handler = serve(method, behaviour)
            handler = layers.compose((*boundary, *_LIBRARY), method, handler, state)
            handlers[descriptor.name] = _rpc_handler(method, handler)
        else:
            handler = layers.compose((*boundary, *_LIBRARY), method, _messages(behaviour), state)
            serializer = method.response_type.SerializeToString
            handlers[descriptor.name] = _rpc_handler(method, handler, serializer)
    return handlers


def _messages(behaviour: Callable[[Any, Context], Any]) -> Handler:
    """A handler around a coroutine that returns or writes messages, not bytes."""

    async def answer(call: Call) -> Any:
        return await behaviour(call.request, call.context)

    return answer


def _behaviour(servicer: object, name: str) -> Callable[[Any, Context], Any] | None:
    """The method that implements an RPC; None if only the generated base class has it."""
    for kind in type(servicer).__mro__:
        if name in vars(kind):
            if kind.__module__.endswith("_pb2_grpc"):
                return None
            behaviour: Callable[[Any, Context], Any] = getattr(servicer, name)
            return behaviour
    return None


def _rpc_handler(
    method: Method, handler: Handler, serializer: Callable[[Any], bytes] | None = None
) -> grpc.RpcMethodHandler[Any, Any]:
    """The handler for gRPC: bytes in, bytes out, a coroutine for every kind of RPC.

    All are registered with a request stream, which is the same on the wire: gRPC would read a unary
    request before any of our code could refuse the call.
    """

    async def entry(requests: Any, context: Context) -> Any:
        try:
            return await handler(Call(method, context))
        except grpc.aio.AbortError as error:
            # gRPC's state of the call keeps the error. If that kept the frames, and they the state,
            # each refused call would be left to the garbage collector, which stops all others.
            del requests, context
            raise error.with_traceback(None) from None

    make: Callable[..., Any] = (
        grpc.stream_stream_rpc_method_handler
        if method.server_streaming
        else grpc.stream_unary_rpc_method_handler
    )
    made: grpc.RpcMethodHandler[Any, Any] = make(entry, response_serializer=serializer)
    return made


class _UnknownRpcs(grpc.GenericRpcHandler):
    """Answers RPCs of ``lot.*`` that this version's contract does not know, with a reason."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """Called last. None: not ours, and core answers UNIMPLEMENTED."""
        path = str(handler_call_details.method)
        if not path.startswith("/lot."):
            return None
        # Whoever calls chose it, and it is logged.
        name = ascii(path.rpartition(".")[2].replace("/", "."))[1:-1][:_MOST_NAME]
        method = Method.unknown(name)
        handler = not_implemented(name)
        handler = layers.compose(layers.OUTER, method, handler, self._state)
        return _rpc_handler(method, handler)


def _why_not(address: str) -> str:
    """Why an address cannot be used, found by trying; empty if it can."""
    host, _, port = address.rpartition(":")
    if not port.isdigit():
        return "it is not an address of the form host:port"
    return _bind_error(host.strip("[]"), int(port))


def _bind_error(host: str, port: int) -> str:
    try:
        family, kind, number, _, name = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, number) as probe:
            # As gRPC does: connections of a server that just stopped do not block the port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(name)
    except socket.gaierror:
        return f"cannot resolve host {host!r}; use an address of this machine"
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return (
                f"another process uses port {port}, perhaps another server; "
                f"find it with `lsof -i :{port}` and stop it, or choose another port"
            )
        if error.errno == errno.EACCES:
            return f"port {port} needs privileges; choose one above 1023"
        if error.errno == errno.EADDRNOTAVAIL:
            return f"{host} is not an address of this machine"
        return str(error.strerror or error)
    return ""
