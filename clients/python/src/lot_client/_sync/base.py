# Generated from _async/base.py: do not edit.
"""How calls are made: the connection, the generated stubs, retries and pages."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

import grpc
from google.protobuf.message import Message

from lot_client.credentials import Tls, check_api_key, proxy_options, with_api_key
from lot_client.failed_calls import FailedCalls
from lot_client.namespaces import in_namespace
from lot_client.pb.lot.v1.admin_service_pb2_grpc import AdminServiceStub
from lot_client.pb.lot.v1.episode_service_pb2_grpc import EpisodeServiceStub
from lot_client.pb.lot.v1.learning_service_pb2_grpc import LearningServiceStub
from lot_client.pb.lot.v1.memory_service_pb2_grpc import MemoryServiceStub
from lot_client.pb.lot.v1.pattern_service_pb2_grpc import PatternServiceStub
from lot_client.requests import CHANNEL_OPTIONS, Requests, failed, is_safe
from lot_client.retry import Attempts, RetryPolicy
from lot_client.tracing import traced

R = TypeVar("R", bound=Message)
if TYPE_CHECKING:
    UnaryCall: TypeAlias = grpc.UnaryUnaryMultiCallable[Any, R]


def _open_channel(address: str, tls: Tls | None) -> grpc.Channel:
    options: list[tuple[str, Any]] = [*CHANNEL_OPTIONS, *proxy_options(address)]
    if tls is None:
        return grpc.insecure_channel(address, options=options)
    return grpc.secure_channel(address, tls.credentials(), options=[*options, *tls.options()])


class BaseClient:
    """The connection of `LotClient`, and how it makes calls."""

    def __init__(
        self,
        address: str = "127.0.0.1:50051",
        *,
        namespace: str = "",
        deadline: float = 30.0,
        retry: RetryPolicy | None = None,
        tls: Tls | None = None,
        api_key: str = "",
        allow_plaintext_key: bool = False,
        channel: grpc.Channel | None = None,
    ) -> None:
        """Create a client; it connects with its first call.

        Args:
            address: host and port of the server.
            namespace: tenant for calls that name none, stubs included; empty means the caller's
                own, which is `default` on a server without authentication.
            deadline: seconds for a call with all its retries, and for each step of a stream.
            retry: how calls are retried; None means the defaults.
            tls: how the connection is encrypted; None: not at all.
            api_key: sent with each call, stubs included.
            allow_plaintext_key: send it without ``tls`` beyond this machine, where others may read
                it.
            channel: used instead of a new one to ``address``, without ``tls`` and ``api_key``.

        Raises:
            ValueError: the key is none, or would be sent unencrypted; or the arguments contradict
                each other.
            OSError: a file of ``tls`` cannot be read.
        """
        if channel is None:
            check_api_key(api_key, address, tls, plaintext=allow_plaintext_key)
            channel = with_api_key(_open_channel(address, tls), api_key)
        elif tls or api_key:
            raise ValueError("tls and api_key are for a new channel: leave out channel, or both")
        self._channel = channel
        self._requests = Requests(namespace)
        self._deadline = deadline
        self._retry = retry or RetryPolicy()
        self._failed_calls = FailedCalls()
        named = in_namespace(traced(self._channel), namespace)
        self.patterns = PatternServiceStub(named)
        self.episodes = EpisodeServiceStub(named)
        self.memories = MemoryServiceStub(named)
        self.learning = LearningServiceStub(named)
        self.admin = AdminServiceStub(named)

    def using(
        self,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
        retry: RetryPolicy | None = None,
    ) -> Self:
        """Return a client with other settings on the same connection."""
        made = type(self)(
            namespace=self._requests.namespace if namespace is None else namespace,
            deadline=self._deadline if deadline is None else deadline,
            retry=retry or self._retry,
            channel=self._channel,
        )
        made._failed_calls = self._failed_calls  # noqa: SLF001 - of this class
        return made

    def close(self) -> None:
        """Close the connection; running calls end with CANCELLED."""
        self._channel.close()

    def __enter__(self) -> Self:
        """Return the client; its first call connects."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connection."""
        self.close()

    def call(
        self,
        method: UnaryCall[R],
        request: Message,
        *,
        deadline: float | None = None,
        wait_out: str = "",
    ) -> R:
        """Make a call that has no method here.

        It is retried where that is safe. A write that takes a request id gets one: the same as
        before if the same call failed within 10 minutes and may have been carried out.

        Args:
            method: a method of a stub, for example `client.learning.SelectAction`.
            request: its request, which is not modified.
            deadline: seconds for the call with all its retries; None means the client's.
            wait_out: a further reason to treat as temporary, for example `STORAGE_FULL`.
        """
        attempts = Attempts(self._retry, self._deadline if deadline is None else deadline)
        with self._failed_calls.identified(request, self._requests.namespace) as request:
            safe = is_safe(request)
            while True:
                try:
                    return method(request, timeout=attempts.seconds_left)
                except grpc.RpcError as error:
                    failure = failed(request, error)
                time.sleep(attempts.delay_after(failure, safe=safe, also=wait_out))

    def _pages(self, method: UnaryCall[Any], request: Any, field: str) -> Iterator[Any]:
        while True:
            page = self.call(method, request)
            yield from getattr(page, field)
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token
