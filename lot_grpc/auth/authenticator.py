"""Authenticates callers by whichever credentials the server accepts.

If a call carries ``authorization``, only that counts; otherwise its client certificate does, if the
key file names any.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final

import structlog

from lot_grpc.auth.files import LOOK_SECONDS
from lot_grpc.auth.keys import KeyVerifier
from lot_grpc.domain.access import Credentials, Principal
from lot_grpc.domain.errors import CredentialsInvalidError, CredentialsRequiredError

if TYPE_CHECKING:
    from lot_grpc.auth.tokens import TokenVerifier  # takes 50 ms to import

_log = structlog.get_logger()

MAX_CREDENTIALS: Final = 16_384
"""Longest ``authorization`` that is read, in characters."""

_BEARER = re.compile(r"bearer +([!-~]+)", re.IGNORECASE)
_KEY_PREFIX: Final = "lot_"


class Authenticator:
    """Verifies keys, tokens and certificates (``server.guards.Authenticator``)."""

    def __init__(self, keys: KeyVerifier | None, tokens: TokenVerifier | None) -> None:
        self._keys = keys
        self._tokens = tokens

    async def authenticate(self, credentials: Credentials) -> Principal:
        """Who sent the credentials.

        Raises:
            CredentialsRequiredError: There are none.
            CredentialsInvalidError: They are not accepted.
            AuthUnavailableError: They cannot be verified now.
        """
        if credentials.authorizations:
            return await self._bearer(_token(credentials.authorizations))
        names = credentials.certificate_names
        caller = self._keys.verify_certificate(names) if self._keys and names else None
        if caller is None:
            raise CredentialsRequiredError
        return caller

    async def _bearer(self, token: str) -> Principal:
        if self._keys is not None and (self._tokens is None or token.startswith(_KEY_PREFIX)):
            return self._keys.verify(token)
        if self._tokens is None or token.startswith(_KEY_PREFIX):
            raise CredentialsInvalidError("this server accepts no keys")
        return await self._tokens.verify(token)

    async def run(self) -> None:
        """Keep up with changes of the files and of the issuer's keys, until cancelled."""
        while True:
            try:
                await self._follow()
            except Exception as error:  # noqa: BLE001 - the next round tries again
                _log.error("could not reload keys", exc_info=error)
            await asyncio.sleep(LOOK_SECONDS)

    async def _follow(self) -> None:
        if self._keys is not None:
            self._keys.refresh()
            if self._keys.last_use_is_due:
                await self._keys.write_last_use()
        if self._tokens is not None:
            await self._tokens.refresh()

    async def close(self) -> None:
        """Write the times of last use, and close connections."""
        if self._keys is not None:
            await self._keys.write_last_use()
        if self._tokens is not None:
            await self._tokens.close()


def _token(authorizations: tuple[str, ...]) -> str:
    """The token of ``authorization``. Raises CredentialsInvalidError."""
    if len(authorizations) > 1:
        raise CredentialsInvalidError("several authorization values")
    [value] = authorizations
    if len(value) > MAX_CREDENTIALS:
        raise CredentialsInvalidError("too long")
    found = _BEARER.fullmatch(value.strip(" \t"))
    if found is None:
        raise CredentialsInvalidError("authorization is not `Bearer` and a key or token")
    return found[1]
