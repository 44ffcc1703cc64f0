"""Outcomes of candidates on similar queries: one search over their context stats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lot_grpc.domain.context_stats import Evidence, Neighbour, evidence, least_cosine, neighbour
from lot_grpc.ports import AnyOf, SearchQuery
from lot_grpc.services.outcomes.known_empty import KnownEmpty
from lot_grpc.services.records.collections import CONTEXT_STATS, QUERY_VECTOR
from lot_grpc.services.records.context_stats import MERGED_INTO, context_stats_from_payload
from lot_grpc.services.records.resource_refs import RESOURCE
from lot_grpc.services.runtime import Runtime

NEIGHBOURS_AT_MOST = 256
"""Context stats considered for a query, the nearest of all candidates together."""


class OutcomesOnQueries:
    """Reads the context stats of a kind."""

    def __init__(self, runtime: Runtime, kind: str) -> None:
        self._store = runtime.store
        self._time = runtime.time
        self._weights = runtime.settings.weights
        self.nothing = KnownEmpty(runtime, CONTEXT_STATS, kind)

    async def of(
        self, namespace: str, vector: Sequence[float], points: Sequence[str]
    ) -> Mapping[str, Evidence]:
        """By point, for the resources that have stats near the query."""
        search = SearchQuery(
            QUERY_VECTOR,
            vector,
            NEIGHBOURS_AT_MOST,
            [AnyOf(RESOURCE, tuple(points))],
            min_score=least_cosine(self._weights.kernel_width),
            records=NEIGHBOURS_AT_MOST,
        )
        found = await self._store.search(CONTEXT_STATS, namespace, [search])
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
