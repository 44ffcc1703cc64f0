"""The current model: an embedder that can be replaced while serving."""

from __future__ import annotations

from collections.abc import Sequence

from lot_grpc.domain.text_form import normal_form
from lot_grpc.ports import Embedder, Embedding, EmbeddingContract


class CurrentModel:
    """``Embedder`` over the one that serves now. ``epoch`` says which vectors are its own.

    It reads texts in NFC, so that one text in two Unicode forms has one vector.
    """

    def __init__(self, embedder: Embedder, epoch: int = 0) -> None:
        self._embedder = embedder
        self._epoch = epoch

    @property
    def epoch(self) -> int:
        """The epoch of the store's vectors that it made (``epochs``)."""
        return self._epoch

    @property
    def contract(self) -> EmbeddingContract:
        """What it produces."""
        return self._embedder.contract

    @property
    def max_tokens(self) -> int:
        """Tokens that it reads at once."""
        return self._embedder.max_tokens

    async def embed_query(self, text: str) -> Embedding:
        """Embed a search text."""
        return await self._embedder.embed_query(normal_form(text))

    async def embed_documents(self, texts: Sequence[str]) -> list[Embedding]:
        """Embed texts to store."""
        return await self._embedder.embed_documents([normal_form(text) for text in texts])

    async def count_tokens(self, texts: Sequence[str]) -> list[int] | None:
        """Count the tokens of texts."""
        return await self._embedder.count_tokens([normal_form(text) for text in texts])

    async def close(self) -> None:
        """Close the current model."""
        await self._embedder.close()

    def serves(self, embedder: Embedder) -> bool:
        """Whether it is the current model."""
        return self._embedder is embedder

    def switch(self, embedder: Embedder, epoch: int) -> Embedder:
        """Replace the current model; return the former one, which the caller closes."""
        former, self._embedder, self._epoch = self._embedder, embedder, epoch
        return former
