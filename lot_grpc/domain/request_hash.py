"""The hash by which a repeated request is known again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any

from lot_grpc.domain.ids import content_hash
from lot_grpc.domain.json_values import as_doubles


def request_hash(request: Any, **replaced: Any) -> str:
    """The same for the same request (a dataclass), apart from its ``request_id``.

    Fields that have their default do not count, so a version with more fields gives a request that
    does not use them the same hash. ``replaced``: what is hashed instead of a field; None: nothing.
    """
    skip = {"request_id", *replaced}
    given = {name: one for name, one in _given(request) if name not in skip}
    hashed = {name: _to_hash(one) for name, one in given.items()}
    return content_hash(hashed | {name: one for name, one in replaced.items() if one is not None})


def _given(value: Any) -> list[tuple[str, Any]]:
    """The fields of a dataclass that do not have their default."""
    defaults = _defaults(value.__class__)
    values = ((name, getattr(value, name), default) for name, default in defaults)
    return [(name, one) for name, one, default in values if one != default]


@cache
def _defaults(cls: Any) -> tuple[tuple[str, Any], ...]:
    """The fields of a dataclass; the default of one that has none equals nothing."""
    return tuple(
        (one.name, one.default if one.default_factory is MISSING else one.default_factory())
        for one in fields(cls)
    )


def _to_hash(value: Any) -> Any:
    """A value as JSON. A mapping is free-form JSON, whose numbers are doubles."""
    if isinstance(value, Mapping):
        return as_doubles(value)
    if isinstance(value, tuple):
        return [_to_hash(one) for one in value]
    if isinstance(value, bytes):
        return value.hex()
    if is_dataclass(value):
        return {name: _to_hash(one) for name, one in _given(value)}
    return value
