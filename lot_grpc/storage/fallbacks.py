"""Queries with fallbacks, for stores that run both in one batch to save a round trip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from lot_grpc.ports import SearchQuery, SearchResult


def with_fallbacks(queries: Sequence[SearchQuery]) -> list[SearchQuery]:
    """The queries, then their fallbacks. A query that has one also reads its best record."""
    fallbacks = [query.fallback.query for query in queries if query.fallback is not None]
    if not fallbacks:
        return list(queries)
    return [
        *(
            query if query.fallback is None else replace(query, records=max(1, query.records))
            for query in queries
        ),
        *fallbacks,
    ]


def chosen(queries: Sequence[SearchQuery], found: SearchResult) -> SearchResult:
    """The result of the queries, given the result of ``with_fallbacks(queries)``."""
    if len(found.hits) == len(queries):
        return found
    hits, used = list(found.hits[: len(queries)]), list(queries)
    others = iter(found.hits[len(queries) :])
    for place, query in enumerate(queries):
        if query.fallback is None:
            continue
        other, best = next(others), found.records.get(next(iter(hits[place]), ""))
        if best is None or not query.fallback.accepts(best):
            hits[place], used[place] = other, query.fallback.query
    requested = {
        point
        for query, points in zip(used, hits, strict=True)
        for point in islice(points, query.records)
    }
    records = {point: one for point, one in found.records.items() if point in requested}
    return replace(found, hits=hits, records=records)
