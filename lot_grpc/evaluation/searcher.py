"""The interface that is measured: it indexes documents and answers queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from lot_grpc.evaluation.dataset import Document, EvalQuery

DENSE, BM25, HYBRID, RERANK = "dense", "bm25", "hybrid", "rerank"
LEGS = (DENSE, BM25, HYBRID)
"""Ways of searching; ``rerank`` is hybrid search with its results reranked."""

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with the task, how much is done, and of how much; like ``reports.Progress``."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """The result of indexing. ``truncated``: how many documents the model did not read in full."""

    truncated: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """Ids of documents, best first. ``truncated``: the model did not read all of the query."""

    ids: Sequence[str]
    truncated: bool = False


class Searcher(Protocol):
    """Searches one set."""

    async def index(self, documents: Sequence[Document], progress: Progress) -> Indexed:
        """Index the documents. Called once, before any search."""

    async def search(self, query: EvalQuery, leg: str, limit: int, *, rerank: bool) -> Found:
        """The ``limit`` best documents for a query by one leg."""
