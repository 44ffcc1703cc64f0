"""Requests that are wrong, or that this server does not carry out as it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lot_grpc.domain.errors.base import LotError
from lot_grpc.domain.ids import HOUR, REQUEST_ID_LIFE


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing wrong with a request: a field path as in the proto, a rule, a sentence."""

    field: str
    rule: str
    description: str


class RequestInvalidError(LotError):
    """The request itself is wrong; the same request can never succeed.

    ``more`` counts violations that are not among the given ones.
    """

    reason = "REQUEST_INVALID"

    def __init__(self, violations: Sequence[Violation], more: int = 0) -> None:
        first = violations[0] if violations else Violation("", "", "invalid request")
        count = len(violations) + more
        others = f" (and {count - 1} more)" if count > 1 else ""
        where = f"{first.field}: " if first.field else ""
        super().__init__(f"{where}{first.description}{others}", violations=count)
        self.violations = tuple(violations)


def invalid(field: str, rule: str, description: str) -> RequestInvalidError:
    """A request with one thing wrong."""
    return RequestInvalidError([Violation(field, rule, description)])


class RequestMalformedError(LotError):
    """The bytes are no message of the request type (bad UTF-8, cut off, nested too deep)."""

    reason = "REQUEST_MALFORMED"

    def __init__(self, message: str, *, type: str) -> None:
        super().__init__(message, type=type)


class PageTokenMismatchError(LotError):
    """A page token that is damaged, or was made by a list with other arguments."""

    reason = "PAGE_TOKEN_MISMATCH"


class LimitExceededError(LotError):
    """A deployment limit (settings), not the contract's own.

    ``given`` may be a text such as ``more than 500`` where counting stopped.
    """

    reason = "LIMIT_EXCEEDED"

    def __init__(self, message: str, *, limit: object, given: object) -> None:
        super().__init__(message, limit=limit, given=given)


class UnimplementedError(LotError):
    """A call or option that this version does not carry out yet."""

    reason = "NOT_IMPLEMENTED"

    def __init__(self, capability: str) -> None:
        super().__init__(
            f"{capability} is not implemented by this version; see GetServerInfo.capabilities",
            capability=capability,
        )


class RequestIdReusedError(LotError):
    """A ``request_id`` came again with other content."""

    reason = "REQUEST_ID_REUSED"

    def __init__(self, request_id: str, method: str) -> None:
        super().__init__(
            f"request_id {request_id!r} was used for another {method} within the last "
            f"{REQUEST_ID_LIFE // HOUR} h; "
            "use a new request_id for new content",
            request_id=request_id,
            method=method,
        )


class CompactOfflineOnlyError(LotError):
    """Compacting the embedded store would stop all other calls."""

    reason = "COMPACT_OFFLINE_ONLY"

    def __init__(self, backend: str) -> None:
        super().__init__(
            "compacting the embedded store would block all other calls, possibly for minutes; stop "
            "the server and run `lot-grpc compact`, or restart the server, which compacts before "
            "serving",
            backend=backend,
        )


class ReindexRunningError(LotError):
    """Another call reindexes already."""

    reason = "REINDEX_RUNNING"

    def __init__(self) -> None:
        super().__init__(
            "another Reindex is running on this server; wait until it ends, then call again to "
            "verify that all is done"
        )


class ReindexOfflineOnlyError(LotError):
    """Other servers may work on the store, and would go on with the former model."""

    reason = "REINDEX_OFFLINE_ONLY"

    def __init__(self) -> None:
        super().__init__(
            "other servers may share this store and would miss the switch; stop them all, run "
            "`lot-grpc reindex --offline` with the new model configured, and start them with it"
        )


class OverloadedError(LotError):
    """The server is at its limit, for example of calls or streams. ``limit`` may have a unit."""

    reason = "OVERLOADED"

    def __init__(self, message: str, *, limit: object, **more: object) -> None:
        super().__init__(message, limit=limit, **more)


class ShuttingDownError(LotError):
    """The server drains before it stops."""

    reason = "SHUTTING_DOWN"


class CallTimeoutError(LotError):
    """A call ran into the server's own limit of time."""

    reason = "CALL_TIMEOUT"

    def __init__(self, message: str, *, limit_seconds: float) -> None:
        super().__init__(message, limit_seconds=f"{limit_seconds:g}")
