"""Calling a running server: the channel, streams that outlive it, and what to say of failures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from lot_grpc.cli.failures import note, tell
from lot_grpc.cli.health import reachable
from lot_grpc.cli.texts import clean
from lot_grpc.pb.lot.v1 import outcome_pb2
from lot_grpc.settings_file import load_settings

M = TypeVar("M")

NOT_THERE = "is the server running there? `lot-grpc health` asks it; --address names another"
TOO_SLOW = "--timeout waits longer"

_OPTIONS = (
    ("grpc.enable_http_proxy", 0),
    # Bytes; the server bounds what it sends, so nothing is bounded here.
    ("grpc.max_receive_message_length", -1),
    # A connection that died without a word is noticed, though nothing is sent on it. The server
    # takes a ping every 10 s.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)
_LOST = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED}
"""Ends of a stream after which the same server may be asked to go on: it stopped, it is gone, or
it would not wait for a reader that was held up."""

_USUAL_HINTS = {
    grpc.StatusCode.UNAVAILABLE: NOT_THERE,
    grpc.StatusCode.DEADLINE_EXCEEDED: TOO_SLOW,
}
"""Of failures that no server explains."""

_DETAILS = "grpc-status-details-bin"

_FIRST_WAIT = 0.5
_LONGEST_WAIT = 10.0
"""Seconds between tries to connect again; each waits twice as long as the one before."""


def target_of(address: str, config: Path | None) -> str:
    """The address to call.

    Raises:
        SettingsError: No address is given, and the settings cannot be used.
    """
    return address or reachable(load_settings(config).server.address)


def connected(target: str) -> grpc.Channel:
    """A channel to the server, for a ``with``."""
    return grpc.insecure_channel(target, options=_OPTIONS)


def going_on(
    target: str,
    opened: Callable[[grpc.Channel], Iterable[M]],
    behind: Callable[[], str],
    patience: float,
) -> Iterator[M]:
    """The messages of a stream that is opened again when it is lost, said on stderr.

    A stream that never began is not tried again.

    Args:
        target: Whom to call.
        opened: Opens the stream behind what came last.
        behind: Says where it goes on.
        patience: Seconds for which a lost server is tried again; 0: for ever.

    Raises:
        RpcError: It cannot be opened, or ended for a reason that trying again does not mend.
    """
    wait, lost_at, begun = _FIRST_WAIT, 0.0, False
    while True:
        try:
            with connected(target) as channel:
                for message in opened(channel):
                    if lost_at:
                        note(f"{target}: connected again")
                    wait, lost_at, begun = _FIRST_WAIT, 0.0, True
                    yield message
        except grpc.RpcError as error:
            if not begun or _code(error) not in _LOST:
                raise
            if not lost_at:
                lost_at = time.monotonic()
                note(f"{target}: connection lost ({_said(error)}); going on {behind()}")
            elif patience and time.monotonic() - lost_at > patience:
                raise
        else:
            return
        time.sleep(wait)
        wait = min(2 * wait, _LONGEST_WAIT)


def tell_failure(
    target: str, error: grpc.RpcError, hints: Mapping[grpc.StatusCode, str] | None = None
) -> None:
    """Say on stderr how a call failed, in the server's own words, and what to look at next."""
    code = _code(error)
    hint = {**_USUAL_HINTS, **(hints or {})}.get(code, "")
    if code in _USUAL_HINTS and _reason(error):
        hint = ""  # the server answered, and its sentence says what to do
    # The sentence has the first violation.
    others = [f"  {one.field}: {one.description}" for one in _violations(error)[1:]]
    tell("\n".join([f"{target}: {_said(error)}", *map(clean, others)]), hint)


def note_all(notices: Iterable[outcome_pb2.Notice]) -> None:
    """Say on stderr what the server wants known of an answer."""
    for one in notices:
        note(clean(one.message))


def _said(error: grpc.RpcError) -> str:
    """The code, the reason if the server gave one, and its sentence."""
    code, reason = _code(error), _reason(error)
    said = " ".join(filter(None, (code.name, clean(reason))))
    details = error.details() if isinstance(error, grpc.Call) else ""
    if details and (reason or code is not grpc.StatusCode.UNAVAILABLE):
        return f"{said}: {clean(details)}"
    return said  # gRPC's own words about a server that is not there help nobody


def _reason(error: grpc.RpcError) -> str:
    """The reason in the details of a status, such as CURSOR_TOO_OLD; empty without one."""
    return str(_detail(error, error_details_pb2.ErrorInfo).reason)


def _violations(error: grpc.RpcError) -> Sequence[Any]:
    return list(_detail(error, error_details_pb2.BadRequest).field_violations)


def _detail(error: grpc.RpcError, kind: Any) -> Any:
    """The detail of this kind in a status; an empty one without it."""
    found = error.trailing_metadata() if isinstance(error, grpc.Call) else None
    metadata: Iterable[tuple[str, bytes]] = found or ()
    detail = kind()
    try:
        for key, value in metadata:
            if key == _DETAILS:
                any(one.Unpack(detail) for one in status_pb2.Status.FromString(value).details)
    except DecodeError:  # not from a server of ours
        pass
    return detail


def _code(error: grpc.RpcError) -> grpc.StatusCode:
    return error.code() if isinstance(error, grpc.Call) else grpc.StatusCode.UNKNOWN
