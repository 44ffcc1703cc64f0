"""The one error that calls raise, decoded from what the server sends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.rpc import error_details_pb2, status_pb2

_DETAILS_KEY = "grpc-status-details-bin"
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_HINTS = {
    grpc.StatusCode.UNAVAILABLE: "check the address, and that the server is running",
    grpc.StatusCode.DEADLINE_EXCEEDED: "use a longer deadline",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "send less in one call",
    grpc.StatusCode.UNIMPLEMENTED: "check the address: no lot-grpc server there, or an older one",
}
"""Hints for errors that do not come from lot-grpc; its own messages include them."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule of the contract that a field of the request violates.

    Attributes:
        field: path of the field, for example `pattern.task`.
        description: an explanation for humans.
        rule: the rule's id, for example `string.max_bytes`.
    """

    field: str
    description: str
    rule: str = ""


@dataclass(eq=False)
class LotError(Exception):
    """A call failed.

    Attributes:
        code: the gRPC status code.
        message: an explanation for humans.
        reason: a name of `lot.v1.ErrorReason` without its prefix, for example
            `PATTERN_NOT_FOUND`. Empty if the answer did not come from lot-grpc itself, for example
            because nothing listens at the address.
        metadata: details of the reason, as listed in `error_reason.proto`.
        violations: violated rules of a REQUEST_INVALID; the server lists the first 20.
        retry_after: seconds to wait before a retry, if the server says so, else None.
        method: name of the RPC, for example `SavePattern`; empty for a stream or a batch item.
        request_id: of the write that failed; empty if it has none. The write may have been carried
            out: make the same call with this `request_id` to repeat it without doing it twice.
        tries: how often the call was made.
    """

    code: grpc.StatusCode
    message: str
    reason: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    violations: tuple[Violation, ...] = ()
    retry_after: float | None = None
    method: str = ""
    request_id: str = ""
    tries: int = 1

    def __post_init__(self) -> None:
        super().__init__(self.code, self.message)

    def __str__(self) -> str:
        text = f"{self.reason or self.code.name}: {self.message}"
        if self.method:
            text = f"{self.method}: {text}"
        if not self.reason and self.method and self.code in _HINTS:
            text += f"; {_HINTS[self.code]}"
        if self.tries > 1:
            text += f" (after {self.tries} tries)"
        # The sentence has the first one.
        return "\n".join([text, *(f"  {v.field}: {v.description}" for v in self.violations[1:])])

    @classmethod
    def from_rpc_error(cls, error: grpc.RpcError) -> LotError:
        """Decode an error of gRPC, sync or asyncio."""
        call: Any = error  # a Call in both worlds, which the base class does not say
        for key, value in call.trailing_metadata() or ():
            if key == _DETAILS_KEY:
                return cls.from_status(status_pb2.Status.FromString(value))
        return cls(call.code(), call.details() or "no details given")

    @classmethod
    def from_status(cls, status: Any) -> LotError:
        """Decode a `google.rpc.Status`, for example the error of one item of a batch."""
        info = _detail(status.details, error_details_pb2.ErrorInfo)
        bad = _detail(status.details, error_details_pb2.BadRequest)
        retry = _detail(status.details, error_details_pb2.RetryInfo)
        return cls(
            code=_CODES.get(status.code, grpc.StatusCode.UNKNOWN),
            message=status.message,
            reason=info.reason if info else "",
            metadata=dict(info.metadata) if info else {},
            violations=tuple(
                Violation(each.field, each.description, each.reason)
                for each in (bad.field_violations if bad else ())
            ),
            retry_after=retry.retry_delay.ToNanoseconds() / 1e9 if retry else None,
        )


def _detail(details: Iterable[Any], kind: Any) -> Any:
    """The first detail of a kind, or None."""
    for packed in details:
        if packed.Is(kind.DESCRIPTOR):
            detail = kind()
            packed.Unpack(detail)
            return detail
    return None
