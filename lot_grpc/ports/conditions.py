"""Conditions on records.

On an array-valued key a condition holds when it holds for any element. A missing key satisfies only
``Missing``, and ``Not`` of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lot_grpc.ports.records import Scalar


@dataclass(frozen=True, slots=True)
class Equals:
    """The value at ``key`` equals ``value``, without coercion between types."""

    key: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class AnyOf:
    """The value at ``key`` is one of ``values``. No values match nothing."""

    key: str
    values: tuple[str, ...] | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """The number at ``key`` lies within the given bounds (at least one)."""

    key: str
    gte: float | None = None
    gt: float | None = None
    lte: float | None = None
    lt: float | None = None


@dataclass(frozen=True, slots=True)
class Missing:
    """``key`` is absent, null or an empty array."""

    key: str


@dataclass(frozen=True, slots=True)
class IdIn:
    """The record's id is one of ``ids``. No ids match nothing."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HasVector:
    """The record has a vector of this name. For filters only: ``when`` refuses it."""

    name: str


@dataclass(frozen=True, slots=True)
class Not:
    """``condition`` does not hold."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class AllOf:
    """Each condition holds. None given holds always."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    """At least one condition holds. None given holds never."""

    conditions: tuple[Condition, ...]


Condition: TypeAlias = Equals | AnyOf | Range | Missing | IdIn | HasVector | Not | AllOf | OneOf
Where: TypeAlias = Sequence[Condition]
"""Conditions that must all hold."""
