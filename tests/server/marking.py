"""Requests with a marker in every text that they may contain, to find out where texts go."""

from __future__ import annotations

import contextlib
from typing import Any

import grpc.aio
from google.protobuf.struct_pb2 import Struct, Value

from lot_grpc.domain.errors import LotError
from lot_grpc.server.checking import checker_of
from tests.server.examples import EXAMPLES, Place, example, method_of, path_of, places
from tests.server.service import Lot

_NAMES = ("_id", "_ids", "namespace", "token", "cursor", "etag", "model", "_mask", "language")
"""How fields end that name something: an unknown name makes the call fail or mean another thing."""

_SPECIAL = (
    "packs",
    "supersede",
    "indexing_problem",
    "error.",
    "error_patterns",
    "summary.",
    "project.",
)
"""In fields that are ids, or go with one kind or state only."""

WRITES = [name for name in sorted(EXAMPLES) if not method_of(name).GetOptions().idempotency_level]

_FIRST = ("StartEpisode", "SavePattern", "CreateMemory", "SaveErrorSolution")
_LAST = ("Delete", "Clear", "EndEpisode", "Prune", "Import", "Reindex")


def in_order(names: list[str]) -> list[str]:
    """Calls that create before those that use, and those that delete at the end."""

    def turn(name: str) -> tuple[int, str]:
        method = name.partition(".")[2]
        return (0 if method in _FIRST else 2 if method.startswith(_LAST) else 1, name)

    return sorted(names, key=turn)


def marked(name: str, namespace: str, marker: str) -> tuple[Any, list[str]]:
    """The example of an RPC with the marker wherever the contract allows a text; and where."""
    request = example(name, namespace)
    check = checker_of(type(request))
    put = []
    for place in places(request.DESCRIPTOR):
        value = None if any(one in place.path for one in _SPECIAL) else _value(place, marker)
        if value is None:
            continue
        tried = type(request)()
        tried.CopyFrom(request)
        with contextlib.suppress(LotError, TypeError, ValueError, AttributeError):
            place.put(tried, value)
            check(tried.SerializeToString())
            request = tried
            put.append(place.path)
    return request, put


def _value(place: Place, marker: str) -> Any:
    field = place.field
    leaf = place.path.rpartition(".")[2].partition("[")[0]
    if leaf.endswith(_NAMES) or leaf in ("id", "key", "subject"):
        return None
    if field.message_type is None:
        return marker if field.type == field.TYPE_STRING else None
    if field.message_type.full_name == "google.protobuf.Struct":
        return Struct(fields={"note": Value(string_value=marker)})
    if field.message_type.full_name == "google.protobuf.Value":
        return Value(string_value=marker)
    if field.message_type.GetOptions().map_entry:
        value = field.message_type.fields_by_name["value"]
        return marker if value.type == value.TYPE_STRING else None
    return None


async def call(lot: Lot, name: str, request: Any, metadata: Any = ()) -> str:
    """Make a call of any shape to its end, for at most a second of a stream; the code."""
    method = method_of(name)
    kind = method.output_type._concrete_class
    shape = "stream_stream" if method.client_streaming else "unary_stream"
    if not method.server_streaming:
        shape = "unary_unary"
    made = getattr(lot.channel, shape)(
        path_of(name),
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=kind.FromString,
    )
    try:
        if shape == "unary_unary":
            await made(request, timeout=30, metadata=metadata)
        else:
            await _stream(made, request, metadata)
    except grpc.aio.AioRpcError as error:
        return str(error.code().name)
    return "OK"


async def _stream(made: Any, request: Any, metadata: Any) -> None:
    given: Any = request if not isinstance(made, grpc.aio.StreamStreamMultiCallable) else None
    stream = made(timeout=2, metadata=metadata) if given is None else made(request, timeout=2)
    if given is None:
        await stream.write(request)
        await stream.done_writing()
    try:
        async for _ in stream:
            pass
    except grpc.aio.AioRpcError as error:
        if error.code() != grpc.StatusCode.DEADLINE_EXCEEDED:  # a watch goes on
            raise
