"""The vector of a query that an outcome names, with as little work as can be."""

from __future__ import annotations

from collections.abc import Sequence

from lot_grpc.ports import Embedder
from lot_grpc.services.recall.retrievals import Retrievals


class AskedVectors:
    """From the recall that asked it, where that is known; else embedded."""

    def __init__(self, retrievals: Retrievals, embedder: Embedder) -> None:
        self._retrievals = retrievals
        self._embedder = embedder

    async def of(self, namespace: str, query: str, retrieval_id: str) -> Sequence[float]:
        """The query's vector. Raises EmbeddingFailedError."""
        if retrieval_id:
            retrieval = await self._retrievals.find(namespace, retrieval_id)
            if retrieval is not None and retrieval.query == query:
                return retrieval.vector
        return (await self._embedder.embed_query(query)).vector
