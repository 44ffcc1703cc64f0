"""Verifies API keys and client certificates against the key file of a running server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from hmac import compare_digest
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from lot_grpc.auth import key_file
from lot_grpc.auth.files import FileError, WatchedFile
from lot_grpc.domain.access import Principal
from lot_grpc.domain.api_key import KEY, ApiKey, Keys, key_hash
from lot_grpc.domain.errors import CredentialsInvalidError

_log = structlog.get_logger()

WRITE_SECONDS: Final = 60.0
"""How often times of last use are written."""

_NO_HASH: Final = "-" * 64
"""Compared with when there is no hash, so that it takes as long. No key has this hash."""


class _Entry(NamedTuple):
    key: ApiKey
    principal: Principal


class KeyVerifier:
    """Authenticates keys and certificates. Changes of the file take effect within a second.

    Raises:
        FileError: The file cannot be used.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        parse = partial(key_file.parse, path)
        self._file = WatchedFile(path, key_file.WHAT, parse, private=True, metric="keys")
        self._used: dict[str, float] = {}
        self._written = time.monotonic()
        self._problem = ""
        self._index()

    def _index(self) -> None:
        entries = [_Entry(one, one.principal) for one in self._file.value]
        now = datetime.fromtimestamp(self._clock(), UTC)
        if not any(one.state(now) == "valid" for one in self._file.value):
            _log.warning("no key is valid, so no call with a key is accepted", path=str(self._path))
        self._by_id = {one.key.id: one for one in entries}
        # A revoked entry must not hide the live one of the same certificate.
        entries.sort(key=lambda one: one.key.revoke_time is None)
        self._by_san = {one.key.san: one for one in entries if one.key.san}

    @property
    def keys(self) -> Keys:
        """The entries in effect."""
        return self._file.value

    def refresh(self) -> None:
        """Read the file if it changed. Called for every call; looks once a second."""
        if self._file.refresh():
            self._index()

    def verify(self, text: str) -> Principal:
        """Who has a key. It takes as long for an unknown one as for a wrong or a right one.

        Raises:
            CredentialsInvalidError: It is not accepted.
        """
        self.refresh()
        digest = key_hash(text)
        form = KEY.fullmatch(text)
        entry = self._by_id.get(form[1]) if form else None
        key = entry.key if entry else None
        present = compare_digest(digest, (key.hash if key else "") or _NO_HASH)
        previous = compare_digest(digest, (key.previous_hash if key else "") or _NO_HASH)
        if entry is None or not (present or previous):
            raise CredentialsInvalidError(
                f"wrong secret for key {form[1]}"
                if entry and form
                else "no such key"
                if form
                else "not of the form of a key",
                "wrong" if entry else "unknown" if form else "malformed",
            )
        return self._accepted(entry, previous=not present)

    def verify_certificate(self, names: Iterable[str]) -> Principal | None:
        """Who has a verified client certificate with these names; None if no entry is for any.

        Raises:
            CredentialsInvalidError: It is not accepted.
        """
        self.refresh()
        if not self._by_san:
            return None
        found = {one.key.id: one for name in names if (one := self._by_san.get(name))}
        if len(found) != 1:
            raise CredentialsInvalidError(
                "the certificate has the names of several keys"
                if found
                else "no key names the certificate",
                "unknown",
            )
        return self._accepted(next(iter(found.values())), previous=False)

    def _accepted(self, entry: _Entry, *, previous: bool) -> Principal:
        key, now = entry.key, self._clock()
        if (state := key.state(datetime.fromtimestamp(now, UTC))) != "valid":
            raise CredentialsInvalidError(f"key {key.id} ({key.name}) is {state}", state)
        if previous:
            end = key.previous_expire_time
            if end is None or end.timestamp() <= now:
                raise CredentialsInvalidError(f"key {key.id} ({key.name}) was rotated", "expired")
        self._used[key.id] = now
        return entry.principal

    async def write_last_use(self) -> None:
        """Write when keys were last used, if that changed. Never raises."""
        used, self._used = self._used, {}
        self._written = time.monotonic()
        if not used:
            return
        ids = frozenset(self._by_id)
        try:
            await asyncio.to_thread(key_file.write_last_use, self._path, used, ids)
            self._problem = ""
        except FileError as error:
            self._used = used | self._used
            if self._problem != str(error):
                self._problem = str(error)
                _log.warning("times of last use cannot be written", why=str(error))

    @property
    def last_use_is_due(self) -> bool:
        """Whether the times of last use were not written for a minute."""
        return time.monotonic() - self._written >= WRITE_SECONDS
