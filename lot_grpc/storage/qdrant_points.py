"""Records as the points of a Qdrant server, and back."""

from __future__ import annotations

from typing import Any

from qdrant_client import models

from lot_grpc.ports import (
    NAMESPACE_KEY,
    Micros,
    MultiVector,
    Record,
    SearchQuery,
    SparseVector,
    Vector,
)
from lot_grpc.storage.qdrant_filter import qdrant_filter
from lot_grpc.storage.qdrant_stamp import Stamp, without_stamp


def point(record: Record, stamp: Stamp) -> models.PointStruct:
    """The record as a point that carries its stamp."""
    payload = {**record.payload, NAMESPACE_KEY: record.namespace, **stamp.payload()}
    return models.PointStruct(id=record.id, vector=_vectors(record), payload=payload)


def point_vectors(record: Record) -> models.PointVectors:
    """Just the record's vectors, to be set in a point that is there."""
    return models.PointVectors(id=record.id, vector=_vectors(record))


def _vectors(record: Record) -> Any:
    return {name: _to_qdrant(vector) for name, vector in record.vectors.items()}


def _to_qdrant(vector: Vector) -> Any:
    if isinstance(vector, SparseVector):
        return models.SparseVector(indices=list(vector.indices), values=list(vector.values))
    if isinstance(vector, MultiVector):
        return [list(one) for one in vector.vectors]
    return list(vector)


def _from_qdrant(vector: Any) -> Vector:
    if isinstance(vector, models.SparseVector):
        return SparseVector(vector.indices, vector.values)
    if isinstance(vector[0], list):
        return MultiVector(vector)
    dense: list[float] = vector
    return dense


def record(found: Any, namespace: str | None) -> Record:
    """A point of ``namespace`` as a record, without the stamp."""
    payload = without_stamp(found.payload or {})
    stored = payload.pop(NAMESPACE_KEY, "")
    vectors = found.vector if isinstance(found.vector, dict) else {}
    return Record(
        str(found.id),
        stored if namespace is None else namespace,
        payload,
        {name: _from_qdrant(vector) for name, vector in vectors.items()},
    )


def has_terms(vector: Vector) -> bool:
    """Whether there is anything to search with."""
    return not isinstance(vector, SparseVector) or bool(vector.indices)


def query_request(
    namespace: str, query: SearchQuery, now: Micros, *, several: bool
) -> models.QueryRequest:
    """One leg of a batch; ``several``: records have several vectors under its name."""
    vector = _to_qdrant(query.vector)
    return models.QueryRequest(
        query=[vector] if several else vector,
        using=query.using,
        limit=query.limit,
        filter=qdrant_filter(namespace, query.where, now),
        score_threshold=query.min_score,
        with_payload=False,
        with_vector=False,
    )
