"""Layers that count, time and trace calls, whatever their outcome, without affecting them."""

from __future__ import annotations

import time
from typing import Any, Final

from lot_grpc.server.call import Call, Handler, Method
from lot_grpc.server.server_state import ServerState
from lot_grpc.telemetry.conventions import MEMORY_OPERATIONS, full_method
from lot_grpc.telemetry.instruments import Buckets, Count
from lot_grpc.telemetry.metrics import (
    CALL_DURATION,
    CALLS,
    OTHER,
    REQUEST_BYTES,
    RESPONSE_BYTES,
    STREAM_DURATION,
    STREAM_MESSAGES,
)
from lot_grpc.telemetry.spans import Value, remote_parent

_FAULTS: Final = frozenset(
    ["UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"]
)
"""Codes that are errors of a server by the conventions; others are its answers."""

_streams: dict[Call, tuple[int, ...]] = {}
"""The open streams of this process, with what was counted of their traffic so far."""


def metering(method: Method, handler: Handler, state: ServerState) -> Handler:
    """Counts and times calls."""
    if not state.guards.metrics:
        return handler
    name = label(method)
    CALLS.of(name, "OK", "")  # so that the growth from the first call on is seen
    received, sent = REQUEST_BYTES.of(name), RESPONSE_BYTES.of(name)
    endings: dict[tuple[str, str], tuple[Count, Buckets]] = {}

    def ending(code: str, reason: str) -> tuple[Count, Buckets]:
        """The series of calls that end so; looked up once, since this runs at each call."""
        timed = STREAM_DURATION.of(name) if method.streaming else CALL_DURATION.of(name, code)
        return endings.setdefault((code, reason), (CALLS.of(name, code, reason), timed))

    async def metered(call: Call) -> Any:
        begun = time.perf_counter()
        if method.streaming:
            _streams[call] = (0, 0, 0, 0)
        try:
            response = await handler(call)
            if response is not None:
                call.bytes_sent += len(response)
            return response
        finally:
            code, reason = call.code, call.reason
            count, duration = endings.get((code, reason)) or ending(code, reason)
            count.value += 1
            duration.observe(time.perf_counter() - begun)
            if method.streaming:
                _count_traffic(call)
                del _streams[call]
            else:
                received.value += call.bytes_received
                sent.value += call.bytes_sent

    return metered


def count_open_streams() -> None:
    """Count what open streams have carried so far."""
    for call in _streams:
        _count_traffic(call)


def label(method: Method) -> str:
    """The name of an RPC in metrics: callers can invent names, of which none is kept."""
    return OTHER if method.rule is None else method.name


def _count_traffic(call: Call) -> None:
    name = label(call.method)
    carried = (
        (REQUEST_BYTES.of(name), call.bytes_received),
        (RESPONSE_BYTES.of(name), call.bytes_sent),
        (STREAM_MESSAGES.of(name, "received"), call.messages_received),
        (STREAM_MESSAGES.of(name, "sent"), call.messages_sent),
    )
    for (series, total), counted in zip(carried, _streams[call], strict=True):
        series.value += total - counted
    _streams[call] = tuple(total for _, total in carried)


def tracing(method: Method, handler: Handler, state: ServerState) -> Handler:
    """Makes a span of each call that is sampled; what it does adds spans and attributes."""
    tracer = state.guards.tracer
    if tracer is None:
        return handler
    name = OTHER if method.rule is None else full_method(method.name)
    attributes: dict[str, Value] = {"rpc.system.name": "grpc", "rpc.method": name}
    if operation := MEMORY_OPERATIONS.get(method.name):
        attributes["gen_ai.operation.name"] = operation

    async def traced(call: Call) -> Any:
        parent = remote_parent(call.context.invocation_metadata() or ())
        span = tracer.begin(name, parent, attributes)
        if span is None:
            return await handler(call)
        call.trace_id = f"{span.trace.id:032x}"
        with span:
            try:
                return await handler(call)
            finally:
                span.attributes["rpc.response.status_code"] = call.code
                span.attributes["lot.call.id"] = call.id
                if call.namespace:
                    span.attributes["gen_ai.memory.store.id"] = call.namespace
                if call.reason:
                    span.attributes["lot.reason"] = call.reason
                if call.code in _FAULTS:
                    span.error = call.code

    return traced
