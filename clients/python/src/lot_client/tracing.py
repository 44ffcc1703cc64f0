"""Names the caller's span to the server, if OpenTelemetry is installed in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

C = TypeVar("C")
Inject = Callable[[dict[str, str]], None]


def traced(channel: C) -> C:
    """A channel, sync or asyncio, that sends the ``traceparent`` of the current span with calls.

    The same channel without OpenTelemetry. It wraps calls instead of being an interceptor, because
    a `grpc.aio` channel accepts interceptors only on creation.
    """
    try:
        from opentelemetry.propagate import inject
    except ImportError:
        return channel
    return cast("C", _TracedChannel(channel, inject))


class _TracedChannel:
    """The channel that stubs are created with."""

    def __init__(self, channel: Any, inject: Inject) -> None:
        self._channel = channel
        self._inject = inject

    def unary_unary(self, *arguments: Any, **options: Any) -> Any:
        return _TracedCall(self._channel.unary_unary(*arguments, **options), self._inject)

    def unary_stream(self, *arguments: Any, **options: Any) -> Any:
        return _TracedCall(self._channel.unary_stream(*arguments, **options), self._inject)

    def stream_stream(self, *arguments: Any, **options: Any) -> Any:
        return _TracedCall(self._channel.stream_stream(*arguments, **options), self._inject)


class _TracedCall:
    """A method of a stub."""

    def __init__(self, call: Any, inject: Inject) -> None:
        self._call = call
        self._inject = inject

    def __call__(
        self,
        *arguments: Any,
        metadata: Iterable[tuple[str, Any]] | None = None,
        **settings: Any,
    ) -> Any:
        carrier: dict[str, str] = {}
        self._inject(carrier)
        sent = (*(metadata or ()), *carrier.items())
        return self._call(*arguments, metadata=sent or None, **settings)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)
