"""The embedder of the service: a local model in fastembed's format, run by ONNX Runtime."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from lot_grpc.domain.errors import EmbeddingFailedError, ModelUnavailableError
from lot_grpc.embedding.cache import Role
from lot_grpc.embedding.caching_embedder import CachingEmbedder
from lot_grpc.embedding.catalog import DEFAULT_CACHE_ENTRIES, DEFAULT_MODEL, card_of
from lot_grpc.embedding.download import Progress
from lot_grpc.embedding.file_hash import file_sha256
from lot_grpc.embedding.hash_record import HashRecord
from lot_grpc.embedding.model import Encoder, OnnxEncoder
from lot_grpc.embedding.model_files import locate
from lot_grpc.embedding.workers import Job, Workers, usable_cores
from lot_grpc.ports import EmbeddingContract

_SLICE = 256
"""Documents queued at once by one call."""


async def open_fastembed(
    model: str = DEFAULT_MODEL,
    *,
    path: Path | None = None,
    sha256: str = "",
    cache_dir: Path | None = None,
    allow_download: bool = False,
    threads: int = 0,
    cache_entries: int = DEFAULT_CACHE_ENTRIES,
    progress: Progress | None = None,
    hash_record: Path | None = None,
) -> FastembedEmbedder:
    """Find, verify and load the model. Does not block the event loop.

    Args:
        model: Name of the model, one of ``catalog.CARDS``.
        path: Folder with its files, None to look in packs, the cache and the hub.
        sha256: Hash that the model file must have, "" for any known one.
        cache_dir: fastembed's cache, None for its default (``FASTEMBED_CACHE_PATH`` or a
            folder in the system's temporary one).
        allow_download: Whether a missing model may be downloaded.
        threads: Texts embedded at the same time, 0 for the number of cores (at most 8). With more
            than one, a text that is embedded alone may use two.
        cache_entries: Vectors kept for repeated texts, 0 for none.
        progress: Called during a download, from another thread.
        hash_record: File with the hashes of verified files, None to read files in full. See the
            module ``hash_record``.

    Raises:
        ModelUnavailableError: Files are missing, damaged or from a different model.
    """

    def load() -> tuple[OnnxEncoder, str, str]:
        record = HashRecord(hash_record) if hash_record is not None else None
        hash_of = record.sha256 if record is not None else file_sha256
        files = locate(
            card,
            path=path,
            sha256=sha256,
            cache_dir=cache_dir,
            allow_download=allow_download,
            progress=progress,
            hash_of=hash_of,
        )
        vocabulary = hash_of(files.folder / "tokenizer.json")
        if record is not None:
            record.save()
        return OnnxEncoder(files, threads=threads), files.sha256, vocabulary

    card = card_of(model)
    threads = threads or usable_cores()
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
    return FastembedEmbedder(encoder, contract, threads=threads, cache_entries=cache_entries)


class FastembedEmbedder(CachingEmbedder):
    """An ``Embedder`` that runs an encoder on a pool of threads.

    A text longer than the model's input is read in windows, see ``windows``.
    """

    def __init__(
        self, encoder: Encoder, contract: EmbeddingContract, *, threads: int, cache_entries: int
    ) -> None:
        super().__init__(
            contract,
            encoder.max_tokens,
            cache_entries=cache_entries,
            slice_size=_SLICE,
            background_size=max(1, threads // 2),
        )
        self._count = encoder.count
        self._max_characters = encoder.max_characters
        self._workers = Workers(encoder, threads, self._settle)

    async def count_tokens(self, texts: Sequence[str]) -> list[int] | None:
        """Count the tokens of whole texts, including what the model does not read."""
        return await asyncio.to_thread(lambda: [self._count(text) for text in texts])

    async def close(self) -> None:
        """Finish pending calls, refuse new ones, stop the threads. Idempotent."""
        self._closed = True
        await self._workers.close()

    def _fit(self, role: Role, text: str) -> tuple[str, bool]:
        return text[: self._max_characters], len(text) > self._max_characters

    def _start(self, role: Role, jobs: Sequence[Job]) -> None:
        if role == "query":
            self._workers.turns.add_queries(jobs)
        else:
            self._workers.turns.add_documents(jobs)

    def _failure(self, job: Job, cause: BaseException) -> EmbeddingFailedError:
        return EmbeddingFailedError(
            f"the model could not embed a text of {len(job.text)} characters",
            characters=len(job.text),
        )
