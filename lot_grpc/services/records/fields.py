"""Dataclass ⇄ payload, and filters as conditions."""

from __future__ import annotations

from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from operator import attrgetter
from types import MappingProxyType, NoneType
from typing import Any, Final, Generic, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from lot_grpc.ports import AnyOf, Condition, Equals, Payload, Range, Scalar

Filters: TypeAlias = dict[str, list[Condition]]
"""Conditions by the name of the request field that sets them."""


T = TypeVar("T")
_Convert: TypeAlias = Callable[[Any], Any]
_EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})


def plain(value: Any) -> Any:
    """A value in its JSON form."""
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    return value


class FieldCodec(Generic[T]):
    """A dataclass ⇄ the keys of a payload, by the types of its fields.

    Enums are stored as their values, tuples as lists, bytes as base64, dataclasses as objects by
    the same rules. Fields with their default value are omitted.
    """

    def __init__(
        self,
        cls: type[T],
        *,
        skip: Collection[str] = (),
        always: Collection[str] = (),
        sparse: bool = True,
        rename: Mapping[str, str] = _EMPTY,
        defaults: Mapping[str, Any] = _EMPTY,
        values: Mapping[str, FieldCodec[Any] | _Convert] = _EMPTY,
    ) -> None:
        """Takes a frozen dataclass.

        Args:
            cls: the dataclass.
            skip: fields that are not written, and that are passed when reading.
            always: fields that are written even if they have their default.
            sparse: False: all fields are always written, and must be present when reading.
            rename: the keys of fields that differ from the field's name.
            defaults: for fields without one in the dataclass.
            values: for fields with rules of their own: a codec for dataclasses or tuples of them,
                or a function that decodes the stored value.
        """
        self._cls = cls
        self._sparse = sparse
        self._writes: list[tuple[str, str, Any, _Convert | None]] = []
        self._reads: list[tuple[str, str, _Convert | None]] = []
        self._defaults = dict(defaults)
        hints = get_type_hints(cls)
        if unknown := {*skip, *always, *rename, *defaults, *values} - set(hints):
            raise TypeError(f"{cls.__name__} has no {', '.join(sorted(unknown))}")
        for field in fields(cls):  # type: ignore[arg-type]
            if field.name in skip:
                continue
            key = rename.get(field.name, field.name)
            default: Any = MISSING
            if sparse and field.name not in always:
                default = defaults.get(field.name, field.default)
                if field.default_factory is not MISSING:
                    default = field.default_factory()
            own = values.get(field.name)
            if isinstance(own, FieldCodec):
                write, read = _converters(hints[field.name], own)
            else:
                write, read = _converters(hints[field.name], None)
                read = own or read
            self._writes.append((field.name, key, default, write))
            self._reads.append((field.name, key, read))

    def write(self, value: T) -> Payload:
        """The keys of a value."""
        payload: Payload = {}
        for name, key, default, write in self._writes:
            given = getattr(value, name)
            if given != default:
                payload[key] = given if write is None or given is None else write(given)
        return payload

    def read(self, payload: Mapping[str, Any], **given: Any) -> T:
        """The value of a payload, with fields as ``given``.

        Raises KeyError, TypeError or ValueError for an invalid payload.
        """
        if self._defaults:
            given = self._defaults | given
        for name, key, read in self._reads:
            if key in payload:
                stored = payload[key]
                given[name] = stored if read is None or stored is None else read(stored)
            elif not self._sparse:
                raise KeyError(key)
        return self._cls(**given)


def _converters(
    hint: Any, inner: FieldCodec[Any] | None
) -> tuple[_Convert | None, _Convert | None]:
    """The encoder and decoder of a type; None: its values are stored as they are."""
    if NoneType in get_args(hint):
        [hint] = set(get_args(hint)) - {NoneType}
    if get_origin(hint) is tuple:
        write, read = _converters(get_args(hint)[0], inner)
        if read is None:
            return list, lambda values: tuple(values) if isinstance(values, list) else values
        return _each(write, list), _each(read, tuple)
    if get_origin(hint) is Mapping:
        write, read = _converters(get_args(hint)[1], inner)
        return (_each_value(write) if write else dict), (_each_value(read) if read else None)
    if is_dataclass(hint) and isinstance(hint, type):
        codec = inner or FieldCodec(hint)
        return codec.write, codec.read
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return attrgetter("value"), hint
    if hint is bytes:
        return lambda data: b64encode(data).decode(), a2b_base64
    return None, None


def _each(convert: Any, make: type) -> _Convert:
    return lambda values: make(convert(value) for value in values)


def _each_value(convert: _Convert) -> _Convert:
    return lambda values: {key: convert(value) for key, value in values.items()}


def label_pairs(labels: Mapping[str, str]) -> list[str]:
    """Labels as ``key=value``, since Qdrant reads a dot in a key as a path. Keys have no ``=``."""
    return sorted(f"{key}={value}" for key, value in labels.items())


def label_keys(labels: Mapping[str, str]) -> Payload:
    """The keys by which labels are filtered; none without labels."""
    return {"label_pairs": label_pairs(labels)} if labels else {}


def any_of(key: str, values: tuple[Any, ...]) -> list[Condition]:
    """Any of the given values; no condition if none are given."""
    return [AnyOf(key, tuple(plain(value) for value in values))] if values else []


def all_of(key: str, values: tuple[str, ...] | list[str]) -> list[Condition]:
    """Each of the given values."""
    return [Equals(key, value) for value in values]


def after(key: str, time: int | None) -> list[Condition]:
    """Later than a time; None: any."""
    return [] if time is None else [Range(key, gt=time)]


def before(key: str, time: int | None) -> list[Condition]:
    """Earlier than a time; None: any."""
    return [] if time is None else [Range(key, lt=time)]


def at_least(key: str, bound: float) -> list[Condition]:
    """At least a bound; 0: no bound."""
    return [Range(key, gte=bound)] if bound > 0 else []


def at_most(key: str, bound: float | None) -> list[Condition]:
    """At most a bound; None: no bound."""
    return [] if bound is None else [Range(key, lte=bound)]


def equals(key: str, value: Scalar | None) -> list[Condition]:
    """Exactly a value; None: any."""
    return [] if value is None else [Equals(key, value)]


def all_conditions(filters: Filters) -> list[Condition]:
    """The conditions of all filters together."""
    return [one for conditions in filters.values() for one in conditions]
