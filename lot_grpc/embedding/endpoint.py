"""An OpenAI-compatible ``/embeddings`` endpoint: one request, its retries, and the response.

Contents of requests and responses never reach an error or a log: of a refusal only the status and
the short error code are shown, since servers quote texts and keys in their messages.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, NamedTuple

import httpx
import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json

from lot_grpc.addresses import is_loopback
from lot_grpc.embedding.endpoint_options import EndpointOptions

_LONGEST_WAIT = 20.0
"""Longest wait before a retry in seconds, whatever the endpoint requests: calls have deadlines."""

_LONGEST_BACKOFF = 8.0

_MOST_BYTES = 64 * 2**20
"""Largest response that is read: 64 texts of 4,096 dimensions take about 6 MiB."""

_CODE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_KEY = re.compile(r"[!-~]*")
_NO_QUOTA = "insufficient_quota"
"""Code of OpenAI's 429 that waiting does not fix."""


class EndpointError(Exception):
    """Why there are no vectors, as the end of a sentence that begins with the URL.

    ``status`` is the HTTP status, 0 without a response. ``passing``: a retry may succeed.
    """

    def __init__(
        self, problem: str, *, status: int = 0, passing: bool = False, wait: float | None = None
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.status = status
        self.passing = passing
        self.wait = wait

    @property
    def is_about_the_text(self) -> bool:
        """Whether a shorter text might be accepted."""
        return self.status in (400, 413, 422)


class _UnusableError(Exception):
    """What is wrong with a response, without quoting it."""


class Answer(NamedTuple):
    """Unit vectors in the order of the texts; ``tokens`` read in total, 0 if not reported."""

    vectors: list[NDArray[np.float32]]
    tokens: int


class EmbeddingEndpoint:
    """One model at one endpoint. Redirects are never followed: the key belongs to this host.

    Raises:
        EndpointError: The address or the key cannot be used.
    """

    def __init__(self, model: str, options: EndpointOptions) -> None:
        key = options.api_key.strip()
        if not _KEY.fullmatch(key):
            # Otherwise the HTTP library would refuse it later, and quote it.
            raise EndpointError("has an API key with spaces or non-ASCII characters")
        self.url = options.url
        self.dimensions = options.dimensions
        self.model_answered = ""
        self._fixed: dict[str, str | int] = {"model": model, "encoding_format": "float"}
        if options.dimensions:
            self._fixed["dimensions"] = options.dimensions
        self._timeout = options.timeout_seconds
        self._retries = options.retries
        self._backoff = options.backoff_seconds
        self._secret = key
        self._client = _client(self.url, key, options.max_concurrent_requests)

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        await self._client.aclose()

    async def embed(self, texts: Sequence[str]) -> Answer:
        """The vectors of ``texts``, from a single request.

        Raises:
            EndpointError: There are none, after all retries.
        """
        body = json.dumps({**self._fixed, "input": list(texts)}).encode()
        for attempt in range(self._retries + 1):
            try:
                return self._read(await self._post(body), len(texts))
            except EndpointError as error:
                if not error.passing or attempt == self._retries:
                    if attempt:
                        error.problem += f", {attempt + 1} times in a row"
                    raise
                wait = self._wait(attempt) if error.wait is None else error.wait
            await asyncio.sleep(wait)
        raise AssertionError("unreachable")

    def _wait(self, attempt: int) -> float:
        longest = min(self._backoff * 2.0**attempt, _LONGEST_BACKOFF)
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, hides nothing

    async def _post(self, body: bytes) -> bytes:
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._client.stream("POST", self.url, content=body) as response,
            ):
                content = bytearray()
                async for piece in response.aiter_bytes():
                    content += piece
                    if len(content) > _MOST_BYTES:
                        raise EndpointError(f"returned more than {_MOST_BYTES // 2**20} MiB")
        except TimeoutError:
            problem = f"did not respond within {self._timeout:g} s"
            raise EndpointError(problem, passing=True) from None
        except httpx.ConnectError as error:
            problem = f"cannot be reached ({self._without_key(str(error))})"
            raise EndpointError(problem, passing=True) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            problem = f"broke the connection ({type(error).__name__})"
            passing = isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError)
            raise EndpointError(problem, passing=passing) from None
        if response.status_code != HTTPStatus.OK:
            raise self._refusal(response, bytes(content))
        return bytes(content)

    def _without_key(self, text: str) -> str:
        return text.replace(self._secret, "********") if self._secret else text

    def _refusal(self, response: httpx.Response, content: bytes) -> EndpointError:
        status = response.status_code
        if response.has_redirect_location:
            return EndpointError(
                f"returned {status} and redirects elsewhere, where the key must not be sent; set "
                "LOT_OPENAI_BASE_URL to the final address",
                status=status,
            )
        code = self._code(content)
        passing = status in (408, 429) or status >= 500
        reason = response.reason_phrase if _CODE.fullmatch(response.reason_phrase) else ""
        problem = f"returned {status}{f' {reason}' if reason else ''}{f' ({code})' if code else ''}"
        return EndpointError(
            problem,
            status=status,
            passing=passing and code != _NO_QUOTA,
            wait=_retry_after(response.headers.get("retry-after", "")),
        )

    def _code(self, content: bytes) -> str:
        """The error code, such as ``model_not_found``; "" without one."""
        try:
            error = from_json(content)["error"]
            code = error.get("code") or error.get("type")
        except (ValueError, TypeError, LookupError, AttributeError):
            return ""
        found = isinstance(code, str) and _CODE.fullmatch(code)
        return self._without_key(str(code)) if found else ""

    def _read(self, content: bytes, count: int) -> Answer:
        try:
            # Not json, which blocks the event loop four times as long: 40 ms for 64 of 1,536.
            answer = from_json(content)
            vectors = _vectors(answer["data"], count, self.dimensions)
        except _UnusableError as error:
            raise EndpointError(f"returned an unusable response: it {error}") from None
        except (ValueError, TypeError, LookupError, AttributeError):
            raise EndpointError("returned something other than a list of vectors") from None
        self._check_model(answer.get("model"))
        usage = answer.get("usage")
        tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else 0
        return Answer(vectors, tokens if isinstance(tokens, int) else 0)

    def _check_model(self, name: object) -> None:
        """Raise if the model changed since startup: vectors of two models cannot be compared."""
        if not isinstance(name, str) or not name:
            return
        self.model_answered = self.model_answered or name
        if name != self.model_answered:
            raise EndpointError("identifies as a different model than at startup")


