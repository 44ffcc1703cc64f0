"""What checks and observes the calls of a server. None: it is not done, and costs nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lot_grpc.domain.access import Credentials, Principal
from lot_grpc.server.rates import UNLIMITED, PrincipalLimits


class Authenticator(Protocol):
    """Tells who sent credentials."""

    async def authenticate(self, credentials: Credentials) -> Principal:
        """The principal.

        Raises:
            CredentialsRequiredError: there are none.
            CredentialsInvalidError: they are not accepted.
            AuthUnavailableError: they cannot be verified now.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """The guards of one server."""

    authenticator: Authenticator | None = None
    principal_limits: PrincipalLimits = UNLIMITED
    monotonic: Callable[[], float] = time.monotonic
    """The time of rate limits, in seconds."""
    fair: bool = True
    """Whether calls of several principals take turns, if there is an authenticator."""
