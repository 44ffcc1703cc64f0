"""Equality of what two stores answered: floats by tolerance, ties by what they allow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lot_grpc.ports import MultiVector, Order, Record, Scalar, Scores, SparseVector, Vector


def close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-5)


def same_vector(a: Vector, b: Vector) -> bool:
    if isinstance(a, SparseVector) or isinstance(b, SparseVector):
        assert isinstance(a, SparseVector)
        assert isinstance(b, SparseVector)
        weights = dict(zip(a.indices, a.values, strict=True))
        others = dict(zip(b.indices, b.values, strict=True))
        return weights.keys() == others.keys() and all(
            close(weights[i], others[i]) for i in weights
        )
    if isinstance(a, MultiVector) or isinstance(b, MultiVector):
        assert isinstance(a, MultiVector)
        assert isinstance(b, MultiVector)
        return len(a.vectors) == len(b.vectors) and all(map(same_vector, a.vectors, b.vectors))
    return len(a) == len(b) and all(close(x, y) for x, y in zip(a, b, strict=True))


def same_record(a: Record, b: Record) -> bool:
    return (
        (a.id, a.namespace, a.payload) == (b.id, b.namespace, b.payload)
        and a.vectors.keys() == b.vectors.keys()
        and all(same_vector(a.vectors[name], b.vectors[name]) for name in a.vectors)
    )


def assert_same_records(got: Sequence[Record], want: Sequence[Record], told: object) -> None:
    assert [r.id for r in got] == [r.id for r in want], told
    for one, other in zip(got, want, strict=True):
        assert same_record(one, other), (told, one, other)


def assert_same_ordered(
    got: Sequence[Record], want: Sequence[Record], everything: Sequence[Record], order: Order
) -> None:
    """Equal keys in equal places; which of the records with one key come is free."""
    assert [r.payload[order.key] for r in got] == [r.payload[order.key] for r in want], order
    by_id = {r.id: r for r in everything}
    assert len({r.id for r in got}) == len(got)
    for one in got:
        assert same_record(one, by_id[one.id]), (order, one)


def assert_same_hits(got: Scores, want: Scores, everything: Scores, told: object) -> None:
    """Equal scores in equal places; which of the records with one score come is free."""
    assert len(got) == len(want), told
    for one, other in zip(got.values(), want.values(), strict=True):
        assert close(one, other), (told, one, other)
    for point, score in got.items():
        assert close(score, everything[point]), (told, point, score)


def assert_same_facet(
    got: Mapping[Scalar, int], want: Mapping[Scalar, int], everything: Mapping[Scalar, int]
) -> None:
    """Equal counts in equal places; which of the values with one count come is free."""
    assert list(got.values()) == list(want.values())
    assert all(everything[value] == count for value, count in got.items()), (got, everything)
