"""Dataclass ⇄ payload for the plain fields of a kind: defaults are left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from enum import StrEnum
from typing import Any, TypeAlias

from lot_grpc.ports import AnyOf, Condition, Equals, Payload, Range, Scalar

Filters: TypeAlias = dict[str, list[Condition]]
"""Conditions by the name of the field in the contract that asks for them."""


def plain(value: Any) -> Any:
    """A value as JSON keeps it."""
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    return value


class FieldCodec:
    """Writes and reads the fields of one frozen dataclass, those in ``skip`` excepted.

    ``readers`` turn a stored value back where JSON is not the field's own type; sequences come
    back as tuples by themselves.
    """

    def __init__(
        self, cls: type[Any], readers: Mapping[str, Callable[[Any], Any]], skip: frozenset[str]
    ) -> None:
        self._fields: list[tuple[str, Any, Callable[[Any], Any]]] = []
        for field in fields(cls):
            if field.name in skip:
                continue
            default = field.default
            if default is MISSING and field.default_factory is not MISSING:
                default = field.default_factory()
            self._fields.append((field.name, default, readers.get(field.name, _as_stored)))

    def write(self, value: Any) -> Payload:
        """The payload keys of ``value``."""
        payload: Payload = {}
        for name, default, _ in self._fields:
            given = getattr(value, name)
            if given != default:
                payload[name] = plain(given)
        return payload

    def read(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments for the dataclass; what is missing takes its default."""
        return {name: read(payload[name]) for name, _, read in self._fields if name in payload}


def _as_stored(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def label_pairs(labels: Mapping[str, str]) -> list[str]:
    """Labels as ``key=value``, since a dot in a key is a path to Qdrant. Keys hold no ``=``."""
    return sorted(f"{key}={value}" for key, value in labels.items())


def any_of(key: str, values: tuple[Any, ...]) -> list[Condition]:
    """The values asked for, or no condition when none are."""
    return [AnyOf(key, tuple(plain(value) for value in values))] if values else []


def all_of(key: str, values: tuple[str, ...] | list[str]) -> list[Condition]:
    """Each of the values asked for."""
    return [Equals(key, value) for value in values]


def after(key: str, time: int | None) -> list[Condition]:
    """Later than a time, None is any."""
    return [] if time is None else [Range(key, gt=time)]


def before(key: str, time: int | None) -> list[Condition]:
    """Earlier than a time, None is any."""
    return [] if time is None else [Range(key, lt=time)]


def at_least(key: str, bound: float) -> list[Condition]:
    """At least a bound; 0 is none."""
    return [Range(key, gte=bound)] if bound > 0 else []


def at_most(key: str, bound: float | None) -> list[Condition]:
    """At most a bound, None is none."""
    return [] if bound is None else [Range(key, lte=bound)]


def equals(key: str, value: Scalar | None) -> list[Condition]:
    """Just a value, None is any."""
    return [] if value is None else [Equals(key, value)]


def all_conditions(filters: Filters) -> list[Condition]:
    """All that the filters ask for."""
    return [one for conditions in filters.values() for one in conditions]
