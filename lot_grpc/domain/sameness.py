"""Whether two contents are the same, where one of them has been to the store and back."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any, TypeAlias

from lot_grpc.domain.error_solution import ErrorSolutionContent
from lot_grpc.domain.memory import MemoryContent
from lot_grpc.domain.pattern import PatternContent

_DIGITS = 1e-14
"""Qdrant reads numbers from JSON and may miss the last bit of a double (seen on Edge 0.9)."""


Content: TypeAlias = PatternContent | MemoryContent | ErrorSolutionContent


def same_content(stored: Content, given: Content) -> bool:
    """Equal but for the expiry, which a time to live moves, and for the last bit of a double."""
    return _same(
        asdict(replace(stored, expire_time=None)), asdict(replace(given, expire_time=None))
    )


def same_values(stored: Any, given: Any) -> bool:
    """Whether two dataclasses without an expiry are equal but for the last bit of a double."""
    return _same(asdict(stored), asdict(given))


def _same(one: Any, other: Any) -> bool:
    if {type(one), type(other)} == {int, float}:  # earlier versions stored whole numbers as doubles
        return bool(one == other)
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_DIGITS)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and bool(one == other)
