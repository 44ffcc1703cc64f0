"""The vector of the query that an outcome names, obtained as cheaply as possible."""

from __future__ import annotations

from collections.abc import Sequence

from lot_grpc.services.recall.retrievals import Retrievals
from lot_grpc.services.reindex.current_model import CurrentModel


class QueryVectors:
    """Takes the vector from the recall if it is known and of the current model; else embeds it."""

    def __init__(self, retrievals: Retrievals, model: CurrentModel) -> None:
        self._retrievals = retrievals
        self._model = model

    async def of(self, namespace: str, query: str, retrieval_id: str) -> Sequence[float]:
        """The query's vector. Raises EmbeddingFailedError."""
        if retrieval_id:
            retrieval = await self._retrievals.find(namespace, retrieval_id)
            known = retrieval is not None and retrieval.query == query
            if retrieval is not None and known and retrieval.epoch == self._model.epoch:
                return retrieval.vector
        return (await self._model.embed_query(query)).vector
