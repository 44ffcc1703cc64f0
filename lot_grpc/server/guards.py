"""What checks and observes the calls of a server. None: it is not done, and costs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from lot_grpc.domain.access import Credentials, Principal


class Authenticator(Protocol):
    """Tells who sent credentials."""

    async def authenticate(self, credentials: Credentials) -> Principal:
        """The principal.

        Raises:
            CredentialsRequiredError: there are none.
            CredentialsInvalidError: they are not accepted.
            AuthUnavailableError: they cannot be verified now.
        """


class AuditLog(Protocol):
    """Keeps what was done, by whom."""

    reads: bool
    """Whether calls that change nothing are recorded too."""

    def write(self, record: Mapping[str, object]) -> None:
        """Keep a record, with the present time. Never raises: a failure is reported elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """The guards of one server."""

    authenticator: Authenticator | None = None
    audit: AuditLog | None = None
