"""Conditions as Qdrant Edge's filters."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from qdrant_edge import (
    FieldCondition,
    Filter,
    HasIdCondition,
    HasVectorCondition,
    IsEmptyCondition,
    MatchAny,
    MatchValue,
    RangeFloat,
)

from lot_grpc.ports import (
    EXPIRES_KEY,
    NAMESPACE_KEY,
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
from lot_grpc.storage.json_path import json_path

_TRUE: Any = np.bool_(True)
_FALSE: Any = np.bool_(False)


def edge_filter(namespace: str | None, where: Where, expired_at: Micros | None) -> Filter | None:
    """All of ``where`` within ``namespace``, except what has expired at ``expired_at``.

    With ``expired_at`` None, expiry is ignored. A result of None means everything.
    """
    must: list[Any] = []
    must_not: list[Any] = []
    if namespace is not None:
        must.append(_namespace(namespace))
    _collect(where, must, must_not)
    if expired_at is not None:
        must_not.append(FieldCondition(EXPIRES_KEY, range=RangeFloat(lte=float(expired_at))))
    if not must and not must_not:
        return None
    return Filter(must=must or None, must_not=must_not or None)


def expired_filter(now: Micros, where: Where = ()) -> Filter | None:
    """What has expired at ``now``, and meets ``where``."""
    return edge_filter(None, (Range(EXPIRES_KEY, lte=now), *where), None)


@lru_cache(maxsize=256)
def _namespace(namespace: str) -> FieldCondition:
    return FieldCondition(NAMESPACE_KEY, match=MatchValue(namespace))


def _collect(where: Where, must: list[Any], must_not: list[Any]) -> None:
    """Keep the usual conjunctions flat; Qdrant plans flat filters best."""
    for condition in where:
        match condition:
            case AllOf(conditions):
                _collect(conditions, must, must_not)
            case Not(inner):
                must_not.append(_condition(inner))
            case _:
                must.append(_condition(condition))


def _condition(condition: Condition) -> Any:
    match condition:
        case Equals(key, int() as value) if not isinstance(value, bool):
            return _integer(key, value)
        case Equals(key, value):
            return FieldCondition(json_path(key), match=MatchValue(_scalar(value)))
        case AnyOf(key, (int(), *_) as values):
            return Filter(should=[_integer(key, value) for value in values])
        case AnyOf(key, (str() as value,)):  # a list of one costs Edge up to half as much again
            return FieldCondition(json_path(key), match=MatchValue(value))
        case AnyOf(key, values):
            any_of: Any = list(values)
            return FieldCondition(json_path(key), match=MatchAny(any_of))
        case Range(key, gte, gt, lte, lt):
            return FieldCondition(json_path(key), range=RangeFloat(gte=gte, gt=gt, lte=lte, lt=lt))
        case Missing(key):
            return IsEmptyCondition(json_path(key))
        case IdIn(ids):
            return HasIdCondition(set(ids))
        case HasVector(name):
            return HasVectorCondition(name)
        case Not(inner):
            return Filter(must_not=[_condition(inner)])
        case AllOf(conditions):
            return Filter(must=[_condition(inner) for inner in conditions])
        case OneOf(()):
            return HasIdCondition(set())  # an empty `should` would hold always
        case OneOf(conditions):
            return Filter(should=[_condition(inner) for inner in conditions])


def _integer(key: str, value: Any) -> FieldCondition:
    # As a range, since ``Index.INTEGER`` supports nothing else.
    return FieldCondition(json_path(key), range=RangeFloat(gte=value, lte=value))


def _scalar(value: Scalar) -> Any:
    # MatchValue(True) becomes the integer 1 in Edge 0.9.0 and never matches a bool; a numpy bool
    # is not an int, and so stays a bool.
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    return value
