"""A search of a Qdrant server: hits, their records and their cosines in one batch of queries."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from qdrant_client import models

from lot_grpc.ports import (
    IdIn,
    Micros,
    Rescore,
    Scores,
    SearchQuery,
    SearchResult,
    SparseVector,
    Vector,
)
from lot_grpc.storage.qdrant_filter import qdrant_filter
from lot_grpc.storage.qdrant_points import record, to_qdrant


class SearchBatch:
    """The requests of a search, and how to read their responses.

    The requests for the hits come first. A query that needs records for only some of its hits is
    sent a second time with that limit, since the server returns payloads for all hits of a request
    or for none. Cosines take one request per dense vector, with the queries as prefetches.
    ``multi`` names the vectors of which a record has several.

    Each shard of a collection rescores what it prefetched itself, so there are more candidates than
    hits, and the limit may cut hits off. Those are ``unscored`` once there is a result.
    """

    def __init__(
        self,
        namespace: str,
        queries: Sequence[SearchQuery],
        rescore: Rescore | None,
        now: Micros,
        multi: Container[str],
    ) -> None:
        self._namespace = namespace
        self._now = now
        self._multi = multi
        self._queries = queries
        self._rescore = rescore
        self.unscored: frozenset[str] = frozenset()
        # A sparse vector without terms finds nothing; the server refuses it.
        searched = [query for query in queries if _has_terms(query)]
        some = [query for query in searched if 0 < query.records < query.limit]
        self.requests = [
            *(self._request(query, with_payload=_reads_all(query)) for query in searched),
            *(self._request(query, query.records, with_payload=True) for query in some),
            *self._rescoring(searched),
        ]

    def result(self, responses: Sequence[Sequence[models.ScoredPoint]]) -> SearchResult:
        """The search result from the points of each response."""
        left = iter(responses)
        found = [next(left) if _has_terms(query) else [] for query in self._queries]
        read = [
            points if _reads_all(query) else next(left)
            for query, points in zip(self._queries, found, strict=True)
            if query.records and _has_terms(query)
        ]
        records = {str(one.id): record(one, self._namespace) for points in read for one in points}
        hits = [_scores(points) for points in found]
        return SearchResult(hits, records, self._cosines(hits, list(left)))

    def _cosines(
        self, hits: Sequence[Scores], responses: Sequence[Sequence[models.ScoredPoint]]
    ) -> Scores:
        if self._rescore is None:
            return {}
        candidates = frozenset(self._rescore.ids).union(*hits)
        cosines: Scores = {}
        for points in responses:
            scores = _scores(points)
            if len(scores) >= self._candidates:
                self.unscored |= candidates - scores.keys()
            for point in candidates & scores.keys():
                cosines[point] = max(scores[point], cosines.get(point, scores[point]))
        return cosines

    def _request(
        self, query: SearchQuery, limit: int = 0, *, with_payload: bool = False
    ) -> models.QueryRequest:
        return models.QueryRequest(
            query=self._vector(query.using, query.vector),
            using=query.using,
            limit=limit or query.limit,
            filter=qdrant_filter(self._namespace, query.where, self._now),
            score_threshold=query.min_score,
            with_payload=with_payload,
            with_vector=False,
        )

    def _vector(self, using: str, vector: Vector) -> Any:
        return [to_qdrant(vector)] if using in self._multi else to_qdrant(vector)

    def _rescoring(self, queries: Sequence[SearchQuery]) -> list[models.QueryRequest]:
        """A request for each dense vector; none where nothing can be found."""
        rescore = self._rescore
        if rescore is None:
            return []
        prefetches = [_prefetch(self._request(query)) for query in queries]
        if rescore.ids:
            named = qdrant_filter(self._namespace, (IdIn(tuple(rescore.ids)),), self._now)
            prefetches.append(models.Prefetch(filter=named, limit=len(rescore.ids)))
        self._candidates = sum(one.limit or 0 for one in prefetches)
        return [
            models.QueryRequest(
                prefetch=prefetches,
                query=self._vector(name, rescore.vector),
                using=name,
                limit=self._candidates,
                with_payload=False,
                with_vector=False,
            )
            for name in (rescore.using if prefetches else ())
        ]


def _has_terms(query: SearchQuery) -> bool:
    return not isinstance(query.vector, SparseVector) or bool(query.vector.indices)


def _reads_all(query: SearchQuery) -> bool:
    return query.records >= query.limit


def _scores(points: Sequence[Any]) -> Scores:
    return {str(found.id): found.score for found in points}


def _prefetch(request: models.QueryRequest) -> models.Prefetch:
    return models.Prefetch(
        query=request.query,
        using=request.using,
        limit=request.limit,
        filter=request.filter,
        score_threshold=request.score_threshold,
    )
