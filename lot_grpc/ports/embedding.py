"""The models: text to vectors, and how well a text answers a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class EmbeddingContract:
    """What vectors in a store were made with. Stored with them and compared at start."""

    model: str
    dimensions: int
    distance: str
    query_prefix: str
    model_sha256: str
    vocabulary_sha256: str
    """Hash of the model's tokenizer, empty where there is none."""
    tokenizer: str
    """Name and version of the lexical terms indexed beside the vectors. Empty in an embedder's own
    contract; the service fills it in."""


@dataclass(frozen=True, slots=True)
class Embedding:
    """A unit vector of a text.

    ``truncated``: the text was so long that its tail was not read. A text longer than the model's
    input is read in windows (see ``embedding.windows``), so only one that overflows all of them is
    truncated.
    """

    vector: list[float]
    truncated: bool = False


class Embedder(Protocol):
    """Text to unit vectors. Queries and documents are separate: models prefix them differently."""

    @property
    def contract(self) -> EmbeddingContract:
        """What its vectors are made with."""

    @property
    def max_tokens(self) -> int:
        """Tokens that the model reads at once: of a text, or of one window of a longer text."""

    async def embed_query(self, text: str) -> Embedding:
        """Embed a search text. Never blocks the event loop."""

    async def embed_documents(self, texts: Sequence[str]) -> list[Embedding]:
        """Embed texts to store, in order. Never blocks the event loop."""

    async def count_tokens(self, texts: Sequence[str]) -> list[int] | None:
        """How many tokens each text has as it stands, special tokens included.

        None if the model cannot count them. Never blocks the event loop.
        """

    async def close(self) -> None:
        """Stop workers. Idempotent."""


class Reranker(Protocol):
    """How well texts answer a query, read together by a cross-encoder."""

    @property
    def model(self) -> str:
        """Name of the model."""

    async def score(
        self, query: str, texts: Sequence[str], *, seconds: float
    ) -> list[float | None]:
        """How well each text answers the query, in [0, 1], in order; the first are scored first.

        None for texts not reached within ``seconds``. Scores rank the texts of one query; they are
        not probabilities. Never blocks the event loop.
        Errors: ``EmbeddingFailedError``, ``ModelUnavailableError``.
        """

    async def close(self) -> None:
        """Stop workers. Idempotent."""
