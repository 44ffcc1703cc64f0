"""Builds protobuf messages from plain Python values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.struct_pb2 import Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

from lot_client.values import require_exact, to_struct, to_value

M = TypeVar("M", bound=Message)

_DOUBLE = FieldDescriptor.CPPTYPE_DOUBLE


def build(kind: type[M], fields: Mapping[str, Any]) -> M:
    """A message of ``kind``; fields that are None stay unset.

    Accepts what protobuf accepts, and dicts for messages, JSON for `Struct`s and `Value`s, names
    without their prefix for enum values (`"SUCCESS"`), aware datetimes for timestamps, timedeltas
    or seconds for durations.

    Raises:
        TypeError: the message has no such field, or a value has the wrong type for its field.
        ValueError: an unknown enum value, a datetime without time zone, or a number that a double
            would round. For JSON see `to_struct`.
    """
    known = kind.DESCRIPTOR.fields_by_name
    converted = {}
    for name, value in fields.items():
        if name not in known:
            raise TypeError(f"{kind.DESCRIPTOR.name} has no field {name!r}")
        if value is not None:
            converted[name] = _field_value(known[name], value)
    try:
        return kind(**converted)
    except (TypeError, ValueError):
        _name_the_culprit(kind, converted)
        raise


def _name_the_culprit(kind: type[Message], fields: Mapping[str, Any]) -> None:
    """Raise again with the name of the field, which protobuf does not always say."""
    for name, value in fields.items():
        try:
            kind(**{name: value})
        except (TypeError, ValueError) as error:
            again = TypeError if isinstance(error, TypeError) else ValueError
            raise again(f"{kind.DESCRIPTOR.name}.{name} cannot be {value!r}") from error


def _field_value(field: Any, value: Any) -> Any:
    if not field.is_repeated:
        return _value(field, value)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        inner = field.message_type.fields_by_name["value"]
        return {
            key: _value(inner, one, f"{field.name}[{key!r}]") for key, one in dict(value).items()
        }
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"{field.name} must be a list, not {value!r}")
    return [_value(field, item) for item in value]


def _value(field: Any, value: Any, path: str = "") -> Any:
    if field.enum_type is not None:
        return _enum_value(field.enum_type, value)
    if field.message_type is None:
        return require_exact(value, path or field.name) if field.cpp_type == _DOUBLE else value
    kind: Any = GetMessageClass(field.message_type)
    if isinstance(value, kind):
        return value
    if kind is Struct:
        return to_struct(value, field.name)
    if kind is Value:
        return to_value(value, path or field.name)
    if kind is Timestamp:
        return timestamp(value)
    if kind is Duration:
        return duration(value)
    if kind is FieldMask:
        return FieldMask(paths=list(value))
    if isinstance(value, Mapping):
        return build(kind, value)
    raise TypeError(f"{field.name} must be a dict or {field.message_type.name}, not {value!r}")


def _enum_value(enum: EnumDescriptor, value: Any) -> Any:
    """``value``, or the number of the name, with or without the prefix, in any case."""
    if not isinstance(value, str):
        return value
    prefix = enum.values[0].name.removesuffix("UNSPECIFIED")
    name = value.upper()
    found = enum.values_by_name.get(prefix + name) or enum.values_by_name.get(name)
    if found is None:
        known = ", ".join(each.name.removeprefix(prefix) for each in enum.values[1:])
        raise ValueError(f"{value!r} is not a {enum.name}; use one of {known}")
    return found.number


def timestamp(value: datetime) -> Timestamp:
    """A point in time.

    Raises:
        ValueError: the datetime has no time zone.
    """
    if value.tzinfo is None:
        raise ValueError(f"{value!r} has no time zone; use for example datetime.now(UTC)")
    made = Timestamp()
    made.FromDatetime(value)
    return made


def duration(value: timedelta | float) -> Duration:
    """A span of time; numbers are seconds."""
    made = Duration()
    if isinstance(value, timedelta):
        made.FromTimedelta(value)
    else:
        made.FromNanoseconds(round(value * 1e9))
    return made
