"""Recomputes the vectors of records from their texts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from lot_grpc.ports import Embedder, Record, Vector
from lot_grpc.services.indexer import Indexer
from lot_grpc.services.resource_spec import ResourceCollection


class RecordEmbedder:
    """Embeds the records of any collection with dense vectors."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._indexer = Indexer(embedder)

    async def vectors(
        self, collection: ResourceCollection, records: Sequence[Record]
    ) -> list[Mapping[str, Vector]]:
        """The vectors of each record, in order."""
        if not collection.query_key:
            texts = await collection.search_fields.texts(records)
            return [one.vectors for one in await self._indexer.vectors(texts)]
        queries = [record.payload[collection.query_key] for record in records]
        embedded = await asyncio.gather(*map(self._embedder.embed_query, queries))
        return [{collection.dense[0]: one.vector} for one in embedded]
