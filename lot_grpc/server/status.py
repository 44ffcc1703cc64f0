"""The table from domain errors to the status that the caller gets.

The reasons and codes are documented in ``error_reason.proto``; a test keeps the two in step. From 8
KiB on, a call's metadata is refused at random, so a status stays well below: long texts are cut,
and the number of violations is given even if not all are listed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import quote

import grpc
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode as Code

from lot_grpc.domain.errors import (
    AuthUnavailableError,
    CredentialsInvalidError,
    CredentialsRequiredError,
    InUseError,
    LotError,
    NotFoundError,
    QuotaExceededError,
    RateLimitedError,
    RequestInvalidError,
)
from lot_grpc.telemetry.metrics import AUTH_FAILURES, QUOTA_REFUSED, RATE_LIMITED

Status: TypeAlias = Any
"""A ``google.rpc.Status``, whose generated code has no types."""

DOMAIN: Final = "lot.v1"
DETAILS_KEY: Final = "grpc-status-details-bin"

MAX_VIOLATIONS: Final = 20
MAX_VIOLATIONS_BYTES: Final = 4096
MAX_MESSAGE_BYTES: Final = 900
"""Limit on the message in its percent-encoded form."""
_PRINTABLE: Final = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")
MAX_TEXT_BYTES: Final = 256
MAX_METADATA: Final = 16
MAX_METADATA_BYTES: Final = 160


class Row(NamedTuple):
    """One error. ``retry_seconds``: how long to wait before a retry; 0: waiting does not help."""

    code: grpc.StatusCode
    retry_seconds: float = 0.0


TABLE: Final[Mapping[str, Row]] = {
    "INTERNAL": Row(Code.INTERNAL),
    "REQUEST_INVALID": Row(Code.INVALID_ARGUMENT),
    "REQUEST_MALFORMED": Row(Code.INVALID_ARGUMENT),
    "PAGE_TOKEN_MISMATCH": Row(Code.INVALID_ARGUMENT),
    "LIMIT_EXCEEDED": Row(Code.INVALID_ARGUMENT),
    "NOT_IMPLEMENTED": Row(Code.UNIMPLEMENTED),
    "PATTERN_NOT_FOUND": Row(Code.NOT_FOUND),
    "EPISODE_NOT_FOUND": Row(Code.NOT_FOUND),
    "MEMORY_NOT_FOUND": Row(Code.NOT_FOUND),
    "RETRIEVAL_NOT_FOUND": Row(Code.NOT_FOUND),
    "NOT_IN_RETRIEVAL": Row(Code.INVALID_ARGUMENT),
    "SELECTION_NOT_FOUND": Row(Code.NOT_FOUND),
    "PATTERN_ID_IN_USE": Row(Code.ALREADY_EXISTS),
    "EPISODE_ID_IN_USE": Row(Code.ALREADY_EXISTS),
    "MEMORY_ID_IN_USE": Row(Code.ALREADY_EXISTS),
    "DECISION_ID_IN_USE": Row(Code.ALREADY_EXISTS),
    "LEARNING_EVENT_ID_IN_USE": Row(Code.ALREADY_EXISTS),
    "REQUEST_ID_REUSED": Row(Code.ALREADY_EXISTS),
    "ETAG_MISMATCH": Row(Code.ABORTED),
    "CONTENTION": Row(Code.ABORTED, retry_seconds=0.2),
    "EPISODE_ENDED": Row(Code.FAILED_PRECONDITION),
    "EPISODE_STREAM_OPEN": Row(Code.FAILED_PRECONDITION),
    "WRITER_REPLACED": Row(Code.ABORTED),
    "STREAM_NOT_OPENED": Row(Code.FAILED_PRECONDITION),
    "STREAM_IDLE": Row(Code.ABORTED),
    "EVENT_SEQUENCE_GAP": Row(Code.FAILED_PRECONDITION),
    "EVENT_CONFLICT": Row(Code.ALREADY_EXISTS),
    "OVERLOADED": Row(Code.RESOURCE_EXHAUSTED, retry_seconds=1.0),
    "SHUTTING_DOWN": Row(Code.UNAVAILABLE, retry_seconds=2.0),
    "CALL_TIMEOUT": Row(Code.DEADLINE_EXCEEDED),
    "STORE_UNAVAILABLE": Row(Code.UNAVAILABLE, retry_seconds=1.0),
    "STORAGE_FULL": Row(Code.RESOURCE_EXHAUSTED),
    "EMBEDDING_FAILED": Row(Code.INTERNAL),
    "EMBEDDING_UNAVAILABLE": Row(Code.UNAVAILABLE, retry_seconds=2.0),
    "RERANKER_UNAVAILABLE": Row(Code.FAILED_PRECONDITION),
    "MATCH_UNAVAILABLE": Row(Code.FAILED_PRECONDITION),
    "EMBEDDING_MODEL_MISMATCH": Row(Code.FAILED_PRECONDITION),
    "ERROR_SOLUTION_NOT_FOUND": Row(Code.NOT_FOUND),
    "PREFERENCE_NOT_FOUND": Row(Code.NOT_FOUND),
    "SESSION_NOT_FOUND": Row(Code.NOT_FOUND),
    "DECISION_NOT_FOUND": Row(Code.NOT_FOUND),
    "LEARNING_EVENT_NOT_FOUND": Row(Code.NOT_FOUND),
    "NAMESPACE_CLEARING": Row(Code.FAILED_PRECONDITION, retry_seconds=1.0),
    "CURSOR_EXPIRED": Row(Code.OUT_OF_RANGE),
    "COMPACT_OFFLINE_ONLY": Row(Code.FAILED_PRECONDITION),
    "REINDEX_RUNNING": Row(Code.FAILED_PRECONDITION),
    "REINDEX_OFFLINE_ONLY": Row(Code.FAILED_PRECONDITION),
    "MODEL_SWITCHED": Row(Code.ABORTED),
    "EMBEDDING_MODEL_UNAVAILABLE": Row(Code.FAILED_PRECONDITION),
    "OUTCOME_NOT_FOUND": Row(Code.NOT_FOUND),
    "OUTCOME_CORRECTED": Row(Code.FAILED_PRECONDITION),
    "ERROR_SOLUTION_ID_IN_USE": Row(Code.ALREADY_EXISTS),
    "IMPORT_FORMAT_TOO_NEW": Row(Code.FAILED_PRECONDITION),
    "IMPORT_CONFLICT": Row(Code.ALREADY_EXISTS),
    "SESSION_FULL": Row(Code.FAILED_PRECONDITION),
    "ORIGIN_RESERVED": Row(Code.INVALID_ARGUMENT),
    "ORIGIN_RAISED": Row(Code.FAILED_PRECONDITION),
    "CREDENTIALS_REQUIRED": Row(Code.UNAUTHENTICATED),
    "CREDENTIALS_INVALID": Row(Code.UNAUTHENTICATED),
    "NAMESPACE_DENIED": Row(Code.PERMISSION_DENIED),
    "ROLE_REQUIRED": Row(Code.PERMISSION_DENIED),
    "NAMESPACE_REQUIRED": Row(Code.INVALID_ARGUMENT),
    "RATE_LIMITED": Row(Code.RESOURCE_EXHAUSTED, retry_seconds=1.0),
    "QUOTA_EXCEEDED": Row(Code.RESOURCE_EXHAUSTED),
    "AUTH_UNAVAILABLE": Row(Code.UNAVAILABLE, retry_seconds=2.0),
}

_INTERNAL = TABLE["INTERNAL"]


def to_status(error: LotError) -> Status:
    """The status of an error whose reason the table knows. Always less than 6 KB.

    Every refusal is counted here, since calls and the items of a batch get theirs here.

    Raises:
        KeyError: the reason is not in the contract, so the caller must not see it.
    """
    row = TABLE[error.reason]
    _count(error)
    metadata = dict(error.metadata)
    details: list[Message] = []
    if isinstance(error, RequestInvalidError):
        details.append(_bad_request(error))
    elif isinstance(error, NotFoundError | InUseError):
        details.append(
            error_details_pb2.ResourceInfo(
                resource_type=f"{DOMAIN}.{error.resource_kind.title().replace(' ', '')}",
                resource_name=cut(error.id),
                description=cut(error.message),
            )
        )
    elif row.code is Code.FAILED_PRECONDITION:
        details.append(_failed_precondition(error))
    wait = error.retry_seconds if isinstance(error, RateLimitedError) else row.retry_seconds
    if wait:
        retry = error_details_pb2.RetryInfo()
        retry.retry_delay.FromMilliseconds(math.ceil(wait * 1000))
        details.append(retry)
    return _status(row.code, error.message, error.reason, metadata, details)


def _count(error: LotError) -> None:
    match error:
        case CredentialsRequiredError():
            AUTH_FAILURES.add("missing")
        case CredentialsInvalidError():
            AUTH_FAILURES.add(error.cause)
        case AuthUnavailableError():
            AUTH_FAILURES.add("unavailable")
        case RateLimitedError():
            RATE_LIMITED.add(error.kind)
        case QuotaExceededError():
            QUOTA_REFUSED.add(f"{error.unit}s")


def internal_status(call_id: str) -> Status:
    """The status of an unexpected error: an id to quote, and nothing else."""
    return _status(
        Code.INTERNAL,
        f"internal error; the operator finds the cause in the log under call id {call_id}",
        "INTERNAL",
        {"call_id": call_id},
        (),
    )


def cut(text: str, max_bytes: int = MAX_TEXT_BYTES) -> str:
    """``text``, or as much of it as fits in ``max_bytes`` of UTF-8 with an ellipsis."""
    if len(text) * 4 <= max_bytes:
        return text
    raw = text.encode("utf-8", "replace")
    if len(raw) <= max_bytes:
        return text
    return raw[: max_bytes - 3].decode("utf-8", "ignore") + "…"


def _cut_message(text: str) -> str:
    """The message, short enough even though each non-ASCII byte takes three when encoded."""
    text = cut(text, MAX_MESSAGE_BYTES)
    while len(quote(text, safe=_PRINTABLE)) > MAX_MESSAGE_BYTES:
        text = text[: len(text) * 3 // 4] + "…"
    return text


def _status(
    code: grpc.StatusCode,
    message: str,
    reason: str,
    metadata: Mapping[str, str],
    details: Iterable[Message],
) -> Status:
    status = status_pb2.Status(code=code.value[0], message=_cut_message(message))
    info = error_details_pb2.ErrorInfo(reason=reason, domain=DOMAIN)
    for key in list(metadata)[:MAX_METADATA]:
        info.metadata[key[:63]] = cut(metadata[key], MAX_METADATA_BYTES)
    status.details.add().Pack(info)
    for detail in details:
        status.details.add().Pack(detail)
    return status


def _bad_request(error: RequestInvalidError) -> Any:
    """The first violations that fit, but always at least one."""
    bad = error_details_pb2.BadRequest()
    room = MAX_VIOLATIONS_BYTES
    for violation in error.violations[:MAX_VIOLATIONS]:
        listed = error_details_pb2.BadRequest.FieldViolation(
            field=cut(violation.field),
            description=cut(violation.description),
            reason=cut(violation.rule),
        )
        room -= listed.ByteSize() + 4
        if room < 0:
            break
        bad.field_violations.append(listed)
    return bad


def _failed_precondition(error: LotError) -> Any:
    subject = error.metadata.get("episode_id") or error.metadata.get("id", "")
    failure = error_details_pb2.PreconditionFailure()
    failure.violations.add(type=error.reason, subject=cut(subject), description=cut(error.message))
    return failure
