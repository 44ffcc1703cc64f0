"""The reranker of the service: a local cross-encoder, loaded at first use."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from lot_grpc.domain.errors import EmbeddingFailedError, ModelUnavailableError
from lot_grpc.embedding.cache import ScoreCache, pair_key_of
from lot_grpc.embedding.catalog import DEFAULT_RERANKER, reranker_card_of
from lot_grpc.embedding.cross_encoder import OnnxCrossEncoder, PairScorer
from lot_grpc.embedding.model_files import locate_reranker
from lot_grpc.embedding.pairs import MAX_WAITING, Call, PairWorkers, Turns
from lot_grpc.embedding.workers import usable_cores

_CACHE_ENTRIES = 10_000
"""Scores cached for repeated pairs: 500 recalls of 20 hits, 2 MB."""


def make_reranker(
    model: str = DEFAULT_RERANKER,
    *,
    path: Path | None = None,
    sha256: str = "",
    threads: int = 0,
) -> CrossEncoderReranker:
    """A reranker that finds, verifies and loads its model at first use. Reads no file yet.

    Args:
        model: Name of the model, one of ``catalog.RERANKERS``.
        path: Folder with its files, None to look in packs.
        sha256: Hash that the model file must have, "" for any known one.
        threads: Pairs scored at the same time, 0 for the number of cores (at most 8).

    Raises:
        ModelUnavailableError: The model is not in the catalog.
    """
    card = reranker_card_of(model)

    def load() -> OnnxCrossEncoder:
        try:
            return OnnxCrossEncoder(locate_reranker(card, path=path, sha256=sha256))
        except OSError as error:
            raise ModelUnavailableError(f"the model's files cannot be read: {error}") from error

    return CrossEncoderReranker(card.name, load, threads=threads or usable_cores())


class CrossEncoderReranker:
    """A ``Reranker`` over a scorer of pairs: threads, fair turns, deadlines, a cache.

    A pair's score depends only on the pair and the model, not on what is scored with it. The first
    128 tokens of a query are read, and as much of a text as then fits in the model's 512 (at least
    381); a longer text costs no more than one of that length. Belongs to one event loop.

    Args:
        model: Name of the model.
        load: Makes the scorer; called on a thread, and again after a failure.
        threads: Pairs scored at the same time, at least 1.
        most_waiting: Limit on the waiting pairs of all calls. Further pairs are not scored.
    """

    def __init__(
        self,
        model: str,
        load: Callable[[], PairScorer],
        *,
        threads: int,
        most_waiting: int = MAX_WAITING,
    ) -> None:
        self._model = model
        self._load = load
        self._threads = threads
        self._most_waiting = most_waiting
        self._loading: asyncio.Task[None] | None = None
        self._workers: PairWorkers | None = None
        self._max_characters = 0
        self._cache = ScoreCache(_CACHE_ENTRIES)
        self._closed = False

    @property
    def model(self) -> str:
        """Name of the model."""
        return self._model

    async def load(self) -> None:
        """Load the model now instead of at first use; does nothing if it is loaded.

        Raises:
            ModelUnavailableError: Files are missing, damaged or from a different model.
            EmbeddingFailedError: The reranker is closed.
        """
        await self._opened(None)

    async def score(
        self, query: str, texts: Sequence[str], *, seconds: float
    ) -> list[float | None]:
        """How well each text answers the query, in order; see ``ports.Reranker``.

        The first use loads the model (about 0.3 s), also within ``seconds``. After that time only
        running pairs are finished. With 0 or less nothing is scored.

        Raises:
            ModelUnavailableError: Files are missing, damaged or from a different model.
            EmbeddingFailedError: The model failed on a text, or the reranker is closed.
        """
        deadline = time.monotonic() + seconds
        scores: list[float | None] = [None] * len(texts)
        if not texts or seconds <= 0:
            return scores
        workers = await self._opened(seconds)
        if workers is None:
            return scores
        query = query[: self._max_characters]
        texts = [text[: self._max_characters] for text in texts]
        keys = [pair_key_of(query, text) for text in texts]
        scores = [self._cache.get(key) for key in keys]
        fresh = [place for place, score in enumerate(scores) if score is None]
        if fresh:
            call = Call(query, [texts[place] for place in fresh], deadline)
            await _carry_out(call, workers.turns)
            for place, score in zip(fresh, call.scores, strict=True):
                if score is not None:
                    scores[place] = score
                    self._cache.put(keys[place], score)
        return scores

    async def close(self) -> None:
        """Finish pending calls, refuse new ones, stop the threads. Idempotent."""
        self._closed = True
        if self._loading is not None:
            await asyncio.wait([self._loading])
        if self._workers is not None:
            await self._workers.close()

    async def _opened(self, seconds: float | None) -> PairWorkers | None:
        """The workers, or None if loading takes longer than ``seconds`` (it continues)."""
        if self._closed:
            raise EmbeddingFailedError("the reranker is closed")
        if self._workers is None:
            loading = self._loading
            if loading is None:
                loading = self._loading = asyncio.create_task(self._open())
                loading.add_done_callback(self._forget_a_failure)
            # Unlike awaiting the task, this leaves it to other callers if one is cancelled.
            await asyncio.wait([loading], timeout=seconds)
            if loading.done() and (error := loading.exception()) is not None:
                raise _own(error)
        return self._workers

    async def _open(self) -> None:
        scorer = await asyncio.to_thread(self._load)
        self._max_characters = scorer.max_characters
        self._workers = PairWorkers(scorer.score, self._threads, self._most_waiting)

    def _forget_a_failure(self, loading: asyncio.Task[None]) -> None:
        if loading.cancelled() or loading.exception() is not None:
            self._loading = None  # the next call tries again: the files may be there then


async def _carry_out(call: Call, turns: Turns) -> None:
    turns.add(call)
    timer = call.loop.call_later(call.deadline - time.monotonic(), turns.stop, call)
    try:
        await call.finished.wait()
    finally:
        timer.cancel()
        if not call.finished.is_set():
            turns.stop(call)  # the caller may have been cancelled
    if call.fault is not None:
        text, cause = call.fault
        raise EmbeddingFailedError(
            f"the model could not rerank a text of {len(text)} characters", characters=len(text)
        ) from cause


def _own(error: BaseException) -> BaseException:
    """A copy of an error: one raised in many tasks would accumulate all their tracebacks."""
    if isinstance(error, ModelUnavailableError):
        own = ModelUnavailableError(error.message, **error.metadata)
        own.__cause__ = error.__cause__
        return own
    return error
