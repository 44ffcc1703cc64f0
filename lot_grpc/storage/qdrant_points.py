"""Records as the points of a Qdrant server, and back."""

from __future__ import annotations

from typing import Any

from qdrant_client import models

from lot_grpc.ports import (
    NAMESPACE_KEY,
    MultiVector,
    Record,
    SparseVector,
    Vector,
)
from lot_grpc.storage.qdrant_stamp import Stamp, without_stamp


def point(record: Record, stamp: Stamp) -> models.PointStruct:
    """The record as a point that carries its stamp."""
    payload = {**record.payload, NAMESPACE_KEY: record.namespace, **stamp.payload()}
    return models.PointStruct(id=record.id, vector=_vectors(record), payload=payload)


def point_vectors(record: Record) -> models.PointVectors:
    """Only the record's vectors, to be set in an existing point."""
    return models.PointVectors(id=record.id, vector=_vectors(record))


def _vectors(record: Record) -> Any:
    return {name: to_qdrant(vector) for name, vector in record.vectors.items()}


def to_qdrant(vector: Vector) -> Any:
    """The vector as the client takes it."""
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
