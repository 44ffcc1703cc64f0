"""Errors of authentication, authorization and limits for one principal or namespace."""

from __future__ import annotations

from lot_grpc.domain.counting import counted
from lot_grpc.domain.errors.base import LotError


class CredentialsRequiredError(LotError):
    """The call carries no credentials, and the server requires them."""

    reason = "CREDENTIALS_REQUIRED"

    def __init__(self) -> None:
        super().__init__(
            "this server requires credentials; send an API key or token as metadata "
            "`authorization: Bearer …` (the operator creates keys with `lot-grpc keys create`)"
        )


class CredentialsInvalidError(LotError):
    """The credentials are not accepted.

    The caller is not told why. ``why`` is for the log; ``cause``, one of a few words, for the
    metrics: ``unknown``, ``wrong``, ``expired``, ``revoked``, ``claims`` or ``malformed``.
    """

    reason = "CREDENTIALS_INVALID"

    def __init__(self, why: str, cause: str = "malformed") -> None:
        super().__init__(
            "the credentials are not accepted: they are unknown, malformed, expired or revoked; "
            "ask the operator for valid ones (the server's log says why)"
        )
        self.why = why
        self.cause = cause


class AuthUnavailableError(LotError):
    """The server cannot verify tokens yet: it could not fetch the issuer's signing keys."""

    reason = "AUTH_UNAVAILABLE"

    def __init__(self) -> None:
        super().__init__(
            "the server cannot verify tokens yet, since it could not fetch the issuer's signing "
            "keys; retry in a moment"
        )


class NamespaceDeniedError(LotError):
    """The caller has no role in the namespace, which may or may not exist."""

    reason = "NAMESPACE_DENIED"

    def __init__(self, namespace: str) -> None:
        super().__init__(
            f"these credentials do not cover namespace {namespace}; use a namespace that they "
            "cover (ListNamespaces), or ask the operator for access",
            namespace=namespace,
        )


class RoleRequiredError(LotError):
    """The caller's role does not allow the call.

    ``where`` is a namespace, ``*`` for all at once, or empty for any.
    """

    reason = "ROLE_REQUIRED"

    def __init__(self, method: str, role: str, where: str) -> None:
        place = {"*": "all namespaces", "": "a namespace"}.get(where, f"namespace {where}")
        super().__init__(
            f"{method} needs the role {role} in {place}; ask the operator for credentials with "
            "that role",
            method=method,
            role=role,
            namespace=where,
        )


class NamespaceRequiredError(LotError):
    """The request names no namespace, and the caller has none of its own."""

    reason = "NAMESPACE_REQUIRED"

    def __init__(self) -> None:
        super().__init__(
            "set namespace: these credentials cover several namespaces and have none of their own"
        )


class RateLimitedError(LotError):
    """A principal is over its limit. ``retry_seconds`` is how long to wait.

    ``kind`` of limit: ``rate``, ``concurrency`` or ``streams``.
    """

    reason = "RATE_LIMITED"

    def __init__(
        self, message: str, *, limit: str, retry_seconds: float, kind: str = "rate"
    ) -> None:
        super().__init__(message, limit=limit, retry_seconds=f"{retry_seconds:g}")
        self.retry_seconds = retry_seconds
        self.kind = kind


class QuotaExceededError(LotError):
    """A write would take a namespace over its quota. ``unit`` is ``record`` or ``byte``."""

    reason = "QUOTA_EXCEEDED"

    def __init__(self, namespace: str, unit: str, *, limit: int, used: int, added: int) -> None:
        super().__init__(
            f"namespace {namespace} holds {counted(used, unit)}, its quota is {limit:,}, and this "
            f"would add {added:,}; delete what is no longer needed, or ask the operator to raise "
            "the quota",
            namespace=namespace,
            unit=unit,
            limit=limit,
            used=used,
            added=added,
        )
        self.namespace = namespace
        self.unit = unit
