"""Equality of contents when one has been through the store.

Texts are the same in any Unicode form, doubles but for their last bit.
"""

from __future__ import annotations

import math
from collections.abc import Set as AbstractSet
from dataclasses import asdict, replace
from typing import Any

from lot_grpc.domain.text_form import normal_form

_DIGITS = 1e-14
"""Qdrant reads numbers from JSON and may miss the last bit of a double (seen on Edge 0.9)."""


def same_content(stored: Any, given: Any) -> bool:
    """Whether two contents are the same but for the expiry, which a time to live moves."""
    return same_values(replace(stored, expire_time=None), replace(given, expire_time=None))


def same_values(stored: Any, given: Any) -> bool:
    """Whether two dataclasses without an expiry are the same."""
    return _same(asdict(stored), asdict(given))


def different_fields(
    stored: Any, given: Any, nothing: Any, besides: AbstractSet[str]
) -> tuple[str, ...]:
    """The fields, ``besides`` some, in which two contents differ.

    What is not given, and so is as in ``nothing``, does not differ.
    """
    ours, theirs, not_given = asdict(stored), asdict(given), asdict(nothing)
    return tuple(
        name
        for name, value in theirs.items()
        if name not in besides and value != not_given[name] and not _same(value, ours[name])
    )


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return one == other or normal_form(one) == normal_form(other)
    kinds = {type(one), type(other)}
    if kinds == {float} or kinds == {int, float}:  # earlier versions stored whole ones as doubles
        return math.isclose(one, other, rel_tol=_DIGITS)
    if isinstance(one, dict) and isinstance(other, dict):
        ours, theirs = _by_normal_key(one), _by_normal_key(other)
        return ours.keys() == theirs.keys() and all(_same(ours[key], theirs[key]) for key in ours)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and bool(one == other)


def _by_normal_key(value: dict[str, Any]) -> dict[str, Any]:
    normal = {normal_form(key): one for key, one in value.items()}
    return normal if len(normal) == len(value) else value
