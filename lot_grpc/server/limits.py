"""Deployment limits on a server's load; the limits of the contract are in the protos."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_IDLE_MS: Final = 300_000
"""When an idle connection is closed. Clients reopen it with their next call."""
_HANDSHAKE_MS: Final = 10_000
_PENDING: Final = 32_768
"""How many calls may wait for the event loop, which refuses excess calls within milliseconds."""
_PENDING_SECONDS: Final = 600
"""How long one may wait: longer than on an overloaded machine, and than callers do."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one server. All are positive whole numbers, except for ``max_call_seconds``.

    Attributes:
        max_message_bytes: largest message received; gRPC's core refuses a larger one itself, with
            RESOURCE_EXHAUSTED and without a reason, since our code never sees the call. Responses
            are limited to 3 MiB, or to this if lower, except for a single item that is larger;
            reading one larger than this is LIMIT_EXCEEDED.
        max_concurrent_calls: unary calls running at once, including writes that outlive their
            caller; further ones are OVERLOADED.
        max_streams: streams open at once; further ones are OVERLOADED.
        max_connections: open connections; further ones are closed immediately.
        max_request_bytes: total bytes of unary requests that are arriving or being processed;
            beyond that, large ones are OVERLOADED. At least ``max_message_bytes``. Incomplete
            messages of streams have the same limit; over it, some streams are ended.
        max_receive_seconds: how long a unary request may take to arrive before its call is
            OVERLOADED; one second while others are waiting for memory.
        max_call_seconds: how long a unary call may take before it is CALL_TIMEOUT; 0: no limit.
            Streams have none; a stream of writes has this long to finish once its caller has
            disconnected.
        max_send_seconds: how long a message of a response stream may wait for a caller that does
            not read; then the stream is OVERLOADED. Only for streams that write nothing.
        stream_idle_seconds: how long a stream of events may be without a message before it is
            STREAM_IDLE; 0: no limit.
        keepalive_seconds: how long a connection may be silent before it is pinged, so that streams
            of dead callers end.
        min_ping_seconds: minimum time between a client's pings; below it, core ends the connection.
    """

    max_message_bytes: int = 16 * 2**20
    max_concurrent_calls: int = 256
    max_streams: int = 512
    max_connections: int = 1000
    max_request_bytes: int = 256 * 2**20
    max_receive_seconds: float = 20.0
    max_call_seconds: float = 60.0
    max_send_seconds: float = 60.0
    stream_idle_seconds: float = 900.0
    keepalive_seconds: float = 60.0
    min_ping_seconds: float = 10.0

    def channel_options(self) -> list[tuple[str, int]]:
        """The options for gRPC's core.

        SO_REUSEPORT is off, since it lets a second server silently bind the same port and take half
        of the connections. The name of the ping option is the one that has an effect.

        With the bandwidth probe, core buffers 4 MiB of a message that is not being read yet;
        without it, 64 KiB. Core cancels waiting calls without a reason beyond
        ``max_pending_requests``, and after 30 s by default; both limits are set so high that every
        call gets an answer.
        """
        return [
            ("grpc.so_reuseport", 0),
            ("grpc.max_receive_message_length", self.max_message_bytes),
            ("grpc.max_send_message_length", -1),
            ("grpc.http2.min_ping_interval_without_data_ms", int(self.min_ping_seconds * 1000)),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.keepalive_time_ms", int(self.keepalive_seconds * 1000)),
            ("grpc.keepalive_timeout_ms", 20_000),
            ("grpc.http2.bdp_probe", 0),
            ("grpc.max_concurrent_streams", self.max_concurrent_calls + self.max_streams + 32),
            ("grpc.max_allowed_incoming_connections", self.max_connections),
            ("grpc.max_connection_idle_ms", _IDLE_MS),
            ("grpc.server_handshake_timeout_ms", _HANDSHAKE_MS),
            ("grpc.server_max_unrequested_time_in_server", _PENDING_SECONDS),
            ("grpc.server.max_pending_requests", _PENDING),
            ("grpc.server.max_pending_requests_hard_limit", _PENDING),
        ]
