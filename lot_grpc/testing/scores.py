"""How Qdrant scores, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from lot_grpc.ports import MultiVector, Record, SearchQuery, SparseVector, Vector


def unit_vector(vector: Sequence[float]) -> list[float]:
    """The vector scaled to length 1; a vector of zeros is unchanged."""
    length = math.sqrt(sum(x * x for x in vector)) or 1.0
    return [x / length for x in vector]


def inverse_frequencies(query: SearchQuery, records: Iterable[Record]) -> dict[int, float]:
    """Qdrant's IDF over the whole collection, for the terms of a sparse query."""
    if not isinstance(query.vector, SparseVector):
        return {}
    total = 0
    having = dict.fromkeys(query.vector.indices, 0)
    for record in records:
        vector = record.vectors.get(query.using)
        if isinstance(vector, SparseVector):
            total += 1
            for index in vector.indices:
                if index in having:
                    having[index] += 1
    return {i: math.log(1 + (total - n + 0.5) / (n + 0.5)) for i, n in having.items()}


def score_of(query: Vector, vector: Vector, idf: Mapping[int, float]) -> float | None:
    """Cosine of the nearest, or the IDF-weighted dot product; None if no term is shared."""
    if isinstance(query, SparseVector):
        if not isinstance(vector, SparseVector):
            return None
        weights = dict(zip(vector.indices, vector.values, strict=True))
        shared = [
            value * idf[index] * weights[index]
            for index, value in zip(query.indices, query.values, strict=True)
            if index in weights
        ]
        return sum(shared) if shared else None
    if isinstance(vector, SparseVector) or isinstance(query, MultiVector):
        return None
    several = vector.vectors if isinstance(vector, MultiVector) else [vector]
    compared = unit_vector(query)
    return max(sum(a * b for a, b in zip(compared, one, strict=True)) for one in several)
