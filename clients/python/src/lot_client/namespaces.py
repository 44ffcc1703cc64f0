"""Sets a client's namespace in requests that have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

C = TypeVar("C")
Serialize = Callable[[Any], bytes]


def in_namespace(channel: C, namespace: str) -> C:
    """A channel, sync or asyncio, that sets ``namespace`` in requests that have none.

    In a stream of requests, only in the first message.
    """
    return cast("C", _NamespaceChannel(channel, namespace)) if namespace else channel


class _NamespaceChannel:
    """The channel that stubs are created with.

    It wraps serializers instead of being an interceptor, because a `grpc.aio` channel accepts
    interceptors only on creation, and callers may pass their own channel.
    """

    def __init__(self, channel: Any, namespace: str) -> None:
        self._channel = channel
        self._namespace = namespace

    def unary_unary(self, method: str, request_serializer: Serialize, **options: Any) -> Any:
        serialize = self._every(request_serializer)
        return self._channel.unary_unary(method, request_serializer=serialize, **options)

    def unary_stream(self, method: str, request_serializer: Serialize, **options: Any) -> Any:
        serialize = self._every(request_serializer)
        return self._channel.unary_stream(method, request_serializer=serialize, **options)

    def stream_stream(self, method: str, request_serializer: Serialize, **options: Any) -> Any:
        def call(*arguments: Any, **settings: Any) -> Any:
            serialize = self._first(request_serializer)
            made = self._channel.stream_stream(method, request_serializer=serialize, **options)
            return made(*arguments, **settings)

        return call

    def _every(self, serialize: Serialize) -> Serialize:
        return lambda request: serialize(self._filled(request))

    def _first(self, serialize: Serialize) -> Serialize:
        """Of one call: gRPC serializes its messages one after the other."""
        fills = iter([self._filled])
        return lambda request: serialize(next(fills, _unchanged)(request))

    def _filled(self, request: Any) -> Any:
        """A copy, since the caller may send the request by another client too."""
        if "namespace" not in request.DESCRIPTOR.fields_by_name or request.namespace:
            return request
        filled = type(request)()
        filled.CopyFrom(request)
        filled.namespace = self._namespace
        return filled


def _unchanged(request: Any) -> Any:
    return request
