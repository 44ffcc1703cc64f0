"""An embedder and a reranker that need no model, no file and no thread."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from lot_grpc.embedding.windows import MOST_WINDOWS, mean_vector
from lot_grpc.ports import Embedding, EmbeddingContract

_WORD = re.compile(r"\w+")
_GRAM = 3
_WORD_WEIGHT = 2.0
"""A shared word counts more than a shared trigram."""


class HashingEmbedder:
    """Hashes words and letter trigrams, so that overlapping texts are similar.

    The same text gives the same vector in every process, and queries and documents are embedded
    alike. It ignores meaning: "sign in" and "log in" are as far apart as any two texts.

    Args:
        dimensions: Length of the vectors.
        max_words: Words read at once; a longer text is read in windows, see ``windows``.
    """

    def __init__(self, dimensions: int = 64, max_words: int = 512) -> None:
        self._dimensions = dimensions
        self._max_words = max_words

    @property
    def max_tokens(self) -> int:
        """Words read at once."""
        return self._max_words

    @property
    def contract(self) -> EmbeddingContract:
        """What its vectors are made with; there is no model file, so its hash is empty."""
        return EmbeddingContract(
            model="test-double/hashing",
            dimensions=self._dimensions,
            distance="cosine",
            query_prefix="",
            model_sha256="",
            vocabulary_sha256="",
            tokenizer="",
        )

    async def embed_query(self, text: str) -> Embedding:
        """Embed a search text."""
        return self._embed(text)

    async def embed_documents(self, texts: Sequence[str]) -> list[Embedding]:
        """Embed texts to store, in order."""
        return [self._embed(text) for text in texts]

    async def count_tokens(self, texts: Sequence[str]) -> list[int] | None:
        """Words of each text."""
        return [len(_WORD.findall(text.lower())) for text in texts]

    async def close(self) -> None:
        """Nothing to stop."""

    def _embed(self, text: str) -> Embedding:
        words = _WORD.findall(text.lower())
        read = words[: self._max_words * MOST_WINDOWS]
        truncated = len(read) < len(words)
        if len(read) <= self._max_words:
            return Embedding(self._vector(read), truncated)
        windows = [
            read[start : start + self._max_words] for start in range(0, len(read), self._max_words)
        ]
        vectors = [np.array(self._vector(window), dtype=np.float32) for window in windows]
        texts = [" ".join(window) for window in windows]
        return Embedding(mean_vector(vectors, texts).tolist(), truncated)

    def _vector(self, words: Sequence[str]) -> list[float]:
        vector = [0.0] * self._dimensions
        for feature, weight in _features(words):
            hashed = zlib.crc32(feature.encode(errors="surrogatepass"))
            # One bit decides the sign, so that chance collisions cancel instead of adding up.
            vector[(hashed >> 1) % self._dimensions] += weight if hashed & 1 else -weight
        norm = math.sqrt(sum(value * value for value in vector))
        if norm == 0:
            vector[0] = norm = 1.0
        return [value / norm for value in vector]


class OverlapReranker:
    """Scores a text by the share of the query's words that it has.

    Args:
        reached: Texts of a call that are scored, None for all; the rest is None, as after the time
            ran out.
    """

    def __init__(self, reached: int | None = None) -> None:
        self._reached = reached

    @property
    def model(self) -> str:
        """Name of the model."""
        return "test-double/overlap"

    async def score(
        self, query: str, texts: Sequence[str], *, seconds: float
    ) -> list[float | None]:
        """Score the first texts, in order; none if ``seconds`` is 0."""
        reached = 0 if seconds <= 0 else len(texts) if self._reached is None else self._reached
        words = set(_WORD.findall(query.lower()))
        scores: list[float | None] = [
            len(words & set(_WORD.findall(text.lower()))) / max(1, len(words))
            for text in texts[:reached]
        ]
        return scores + [None] * (len(texts) - len(scores))

    async def close(self) -> None:
        """Nothing to stop."""


def _features(words: Sequence[str]) -> Iterator[tuple[str, float]]:
    for word in words:
        yield word, _WORD_WEIGHT
        marked = f"^{word}$"
        for start in range(len(marked) - _GRAM + 1):
            yield f"#{marked[start : start + _GRAM]}", 1.0
