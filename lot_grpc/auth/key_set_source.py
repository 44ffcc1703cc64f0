"""Where the issuer's keys come from: a file, or a URL that is fetched regularly."""

from __future__ import annotations

import asyncio
import time
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

import httpx
import structlog

from lot_grpc.addresses import is_loopback
from lot_grpc.auth.files import FileError, WatchedFile
from lot_grpc.auth.key_set import KeySet, SigningKey, parse_key_set
from lot_grpc.domain.errors import AuthUnavailableError
from lot_grpc.telemetry.metrics import RELOADS

_log = structlog.get_logger()

REFRESH_SECONDS: Final = 300.0
"""How often the keys are fetched."""

MIN_SECONDS: Final = 10.0
"""The least time between two requests, whatever tokens arrive."""

FETCH_SECONDS: Final = 5.0
"""How long a request may take."""

CLOCK_SECONDS: Final = 30.0
"""Our clock is reported as wrong if it differs from the issuer's by more than this."""

_MOST_BYTES: Final = 2**20
_MOST_WAITING: Final = 64
"""Calls that wait for a request because of an unknown key; further ones are refused at once."""


class KeySource(Protocol):
    """Keeps the keys of an issuer."""

    @property
    def keys(self) -> KeySet | None:
        """The last good ones; None: there were none yet. A change makes it another object."""

    async def find(self, id: str, algorithm: str) -> SigningKey | None:
        """The key with an id, for an algorithm; None if the issuer has none.

        Raises:
            AuthUnavailableError: It cannot be known now.
        """

    async def refresh(self) -> None:
        """Get the keys anew if it is time to. Never raises."""

    async def load(self) -> KeySet:
        """Read the keys now. Raises FileError."""

    @property
    def clock_ahead(self) -> float:
        """By how many seconds our clock is ahead of the issuer's; 0: by little, or not known."""

    async def close(self) -> None:
        """Close connections."""


class FileKeys:
    """Keys in a file, which is read anew when it changes. Raises FileError if it is unusable."""

    def __init__(self, path: Path) -> None:
        self._file = WatchedFile(
            path,
            "the file of the issuer's keys",
            partial(parse_key_set, str(path)),
            private=False,
            metric="jwks",
        )
        self.keys: KeySet = self._file.value

    async def find(self, id: str, algorithm: str) -> SigningKey | None:
        """The key with an id."""
        await self.refresh()
        return self.keys.find(id, algorithm)

    async def refresh(self) -> None:
        """Look at the file."""
        if self._file.refresh():
            self.keys = self._file.value

    async def load(self) -> KeySet:
        """What was read."""
        return self.keys

    clock_ahead = 0.0
    """A file has no clock."""

    async def close(self) -> None:
        """Nothing is open."""


class UrlKeys:
    """Keys at a URL. If they cannot be fetched, the last good ones stay in effect."""

    def __init__(self, url: str) -> None:
        self.keys: KeySet | None = None
        self.clock_ahead = 0.0
        """By how many seconds our clock is ahead of the issuer's, if by more than a little."""
        self._url = url
        self._client = httpx.AsyncClient(
            headers={"Accept": "application/json"},
            follow_redirects=False,
            timeout=FETCH_SECONDS,
            # A proxy from the environment is for remote hosts.
            trust_env=not is_loopback(urlsplit(url).hostname or ""),
        )
        self._fetched = -REFRESH_SECONDS
        self._fetching: asyncio.Task[None] | None = None
        self._waiting = 0
        self._problem = ""

    async def find(self, id: str, algorithm: str) -> SigningKey | None:
        """The key with an id. An unknown id triggers a fetch, but at most every ``MIN_SECONDS``."""
        key = self.keys.find(id, algorithm) if self.keys else None
        if key is None and (self._fetching or self._since() >= MIN_SECONDS):
            if self._waiting >= _MOST_WAITING:
                raise AuthUnavailableError
            self._waiting += 1
            try:
                await asyncio.shield(self._request())
            finally:
                self._waiting -= 1
            key = self.keys.find(id, algorithm) if self.keys else None
        if key is None and self.keys is None:
            raise AuthUnavailableError
        return key

    async def refresh(self) -> None:
        """Ask if the last request is old, or failed."""
        if self._since() >= (MIN_SECONDS if self._problem else REFRESH_SECONDS):
            await asyncio.shield(self._request())

    async def close(self) -> None:
        """Close the connection."""
        if self._fetching:
            self._fetching.cancel()
        await self._client.aclose()

    def _since(self) -> float:
        return time.monotonic() - self._fetched

    def _request(self) -> asyncio.Task[None]:
        """The request in progress, or a new one."""
        if self._fetching is None:
            self._fetching = asyncio.create_task(self._fetch())
            self._fetching.add_done_callback(self._ended)
        return self._fetching

    def _ended(self, _: asyncio.Task[None]) -> None:
        self._fetching = None
        self._fetched = time.monotonic()

    async def _fetch(self) -> None:
        try:
            self.keys = await self.load()
        except FileError as error:
            RELOADS.add("jwks", "failed")
            if self._problem != str(error):
                self._problem = str(error)
                _log.error(
                    "the issuer's keys cannot be read",
                    why=str(error),
                    effect="the last ones stay" if self.keys else "no token can be verified",
                )
            return
        RELOADS.add("jwks", "ok")
        if self._problem:
            _log.info("the issuer's keys can be read again", url=self._url)
        self._problem = ""

    async def load(self) -> KeySet:
        """Ask for the keys once. Raises FileError."""
        content = bytearray()
        try:
            async with (
                asyncio.timeout(FETCH_SECONDS),
                self._client.stream("GET", self._url) as response,
            ):
                if response.status_code != HTTPStatus.OK:
                    raise FileError(f"{self._url} returned {response.status_code}")
                async for piece in response.aiter_bytes():
                    content += piece
                    if len(content) > _MOST_BYTES:
                        raise FileError(f"{self._url} returned more than {_MOST_BYTES >> 20} MiB")
        except TimeoutError:
            raise FileError(f"{self._url} did not respond within {FETCH_SECONDS:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise FileError(f"{self._url} cannot be read ({type(error).__name__})") from None
        self._compare_clocks(response.headers.get("date", ""))
        return parse_key_set(self._url, bytes(content))

    def _compare_clocks(self, date: str) -> None:
        """Log that one of the clocks is off, since valid tokens may then be refused."""
        try:
            ahead = time.time() - parsedate_to_datetime(date).timestamp()
        except (ValueError, TypeError, OverflowError):
            return
        was_off, self.clock_ahead = bool(self.clock_ahead), 0.0
        if abs(ahead) > CLOCK_SECONDS:
            self.clock_ahead = ahead
            if not was_off:
                _log.warning(
                    "this machine's clock or the issuer's is off", seconds_ahead=round(ahead)
                )


def open_source(place: str) -> KeySource:
    """The source at a URL or path. Raises FileError if the file cannot be used."""
    return UrlKeys(place) if "://" in place else FileKeys(Path(place).expanduser())
