"""A test double for the embedder: no model, no file, no thread."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterator, Sequence

from lot_grpc.ports import Embedding, EmbeddingContract

_WORD = re.compile(r"\w+")
_GRAM = 3
_WORD_WEIGHT = 2.0
"""A shared word says more than a shared trigram."""


class HashingEmbedder:
    """TEST DOUBLE: hashed words and letter trigrams, so that overlapping texts are near.

    The same text gives the same vector in every process, and queries and documents are embedded
    alike. It knows no meaning: "sign in" and "log in" are as far apart as any two texts.

    Args:
        dimensions: Length of the vectors.
        max_words: Words read of a text; the tail of a longer one is unread and reported.
    """

    def __init__(self, dimensions: int = 64, max_words: int = 512) -> None:
        self._dimensions = dimensions
        self._max_words = max_words

    @property
    def max_tokens(self) -> int:
        """Words read of a text."""
        return self._max_words

    @property
    def contract(self) -> EmbeddingContract:
        """What this embedder makes; there is no model file, so its hash is empty."""
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

    async def close(self) -> None:
        """Nothing to stop."""

    def _embed(self, text: str) -> Embedding:
        words = _WORD.findall(text.lower())
        vector = [0.0] * self._dimensions
        for feature, weight in _features(words[: self._max_words]):
            hashed = zlib.crc32(feature.encode(errors="surrogatepass"))
            # One bit decides the sign, so that chance collisions cancel instead of adding up.
            vector[(hashed >> 1) % self._dimensions] += weight if hashed & 1 else -weight
        norm = math.sqrt(sum(value * value for value in vector))
        if norm == 0:
            vector[0] = norm = 1.0
        return Embedding([value / norm for value in vector], len(words) > self._max_words)


def _features(words: Sequence[str]) -> Iterator[tuple[str, float]]:
    for word in words:
        yield word, _WORD_WEIGHT
        marked = f"^{word}$"
        for start in range(len(marked) - _GRAM + 1):
            yield f"#{marked[start : start + _GRAM]}", 1.0
