"""The embedder of the service: a local model run by fastembed on ONNX Runtime."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from lot_grpc.domain.errors import EmbeddingFailedError, ModelUnavailableError
from lot_grpc.embedding.cache import Key, Role, VectorCache, key_of
from lot_grpc.embedding.catalog import DEFAULT_MODEL, card_of
from lot_grpc.embedding.download import Progress
from lot_grpc.embedding.model import Encoded, Encoder, OnnxEncoder
from lot_grpc.embedding.model_files import file_sha256, locate
from lot_grpc.embedding.workers import EmbeddingFault, Job, Workers, usable_cores
from lot_grpc.ports import Embedding, EmbeddingContract

_SLICE = 256
"""Documents queued at once by one call, so that a huge call neither fills memory nor holds the
event loop."""


async def open_fastembed(
    model: str = DEFAULT_MODEL,
    *,
    path: Path | None = None,
    sha256: str = "",
    cache_dir: Path | None = None,
    allow_download: bool = False,
    threads: int = 0,
    cache_entries: int = 10_000,
    progress: Progress | None = None,
) -> FastembedEmbedder:
    """Find, verify and load the model. Does not block the event loop.

    Args:
        model: Name of the model, one of ``catalog.CARDS``.
        path: Folder with its files, None to look in packs, the cache and the hub.
        sha256: Hash that the model file must have, "" for the known ones.
        cache_dir: fastembed's cache, None for its default (``FASTEMBED_CACHE_PATH`` or a
            folder in the system's temporary one).
        allow_download: Whether a missing model may be downloaded.
        threads: Texts embedded at the same time, 0 for the number of cores (at most 8).
        cache_entries: Vectors kept for repeated texts, 0 for none.
        progress: Told of a download, from another thread.

    Raises:
        ModelUnavailableError: Files are missing, damaged or of another model.
    """

    def load() -> tuple[OnnxEncoder, str, str]:
        files = locate(
            card,
            path=path,
            sha256=sha256,
            cache_dir=cache_dir,
            allow_download=allow_download,
            progress=progress,
        )
        return OnnxEncoder(files), files.sha256, file_sha256(files.folder / "tokenizer.json")

    card = card_of(model)
    try:
        encoder, found_sha256, vocabulary = await asyncio.to_thread(load)
    except OSError as error:
        raise ModelUnavailableError(f"the model's files cannot be read: {error}") from error
    contract = EmbeddingContract(
        model=card.name,
        dimensions=card.dimensions,
        distance="cosine",
        query_prefix=card.query_prefix,
        model_sha256=found_sha256,
        vocabulary_sha256=vocabulary,
        tokenizer="",
    )
    return FastembedEmbedder(
        encoder, contract, threads=threads or usable_cores(), cache_entries=cache_entries
    )


class FastembedEmbedder:
    """An ``Embedder`` over an encoder: threads, turns, a cache, one computation a text.

    A text's vector depends on nothing but the text, the role and the model: not on what was
    embedded beside it. A text that is longer than the model reads at once is read in windows, as
    ``windows`` says. Belongs to the event loop it was made on.
    """

    def __init__(
        self, encoder: Encoder, contract: EmbeddingContract, *, threads: int, cache_entries: int
    ) -> None:
        self._contract = contract
        self._count = encoder.count
        self._max_tokens = encoder.max_tokens
        self._max_characters = encoder.max_characters
        self._cache = VectorCache(cache_entries)
        self._running: dict[Key, Job] = {}
        self._workers = Workers(encoder, threads, self._settle)
        self._loop = asyncio.get_running_loop()
        self._closed = False

    @property
    def contract(self) -> EmbeddingContract:
        """What this embedder makes."""
        return self._contract

    @property
    def max_tokens(self) -> int:
        """Word pieces that the model reads at once: of a text, or of a window of a longer one."""
        return self._max_tokens

    async def embed_query(self, text: str) -> Embedding:
        """Embed a search text with the model's prefix.

        Raises:
            EmbeddingFailedError: The model failed on it, or the embedder is closed.
        """
        [embedding] = await self._embed("query", [text])
        return embedding

    async def embed_documents(self, texts: Sequence[str]) -> list[Embedding]:
        """Embed texts to store, in order. One that fails fails the call.

        Raises:
            EmbeddingFailedError: The model failed on one, or the embedder is closed.
        """
        embeddings: list[Embedding] = []
        for start in range(0, len(texts), _SLICE):
            embeddings += await self._embed("document", texts[start : start + _SLICE])
            await asyncio.sleep(0)  # A slice from the cache never waited.
        return embeddings

    async def count_tokens(self, texts: Sequence[str]) -> list[int] | None:
        """Count the tokens of whole texts, including what the model does not read."""
        return await asyncio.to_thread(lambda: [self._count(text) for text in texts])

    async def close(self) -> None:
        """Finish what was asked for, refuse what comes after, stop the threads. Idempotent."""
        self._closed = True
        await self._workers.close()

    async def _embed(self, role: Role, texts: Sequence[str]) -> list[Embedding]:
        if self._closed:
            raise EmbeddingFailedError("the embedder is closed")
        fresh: list[Job] = []
        found = [self._find(role, text[: self._max_characters], fresh) for text in texts]
        if role == "query":
            self._workers.turns.add_queries(fresh)
        else:
            self._workers.turns.add_documents(fresh)
        try:
            return [
                self._embedding(text, await _vector_of(item))
                for text, item in zip(texts, found, strict=True)
            ]
        finally:
            for item in found:
                if isinstance(item, Job) and item.release():
                    del self._running[item.key]

    def _find(self, role: Role, text: str, fresh: list[Job]) -> Encoded | Job:
        """A vector from the cache, or the running job for this text, or a new one in ``fresh``."""
        key = key_of(role, text)
        if (cached := self._cache.get(key)) is not None:
            return cached
        if (job := self._running.get(key)) is not None:
            job.join()
            return job
        prefix = self._contract.query_prefix if role == "query" else ""
        job = self._running[key] = Job(key, text, self._loop, prefix)
        fresh.append(job)
        return job

    def _settle(self, job: Job, outcome: Encoded | EmbeddingFault) -> None:
        if self._running.get(job.key) is job:
            del self._running[job.key]
        if isinstance(outcome, EmbeddingFault):
            job.future.set_exception(outcome)
        else:
            self._cache.put(job.key, outcome)
            job.future.set_result(outcome)

    def _embedding(self, text: str, encoded: Encoded) -> Embedding:
        cut = len(text) > self._max_characters
        return Embedding(encoded.vector.tolist(), encoded.truncated or cut)


async def _vector_of(item: Encoded | Job) -> Encoded:
    if isinstance(item, Encoded):
        return item
    try:
        return await item.wait()
    except EmbeddingFault as fault:
        # An error of its own for each waiter: one instance raised in many tasks would gather all
        # their tracebacks.
        raise EmbeddingFailedError(
            f"the model could not embed a text of {len(item.text)} characters",
            characters=len(item.text),
        ) from fault.cause