def _client(url: str, api_key: str, connections: int) -> httpx.AsyncClient:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        raise EndpointError("is not a valid address") from None
    return httpx.AsyncClient(
        headers={"Content-Type": "application/json", "Accept": "application/json"}
        | ({"Authorization": f"Bearer {api_key}"} if api_key else {}),
        follow_redirects=False,
        timeout=None,  # noqa: S113 - the whole request has a limit
        limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
        # A proxy from the environment is for remote hosts.
        trust_env=not is_loopback(parsed.host),
    )


def _retry_after(value: str) -> float | None:
    """Seconds to wait according to the header, bounded; None without a usable one."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            at = parsedate_to_datetime(value)
        except ValueError:
            return None
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        seconds = (at - datetime.now(UTC)).total_seconds()
    return min(max(seconds, 0.0), _LONGEST_WAIT) if np.isfinite(seconds) else None


def _vectors(rows: Any, count: int, dimensions: int) -> list[NDArray[np.float32]]:
    vectors = [_unit(row["embedding"], dimensions) for row in _in_order(rows, count)]
    if len({len(vector) for vector in vectors}) > 1:
        raise _UnusableError("has vectors of different lengths")
    return vectors


def _in_order(rows: Any, count: int) -> list[Any]:
    """The rows by their ``index``, or as received if none has one."""
    if not isinstance(rows, list) or len(rows) != count:
        found = len(rows) if isinstance(rows, list) else 0
        raise _UnusableError(f"has {found} vectors for {count} texts")
    if all("index" not in row for row in rows):
        return rows
    by_index = {row["index"]: row for row in rows}
    if set(by_index) != set(range(count)):
        raise _UnusableError("does not number its vectors consecutively")
    return [by_index[index] for index in range(count)]


def _unit(values: Any, dimensions: int) -> NDArray[np.float32]:
    """The vector scaled to length 1; it must be ``dimensions`` numbers (0: any number)."""
    vector = np.array(values)
    if vector.ndim != 1 or vector.dtype.kind not in "fi" or not isinstance(values, list):
        raise _UnusableError("has a vector that is not a list of numbers")
    if dimensions and len(vector) != dimensions:
        raise _UnusableError(f"has {len(vector)} dimensions instead of {dimensions}")
    wide = vector.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        norm = float(np.sqrt(np.dot(wide, wide)))
    if not np.isfinite(norm) or norm < np.finfo(np.float32).tiny:
        raise _UnusableError("has a vector that is zero or not finite")
    return (wide / norm).astype(np.float32)
