"""Calls to a running server: the connection, streams that survive its loss, and failures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
import typer
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from grpc_status import rpc_status

from lot_grpc.cli.connection import KEY_VARIABLE, Connection, Endpoint, tls_problem
from lot_grpc.cli.failures import FAILED, print_error, print_note
from lot_grpc.cli.options import Patience, Timeout
from lot_grpc.cli.texts import clean
from lot_grpc.pb.lot.v1 import outcome_pb2

M = TypeVar("M")
S = TypeVar("S")
D = TypeVar("D", BadRequest, ErrorInfo)
Hints = Mapping[grpc.StatusCode, str]

CALL_SECONDS = 60.0
"""Timeout of unary calls in commands whose ``timeout`` applies to a stream."""

_LOST = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED}
"""Codes after which a stream may be resumed: the server stopped, is unreachable, or did not wait
for a slow reader."""

_USUAL_HINTS = {
    grpc.StatusCode.UNAVAILABLE: "is the server running there? check with `lot-grpc health`; "
    "--address selects another server",
    grpc.StatusCode.DEADLINE_EXCEEDED: "--timeout waits longer",
}
"""Hints for failures that the server does not explain."""
_KEY_HINT = f"set the API key by {KEY_VARIABLE} or --api-key-file FILE"

_FIRST_WAIT = 0.5
_LONGEST_WAIT = 10.0
"""Seconds before the first and the last attempts to reconnect; the wait doubles each time."""


@dataclass(frozen=True)
class Caller(Connection):
    """Calls the server that a command is given."""

    @contextmanager
    def stub(self, service: Callable[[grpc.Channel], S], hints: Hints | None = None) -> Iterator[S]:
        """A stub of a service; a call that fails ends the command."""
        channel = self.channel()
        with self.calling(hints), channel:
            yield service(channel)

    @contextmanager
    def calling(self, hints: Hints | None = None) -> Iterator[None]:
        """End the command with the server's reason if a call fails."""
        endpoint = self.endpoint
        try:
            yield
        except grpc.RpcError as error:
            _print_failure(endpoint, error, hints or {})
            raise typer.Exit(FAILED) from None


@dataclass(frozen=True)
class Server(Caller):
    """The server that a command calls, from the options that all commands share."""

    timeout: Timeout = 60.0

    def resumed(
        self, opened: Callable[[grpc.Channel], Iterable[M]], position: Callable[[], str]
    ) -> Iterator[M]:
        """The messages of a stream, which is reopened with a note when the connection is lost.

        A stream that never began is not retried. A lost server is retried for ``timeout`` seconds;
        0: forever.

        Args:
            opened: Opens the stream after the last message.
            position: Where it resumes, for the note.

        Raises:
            RpcError: It cannot be opened, or ended for a reason that a retry does not fix.
        """
        wait, lost_at, begun = _FIRST_WAIT, 0.0, False
        while True:
            try:
                with self.channel() as channel:
                    for message in opened(channel):
                        if lost_at:
                            print_note(f"{self.target}: reconnected")
                        wait, lost_at, begun = _FIRST_WAIT, 0.0, True
                        yield message
            except grpc.RpcError as error:
                if not begun or _code(error) not in _LOST:
                    raise
                if not lost_at:
                    lost_at = time.monotonic()
                    lost = f"connection lost ({_sentence(error)})"
                    print_note(f"{self.target}: {lost}; resuming {position()}")
                elif self.timeout and time.monotonic() - lost_at > self.timeout:
                    raise
            else:
                return
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)


@dataclass(frozen=True)
class StreamingServer(Server):
    """The server of a command with a stream, which is resumed when the connection is lost."""

    timeout: Patience = 60.0


def print_notices(notices: Iterable[outcome_pb2.Notice]) -> None:
    """Print the notices of a response on stderr."""
    for one in notices:
        print_note(clean(one.message))


def _print_failure(endpoint: Endpoint, error: grpc.RpcError, hints: Hints) -> None:
    code = _code(error)
    hint = {**_USUAL_HINTS, **hints}.get(code, "")
    if code in _USUAL_HINTS:
        if _detail(error, ErrorInfo).reason:
            hint = ""  # the server answered, and its message says what to do
        elif code not in hints and isinstance(error, grpc.Call):
            hint = tls_problem(error.details() or "", tls=endpoint.tls) or hint
    elif code is grpc.StatusCode.UNAUTHENTICATED:
        hint = _KEY_HINT
    # The message contains the first violation.
    violations = list(_detail(error, BadRequest).field_violations)[1:]
    others = [clean(f"  {one.field}: {one.description}") for one in violations]
    print_error("\n".join([f"{endpoint.target}: {_sentence(error)}", *others]), hint)


def _sentence(error: grpc.RpcError) -> str:
    """The code, the server's reason if there is one, such as CURSOR_EXPIRED, and its message."""
    code, reason = _code(error), _detail(error, ErrorInfo).reason
    head = " ".join(filter(None, (code.name, clean(reason))))
    details = error.details() if isinstance(error, grpc.Call) else ""
    if details and (reason or code is not grpc.StatusCode.UNAVAILABLE):
        return f"{head}: {clean(details)}"
    return head  # gRPC's own text about an unreachable server is of no use


def _detail(error: grpc.RpcError, kind: type[D]) -> D:
    """The detail of this type in a status; an empty one if there is none."""
    detail = kind()
    with suppress(DecodeError, ValueError):  # not from a lot-grpc server
        status: Any = rpc_status.from_call(error) if isinstance(error, grpc.Call) else None
        any(one.Unpack(detail) for one in (status.details if status else ()))
    return detail


def _code(error: grpc.RpcError) -> grpc.StatusCode:
    return error.code() if isinstance(error, grpc.Call) else grpc.StatusCode.UNKNOWN
