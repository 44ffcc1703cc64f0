"""What is measured: something that takes documents and answers queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from lot_grpc.evaluation.dataset import Document, EvalQuery

DENSE, BM25, HYBRID, RERANK = "dense", "bm25", "hybrid", "rerank"
LEGS = (DENSE, BM25, HYBRID)
"""Ways of searching; ``rerank`` is the hybrid one with its answer ordered anew."""

Progress: TypeAlias = Callable[[str, int, int], None]
"""Told what is done, how much of it, and of how much; as ``reports.Progress``."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """What became of the documents. ``truncated``: the model did not read all of so many."""

    truncated: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """Ids of documents, best first. ``truncated``: the model did not read all of the query."""

    ids: Sequence[str]
    truncated: bool = False


class Searcher(Protocol):
    """Holds one set at a time."""

    async def index(self, documents: Sequence[Document], progress: Progress) -> Indexed:
        """Take the documents in. Once, before any search."""

    async def search(self, query: EvalQuery, leg: str, limit: int, *, rerank: bool) -> Found:
        """The ``limit`` best documents for a query by one leg."""
