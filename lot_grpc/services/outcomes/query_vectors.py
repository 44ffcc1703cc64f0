"""The vector of the query that an outcome names, obtained as cheaply as possible."""

from __future__ import annotations

from collections.abc import Sequence

from lot_grpc.domain.recorded_outcome import RecordedOutcome
from lot_grpc.domain.retrieval import Retrieval, is_query_hash, query_hash
from lot_grpc.services.reindex.current_model import CurrentModel
from lot_grpc.services.retrievals.retrievals import Retrievals


class QueryVectors:
    """Takes the vector from the recall if it is known and of the current model; else embeds it."""

    def __init__(self, retrievals: Retrievals, model: CurrentModel) -> None:
        self._retrievals = retrievals
        self._model = model

    async def of(self, query: str, retrieval: Retrieval | None) -> Sequence[float] | None:
        """The query's vector. ``retrieval``: the recall that the outcome names, if still known.

        None if the query is a hash, which is not embedded, and the vector of the recall is not
        known, or of another model. Raises EmbeddingFailedError.
        """
        if (
            retrieval is not None
            and (retrieval.query == query or retrieval.query == query_hash(query))
            and retrieval.epoch == self._model.epoch
            and len(retrieval.vector)
        ):
            return retrieval.vector
        return None if is_query_hash(query) else (await self._model.embed_query(query)).vector

    async def of_outcome(self, recorded: RecordedOutcome) -> Sequence[float] | None:
        """The vector of the query of a stored outcome, as ``of``. Raises EmbeddingFailedError."""
        named = recorded.retrieval_id
        retrieval = await self._retrievals.find(recorded.namespace, named) if named else None
        return await self.of(recorded.query, retrieval)
