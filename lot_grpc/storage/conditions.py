"""The meaning of conditions, in plain Python.

``InMemoryStore`` filters with it, and the other stores use it for compare-and-set on a record they
have just read. The contract tests check that Qdrant's own filters mean the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from lot_grpc.ports import (
    EXPIRES_KEY,
    AllOf,
    AnyOf,
    Condition,
    Equals,
    HasVector,
    IdIn,
    Micros,
    Missing,
    Not,
    OneOf,
    Range,
    Scalar,
    Where,
)


def matches(
    where: Where, id: str, payload: Mapping[str, Any], vectors: Collection[str] | None = None
) -> bool:
    """Whether the record meets every condition.

    ``vectors`` are the names of those it has; None if they were not read, and then a condition on
    one is a ``ValueError``.
    """
    return all(_holds(condition, id, payload, vectors) for condition in where)


def keys_of(where: Iterable[Condition]) -> set[str]:
    """The payload keys that the conditions read."""
    keys: set[str] = set()
    for condition in where:
        match condition:
            case Not(inner):
                keys |= keys_of((inner,))
            case AllOf(conditions) | OneOf(conditions):
                keys |= keys_of(conditions)
            case IdIn() | HasVector():
                pass
            case _:
                keys.add(condition.key)
    return keys


def is_expired(payload: Mapping[str, Any], now: Micros) -> bool:
    """Whether the record's expiry, if it has one, is at or before ``now``."""
    expires = payload.get(EXPIRES_KEY)
    return expires is not None and expires <= now


def _holds(
    condition: Condition, id: str, payload: Mapping[str, Any], vectors: Collection[str] | None
) -> bool:
    match condition:
        case Equals(key, value):
            return any(_same(item, value) for item in _values(payload, key))
        case AnyOf(key, values):
            return any(_same(item, value) for item in _values(payload, key) for value in values)
        case Range():
            return any(_within(item, condition) for item in _values(payload, condition.key))
        case Missing(key):
            return payload.get(key) in (None, [])
        case IdIn(ids):
            return id in ids
        case HasVector(name):
            if vectors is None:
                raise ValueError("a condition on a vector cannot be decided here")
            return name in vectors
        case Not(inner):
            return not _holds(inner, id, payload, vectors)
        case AllOf(conditions):
            return all(_holds(inner, id, payload, vectors) for inner in conditions)
        case OneOf(conditions):
            return any(_holds(inner, id, payload, vectors) for inner in conditions)


def _values(payload: Mapping[str, Any], key: str) -> Iterable[Any]:
    value = payload.get(key)
    return value if isinstance(value, list) else (value,)


def _same(item: Any, value: Scalar) -> bool:
    # In Python True == 1 == 1.0; JSON and Qdrant tell the three apart.
    return type(item) is type(value) and item == value


def _within(item: Any, bounds: Range) -> bool:
    if isinstance(item, bool) or not isinstance(item, int | float):
        return False
    return (
        (bounds.gte is None or item >= bounds.gte)
        and (bounds.gt is None or item > bounds.gt)
        and (bounds.lte is None or item <= bounds.lte)
        and (bounds.lt is None or item < bounds.lt)
    )
