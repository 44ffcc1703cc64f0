"""Conditions as the filters of a Qdrant server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qdrant_client import models

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
    Where,
)
from lot_grpc.storage.json_path import json_path


def qdrant_filter(namespace: str | None, where: Where, now: Micros | None) -> models.Filter:
    """All of ``where`` within ``namespace``, except what has expired at ``now`` (None: keep it)."""
    must: list[Any] = []
    must_not: list[Any] = []
    if namespace is not None:
        must.append(equal(NAMESPACE_KEY, namespace))
    for condition in where:
        if isinstance(condition, Not):
            must_not.append(_condition(condition.condition))
        else:
            must.append(_condition(condition))
    if now is not None:
        must_not.append(expired(now))
    return models.Filter(must=must, must_not=must_not)


def expired(now: Micros) -> models.FieldCondition:
    """What has expired at ``now``."""
    return models.FieldCondition(key=EXPIRES_KEY, range=models.Range(lte=float(now)))


def equal(key: str, value: Any) -> models.FieldCondition:
    """The value at ``key`` is ``value``."""
    return models.FieldCondition(key=json_path(key), match=models.MatchValue(value=value))


def having_ids(ids: Sequence[str]) -> models.HasIdCondition:
    """The record's id is one of ``ids``."""
    return models.HasIdCondition(has_id=list(ids))


def _condition(condition: Condition) -> Any:
    match condition:
        case Equals(key, value):
            return equal(key, value)
        case AnyOf(_, ()) | OneOf(()):
            return having_ids(())  # an empty list would always hold, or be refused
        case AnyOf(key, values):
            any_of: Any = list(values)
            return models.FieldCondition(key=json_path(key), match=models.MatchAny(any=any_of))
        case Range(key, gte, gt, lte, lt):
            return models.FieldCondition(
                key=json_path(key), range=models.Range(gte=gte, gt=gt, lte=lte, lt=lt)
            )
        case Missing(key):
            return models.IsEmptyCondition(is_empty=models.PayloadField(key=json_path(key)))
        case IdIn(ids):
            return having_ids(ids)
        case HasVector(name):
            return models.HasVectorCondition(has_vector=name)
        case Not(inner):
            return models.Filter(must_not=[_condition(inner)])
        case AllOf(conditions):
            return models.Filter(must=[_condition(inner) for inner in conditions])
        case OneOf(conditions):
            return models.Filter(should=[_condition(inner) for inner in conditions])
