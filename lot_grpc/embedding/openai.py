"""An embedder that calls an OpenAI-compatible server: OpenAI, Ollama, vLLM, LM Studio, TEI.

Such a server tokenizes by itself and does not say how, so lengths are measured in bytes: a token
has at least one byte of UTF-8. A text of at most ``max_tokens`` bytes is read whole. A longer one
gets requests of its own, with as few windows (see ``windows``) of four bytes per token as contain
it, and twice as many if the server refuses one or does not report fewer tokens than the limit. A
text counts as truncated if it does not fit even in ``MOST_WINDOWS``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import numpy as np
from numpy.typing import NDArray

from lot_grpc.domain.errors import (
    EmbeddingFailedError,
    EmbeddingUnavailableError,
    ModelUnavailableError,
)
from lot_grpc.embedding.cache import Role
from lot_grpc.embedding.caching_embedder import CachingEmbedder
from lot_grpc.embedding.catalog import DEFAULT_CACHE_ENTRIES
from lot_grpc.embedding.endpoint import EmbeddingEndpoint, EndpointError
from lot_grpc.embedding.endpoint_options import EndpointOptions
from lot_grpc.embedding.model import Encoded
from lot_grpc.embedding.windows import MOST_WINDOWS, mean_vector, split_bytes
from lot_grpc.embedding.workers import EmbeddingFault, Job
from lot_grpc.ports import EmbeddingContract
from lot_grpc.telemetry.metrics import EMBEDDING_DURATION

_BYTES_PER_TOKEN = 4
"""Bytes per token, about as in prose; a longer window would rarely be read whole."""

_SPECIAL_TOKENS = 8
"""Tokens reserved for what a server adds to each text, such as start and end marks."""

_REQUEST_BYTES = 256 * 1024
"""Limit on all texts of a request with more than one: OpenAI refuses 300,000 tokens."""

_PROBE = "ready"


async def open_openai(
    model: str,
    options: EndpointOptions,
    *,
    cache_entries: int = DEFAULT_CACHE_ENTRIES,
) -> OpenAIEmbedder:
    """Connect to the endpoint and embed a word to find the model's dimensions.

    Args:
        model: The model's name at the endpoint.
        options: The options of its requests.
        cache_entries: Vectors kept for repeated texts, 0 for none.

    Raises:
        ModelUnavailableError: The endpoint does not return such vectors.
    """
    try:
        endpoint = await asyncio.to_thread(EmbeddingEndpoint, model, options)
    except EndpointError as error:
        raise _not_there(options.url, model, error) from None
    try:
        [probe] = (await endpoint.embed([_PROBE])).vectors
    except EndpointError as error:
        await endpoint.close()
        raise _not_there(options.url, model, error) from None
    except BaseException:
        await endpoint.close()
        raise
    endpoint.dimensions = len(probe)
    contract = EmbeddingContract(
        model=f"openai:{model}",
        dimensions=len(probe),
        distance="cosine",
        query_prefix=options.query_prefix,
        model_sha256="",
        vocabulary_sha256="",
        tokenizer="",
    )
    return OpenAIEmbedder(endpoint, contract, options, cache_entries=cache_entries)


class OpenAIEmbedder(CachingEmbedder):
    """An ``Embedder`` over an endpoint: texts are batched; a long one has requests of its own."""

    def __init__(
        self,
        endpoint: EmbeddingEndpoint,
        contract: EmbeddingContract,
        options: EndpointOptions,
        *,
        cache_entries: int,
    ) -> None:
        requests = options.max_concurrent_requests
        super().__init__(
            contract,
            options.max_tokens,
            cache_entries=cache_entries,
            slice_size=options.batch_size * requests,
            background_size=options.batch_size,
        )
        self._endpoint = endpoint
        self._sure_bytes = max(1, options.max_tokens - _SPECIAL_TOKENS)
        self._most_bytes = options.max_tokens * _BYTES_PER_TOKEN
        self._batch_size = options.batch_size
        self._slots = asyncio.Semaphore(requests)
        self._document_slots = asyncio.Semaphore(max(1, requests - 1))
        self._requests: dict[asyncio.Task[None], Sequence[Job]] = {}

    async def count_tokens(self, texts: Sequence[str]) -> list[int] | None:
        """None: servers do not say how they tokenize."""
        return None

    async def close(self) -> None:
        """Finish pending calls, refuse new ones. Idempotent."""
        self._closed = True
        await asyncio.gather(*self._requests, return_exceptions=True)
        await self._endpoint.close()

    # --- jobs ---------------------------------------------------------------------------------

    def _fit(self, role: Role, text: str) -> tuple[str, bool]:
        """The text as it is sent, with its prefix."""
        whole = _sendable(self._prefix(role) + text)
        raw, most = whole.encode(), MOST_WINDOWS * self._most_bytes
        return (whole, False) if len(raw) <= most else (_head(raw, most), True)

    def _start(self, role: Role, jobs: Sequence[Job]) -> None:
        for batch in self._batches(jobs):
            task = self._loop.create_task(self._request(role, batch))
            self._requests[task] = batch
            task.add_done_callback(self._requests.pop)

    def _released(self) -> None:
        """Cancel requests that no caller is waiting for any more."""
        for task, jobs in self._requests.items():
            if all(job.abandoned or job.future.done() for job in jobs):
                task.cancel()

    def _failure(self, job: Job, cause: BaseException) -> EmbeddingFailedError:
        problem = cause.problem if isinstance(cause, EndpointError) else "could not be called"
        text = f"the embedding endpoint {self._endpoint.url} {problem}"
        if isinstance(cause, EndpointError) and cause.passing:
            text += "; retry later, a write with the same request_id"
            return EmbeddingUnavailableError(text, url=self._endpoint.url)
        status = cause.status if isinstance(cause, EndpointError) else 0
        remedy = _REMEDIES.get(status, "check the logs of both servers")
        return EmbeddingFailedError(f"{text}; the operator should {remedy}", url=self._endpoint.url)

    # --- requests -----------------------------------------------------------------------------

    def _is_long(self, text: str) -> bool:
        return len(text.encode()) > self._sure_bytes

    def _batches(self, jobs: Sequence[Job]) -> Iterator[list[Job]]:
        """Batches of jobs, one per request; a text that may not fit goes alone."""
        batch: list[Job] = []
        room = _REQUEST_BYTES
        for job in jobs:
            if self._is_long(job.text):
                yield [job]
                continue
            size = len(job.text.encode())
            if batch and (len(batch) == self._batch_size or size > room):
                yield batch
                batch, room = [], _REQUEST_BYTES
            batch.append(job)
            room -= size
        if batch:
            yield batch

    @asynccontextmanager
    async def _slot(self, role: Role) -> AsyncIterator[None]:
        """Wait for a free request. Documents leave one free, so that searches need not wait."""
        if role == "query":
            async with self._slots:
                yield
        else:
            async with self._document_slots, self._slots:
                yield

    async def _request(self, role: Role, jobs: Sequence[Job]) -> None:
        outcomes: Sequence[Encoded | EmbeddingFault]
        try:
            async with self._slot(role):
                for job in jobs:
                    job.waited()
                with EMBEDDING_DURATION.time():
                    outcomes = await self._post([job.text for job in jobs], self._prefix(role))
        except asyncio.CancelledError:
            for job in jobs:
                job.future.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, callers must not hang
            outcomes = [EmbeddingFault(error) for _ in jobs]
        for job, outcome in zip(jobs, outcomes, strict=True):
            self._settle(job, outcome)

    async def _post(self, texts: Sequence[str], prefix: str) -> list[Encoded]:
        """Embed texts that begin with ``prefix``."""
        if len(texts) == 1 and self._is_long(texts[0]):
            return [await self._ask_long(prefix, texts[0].removeprefix(prefix))]
        answer = await self._endpoint.embed(texts)
        return [Encoded(vector, truncated=False) for vector in answer.vectors]

    async def _ask_long(self, prefix: str, text: str) -> Encoded:
        """Embed a text in as few windows as the endpoint reads completely."""
        count = max(1, -(-len(text.encode()) // self._most_bytes))
        windows = split_bytes(text, count)
        while (read := await self._ask_windows(prefix, windows)) is None:
            if count == MOST_WINDOWS:
                heads = [await self._ask_head(prefix + window) for window in windows]
                return Encoded(mean_vector(heads, windows), truncated=True)
            count = min(MOST_WINDOWS, 2 * count)
            windows = split_bytes(text, count)
        return Encoded(mean_vector(read, windows), truncated=False)

    async def _ask_windows(
        self, prefix: str, windows: Sequence[str]
    ) -> list[NDArray[np.float32]] | None:
        """Their vectors; None if one of them is too long."""
        vectors = []
        for window in windows:
            text = prefix + window
            try:
                answer = await self._endpoint.embed([text])
            except EndpointError as error:
                if error.is_about_the_text and self._is_long(text):
                    return None
                raise
            # Some servers truncate silently; then they have read as much as they can.
            if self._is_long(text) and not 0 < answer.tokens < self._max_tokens:
                return None
            vectors += answer.vectors
        return vectors

    async def _ask_head(self, text: str) -> NDArray[np.float32]:
        """Embed as much of a text as the endpoint accepts, halving it down to what surely fits."""
        while True:
            try:
                return (await self._endpoint.embed([text])).vectors[0]
            except EndpointError as error:
                raw = text.encode()
                if not error.is_about_the_text or len(raw) <= self._sure_bytes:
                    raise
                text = _head(raw, max(self._sure_bytes, len(raw) // 2))


_REMEDIES = {
    400: "check whether the endpoint accepts this model, LOT_OPENAI_DIMENSIONS and texts of "
    "LOT_OPENAI_MAX_TOKENS",
    401: "set LOT_OPENAI_API_KEY to a key that is valid there",
    403: "check the permissions of the key in LOT_OPENAI_API_KEY",
    404: "check whether LOT_OPENAI_BASE_URL ends as the server expects (usually in /v1), and "
    "whether it has the model named in LOT_EMBEDDING_MODEL",
    429: "wait, or raise the quota at the provider",
}
"""How to fix a refusal, by status."""


def _not_there(url: str, model: str, error: EndpointError) -> ModelUnavailableError:
    remedy = _REMEDIES.get(
        error.status,
        "check whether LOT_OPENAI_BASE_URL names a running server that accepts "
        "LOT_EMBEDDING_MODEL, LOT_OPENAI_DIMENSIONS and LOT_OPENAI_API_KEY",
    )
    return ModelUnavailableError(
        f"embedding model {model} is unavailable: {url} {error.problem}; {remedy}",
        model=model,
        url=url,
        status=error.status,
    )


def _sendable(text: str) -> str:
    """``text`` as valid UTF-8. OpenAI refuses an empty text, so it becomes a space."""
    return text.encode(errors="replace").decode() or " "


def _head(raw: bytes, size: int) -> str:
    return raw[:size].decode(errors="ignore")
