"""What checks and observes the calls of a server. What is None is off, and costs nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from lot_grpc.domain.access import Credentials, Principal
from lot_grpc.domain.rate_limits import UNLIMITED, PrincipalLimits
from lot_grpc.redaction import SecretFinder
from lot_grpc.telemetry.spans import Tracer

RECHECK_SECONDS: Final = 20.0
"""An open stream ends within twice this time after its credentials were revoked or expired."""


class Authenticator(Protocol):
    """Authenticates callers."""

    async def authenticate(self, credentials: Credentials) -> Principal:
        """The principal.

        Raises:
            CredentialsRequiredError: there are none.
            CredentialsInvalidError: they are not accepted.
            AuthUnavailableError: they cannot be verified now.
        """


class AuditLog(Protocol):
    """Records who did what."""

    reads: bool
    """Whether calls that change nothing are recorded too."""

    def write(self, record: Mapping[str, object]) -> None:
        """Keep a record, with the present time. Never raises: a failure is reported elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """The guards of one server.

    Attributes:
        authenticator: Authenticates callers.
        certificates: Whether it is given the names in clients' certificates; reading them takes
            several microseconds a call.
        audit: Records who did what.
        recheck_seconds: An open stream is checked again this often.
    """

    authenticator: Authenticator | None = None
    certificates: bool = True
    audit: AuditLog | None = None
    recheck_seconds: float = RECHECK_SECONDS
    secrets: SecretFinder | None = None
    """Finds what is taken out of texts before they are stored."""
    metrics: bool = False
    """Whether calls are counted and timed."""
    tracer: Tracer | None = None
    principal_limits: PrincipalLimits = UNLIMITED
    monotonic: Callable[[], float] = time.monotonic
    """The time of rate limits, in seconds."""
    fair: bool = True
    """Whether calls of several principals take turns, if there is an authenticator."""
