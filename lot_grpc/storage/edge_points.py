"""Records as Qdrant Edge's points, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import qdrant_edge as edge

from lot_grpc.ports import NAMESPACE_KEY, MultiVector, Payload, Record, SparseVector, Vector


def point(record: Record) -> edge.Point:
    """The record as a point; its payload is copied."""
    payload = {**record.payload, NAMESPACE_KEY: record.namespace}
    return edge.Point(record.id, _to_edge(record.vectors) if record.vectors else {}, payload)


def point_vectors(record: Record) -> edge.PointVectors:
    """Only the record's vectors, to be set in an existing point."""
    return edge.PointVectors(record.id, _to_edge(record.vectors))


def reader(namespace: str | None) -> Callable[[Any], Record]:
    """A function that turns Edge's points of ``namespace`` into records."""

    def read(found: Any) -> Record:
        payload: Payload = found.payload or {}
        stored = payload.pop(NAMESPACE_KEY, "")
        vectors = found.vector
        return Record(
            str(found.id),
            stored if namespace is None else namespace,
            payload,
            _from_edge(vectors) if vectors else {},
        )

    return read


def query_vector(vector: Vector) -> Any:
    """The vector as Edge takes it, in a query and in a point."""
    if isinstance(vector, SparseVector):
        return edge.SparseVector(list(vector.indices), list(vector.values))
    if isinstance(vector, MultiVector):
        return [one if isinstance(one, list) else list(one) for one in vector.vectors]
    return vector if isinstance(vector, list) else list(vector)


def _to_edge(vectors: Mapping[str, Vector]) -> dict[str, Any]:
    return {name: query_vector(vector) for name, vector in vectors.items()}


def _from_edge(vectors: Mapping[str, Any]) -> dict[str, Vector]:
    return {name: _one_from_edge(vector) for name, vector in vectors.items()}


def _one_from_edge(vector: Any) -> Vector:
    if isinstance(vector, edge.SparseVector):
        return SparseVector(vector.indices, vector.values)
    if isinstance(vector[0], list):
        return MultiVector(vector)
    dense: list[float] = vector
    return dense
