"""Outcomes of candidate patterns on similar queries: one search over their context stats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lot_grpc.domain.context_stats import Evidence, Neighbour, evidence, least_cosine, neighbour
from lot_grpc.domain.ranking import RankingWeights
from lot_grpc.ports import AnyOf, Record, SearchQuery, VectorStore
from lot_grpc.services.records.collections import CONTEXT_STATS, QUERY_VECTOR
from lot_grpc.services.records.context_stats import MERGED_INTO, context_stats_from_payload
from lot_grpc.services.records.resource_refs import RESOURCE
from lot_grpc.services.time_source import TimeSource

NEIGHBOURS_AT_MOST = 256
"""Context stats considered for a query, the nearest of all candidates together."""


class PatternEvidence:
    """Reads the context stats of patterns."""

    def __init__(
        self, store: VectorStore, time_source: TimeSource, weights: RankingWeights
    ) -> None:
        self._store = store
        self._time = time_source
        self._weights = weights

    async def nothing(self, namespace: str) -> bool:
        """Whether the namespace has no stats; False for a store outside this process."""
        if not self._store.exclusive:
            return False
        return not await self._store.scroll(CONTEXT_STATS, namespace, (), limit=1, payload=())

    async def of(
        self, namespace: str, vector: Sequence[float], records: Sequence[Record]
    ) -> Mapping[str, Evidence]:
        """By point, for the patterns that have stats near the query."""
        used = tuple(record.id for record in records if record.payload["usage_count"])
        if not used:
            return {}
        points = SearchQuery(
            QUERY_VECTOR,
            vector,
            NEIGHBOURS_AT_MOST,
            [AnyOf(RESOURCE, used)],
            min_score=least_cosine(self._weights.kernel_width),
            records=NEIGHBOURS_AT_MOST,
        )
        found = await self._store.search(CONTEXT_STATS, namespace, [points])
        [cosines] = found.hits
        near: dict[str, list[Neighbour]] = {}
        now = self._time.now()
        for point, record in found.records.items():
            if record.payload.get(MERGED_INTO):
                continue
            near.setdefault(record.payload[RESOURCE], []).append(
                neighbour(
                    context_stats_from_payload(record.payload),
                    record.payload["query"],
                    cosines[point],
                    now,
                    self._weights.kernel_width,
                    self._weights.fading,
                )
            )
        return {point: evidence(neighbours) for point, neighbours in near.items()}
