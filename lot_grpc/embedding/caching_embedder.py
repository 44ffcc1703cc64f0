"""Base of the embedders: each text is computed once for all concurrent callers, and cached."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence

from lot_grpc.domain.errors import EmbeddingFailedError
from lot_grpc.embedding.cache import Key, Role, VectorCache, key_of
from lot_grpc.embedding.model import Encoded
from lot_grpc.embedding.workers import EmbeddingFault, Job
from lot_grpc.ports import Embedding, EmbeddingContract
from lot_grpc.telemetry.metrics import EMBEDDED_TEXTS, EMBEDDING_ERRORS, EMBEDDING_QUEUE
from lot_grpc.telemetry.spans import Value, span
from lot_grpc.work import current_work


class CachingEmbedder(ABC):
    """An ``Embedder`` whose subclass decides how jobs are run.

    A text's vector depends only on the text, the role and the model, not on other texts embedded
    with it. Belongs to the event loop on which it was created.

    Args:
        contract: What its vectors are made with.
        max_tokens: Tokens that the model reads at once.
        cache_entries: Vectors kept for repeated texts, 0 for none.
        slice_size: Documents of one call that are queued at once, so that a huge call neither fills
            memory nor blocks the event loop.
        background_size: The same for background work, small enough to leave threads to calls.
    """

    def __init__(
        self,
        contract: EmbeddingContract,
        max_tokens: int,
        *,
        cache_entries: int,
        slice_size: int,
        background_size: int,
    ) -> None:
        self._contract = contract
        self._max_tokens = max_tokens
        self._slice_size = slice_size
        self._background_size = background_size
        self._cache = VectorCache(cache_entries)
        self._running: dict[Key, Job] = {}
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._span_name = f"embeddings {contract.model}"
        self._span_attributes: dict[str, Value] = {
            "gen_ai.operation.name": "embeddings",
            "gen_ai.request.model": contract.model,
            "gen_ai.embeddings.dimension.count": contract.dimensions,
        }
        EMBEDDING_QUEUE.follow(self, CachingEmbedder.queue_length)

    @property
    def contract(self) -> EmbeddingContract:
        """What its vectors are made with."""
        return self._contract

    @property
    def max_tokens(self) -> int:
        """Tokens that the model reads at once: of a text, or of one window of a longer text."""
        return self._max_tokens

    def queue_length(self) -> int:
        """How many texts wait or are being embedded."""
        return len(self._running)

    async def embed_query(self, text: str) -> Embedding:
        """Embed a search text with the model's prefix.

        Raises:
            EmbeddingUnavailableError: The model cannot be reached or is overloaded.
            EmbeddingFailedError: The model failed on the text, or the embedder is closed.
        """
        [embedding] = await self._embed("query", [text])
        return embedding

    async def embed_documents(self, texts: Sequence[str]) -> list[Embedding]:
        """Embed texts to store, in order. If one fails, the call fails.

        Raises:
            EmbeddingUnavailableError: The model cannot be reached or is overloaded.
            EmbeddingFailedError: The model failed on a text, or the embedder is closed.
        """
        embeddings: list[Embedding] = []
        work = current_work()
        size = self._background_size if work and work.background else self._slice_size
        for start in range(0, len(texts), size):
            embeddings += await self._embed("document", texts[start : start + size])
            await asyncio.sleep(0)  # A slice from the cache never yields.
        return embeddings

    @abstractmethod
    def _fit(self, role: Role, text: str) -> tuple[str, bool]:
        """The part of a text that is ever read, and whether that is not all of it."""

    @abstractmethod
    def _start(self, role: Role, jobs: Sequence[Job]) -> None:
        """Run new jobs; ``_settle`` must be called for each."""

    @abstractmethod
    def _failure(self, job: Job, cause: BaseException) -> EmbeddingFailedError:
        """The error that a caller gets for a failed job."""

    def _released(self) -> None:  # noqa: B027 - optional for subclasses
        """Called when jobs are no longer needed."""

    async def _embed(self, role: Role, texts: Sequence[str]) -> list[Embedding]:
        if self._closed:
            raise EmbeddingFailedError("the embedder is closed")
        with span(self._span_name, self._span_attributes):
            return await self._embed_now(role, texts)

    async def _embed_now(self, role: Role, texts: Sequence[str]) -> list[Embedding]:
        fitted = [self._fit(role, text) for text in texts]
        fresh: list[Job] = []
        found = [self._find(role, text, fresh) for text, _ in fitted]
        self._start(role, fresh)
        try:
            return [
                _embedding(await self._vector_of(item), cut=cut)
                for item, (_, cut) in zip(found, fitted, strict=True)
            ]
        finally:
            given_up = [item for item in found if isinstance(item, Job) and item.release()]
            for job in given_up:
                del self._running[job.key]
            if given_up:
                self._released()

    def _find(self, role: Role, text: str, fresh: list[Job]) -> Encoded | Job:
        """A vector from the cache, or the running job for this text, or a new one in ``fresh``."""
        key = key_of(role, text)
        if (cached := self._cache.get(key)) is not None:
            EMBEDDED_TEXTS.add(role, "cache")
            return cached
        if (job := self._running.get(key)) is not None:
            EMBEDDED_TEXTS.add(role, "shared")
            job.join()
            return job
        EMBEDDED_TEXTS.add(role, "model")
        job = self._running[key] = Job(key, text, self._loop, self._prefix(role))
        fresh.append(job)
        return job

    def _prefix(self, role: Role) -> str:
        return self._contract.query_prefix if role == "query" else ""

    async def _vector_of(self, item: Encoded | Job) -> Encoded:
        if isinstance(item, Encoded):
            return item
        try:
            return await item.wait()
        except EmbeddingFault as fault:
            # A separate error for each waiter: one instance raised in many tasks would accumulate
            # all their tracebacks.
            raise self._failure(item, fault.cause) from fault.cause

    def _settle(self, job: Job, outcome: Encoded | EmbeddingFault) -> None:
        if self._running.get(job.key) is job:
            del self._running[job.key]
        if isinstance(outcome, EmbeddingFault):
            EMBEDDING_ERRORS.add()
            job.future.set_exception(outcome)
        else:
            self._cache.put(job.key, outcome)
            job.future.set_result(outcome)


def _embedding(encoded: Encoded, *, cut: bool) -> Embedding:
    return Embedding(encoded.vector.tolist(), encoded.truncated or cut)
