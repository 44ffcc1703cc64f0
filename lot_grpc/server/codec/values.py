"""Times, durations, enums and JSON between proto and domain.

Instants are microseconds since 1970 in the domain; finer fractions are truncated. Years 1970 to
9999.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, Generic, TypeVar

from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import invalid
from lot_grpc.domain.json_values import whole
from lot_grpc.pb.lot.v1 import resource_kind_pb2
from lot_grpc.server.masks import updated_paths

_EXPIRY = frozenset({"expiration", "expire_time", "ttl"})
_MICROS = 1_000_000
_YEAR_9999_END = 253_402_300_800
MAX_STRUCT_BYTES = 256 * 1024
"""Limit on each of metadata, arguments, event data and stored values, serialized."""

MAX_LIST_BYTES = 3 * 2**19
"""Limit on all actions of a pattern, or all steps of an error solution, serialized. It keeps every
record below 3.2 MiB, so that clients with the default limit of 4 MiB can read it."""

_LONGEST_DURATION = 315_576_000_000
"""Seconds in 10,000 years, the contract's own bound of a Duration."""

E = TypeVar("E", bound=StrEnum)


def time_to_pb(micros: int) -> Timestamp:
    """An instant."""
    seconds, rest = divmod(micros, _MICROS)
    return Timestamp(seconds=seconds, nanos=rest * 1000)


def micros_of_time(value: Timestamp, path: str) -> int:
    """An instant. Raises RequestInvalidError for a year outside 1970 to 9999."""
    if not 0 <= value.seconds < _YEAR_9999_END or not 0 <= value.nanos < 1_000_000_000:
        raise invalid(
            path,
            "timestamp.range",
            "must be a time from 1970-01-01T00:00:00Z to the end of the year 9999",
        )
    return value.seconds * _MICROS + value.nanos // 1000


def duration_to_pb(seconds: float) -> Duration:
    """A duration, to the nanosecond."""
    whole, nanos = divmod(round(seconds * 1e9), 10**9)
    return Duration(seconds=whole, nanos=nanos)


def micros_to_duration(micros: int) -> Duration:
    """A duration from microseconds."""
    return duration_to_pb(micros / _MICROS)


def seconds_of_duration(value: Duration, path: str) -> float:
    """A duration in seconds. Raises RequestInvalidError for more than 10,000 years."""
    if abs(value.seconds) > _LONGEST_DURATION:
        raise invalid(path, "duration.range", "must be at most 10,000 years")
    return float(value.seconds + value.nanos / 1e9)


def micros_of_duration(value: Duration, path: str) -> int:
    """A time to live in microseconds, at least one."""
    if value.seconds > _YEAR_9999_END // 2:
        raise invalid(path, "duration.range", "must be at most 4,000 years")
    return max(1, value.seconds * _MICROS + value.nanos // 1000)


def ttl_of(message: Message, path: str = "") -> int | None:
    """The time to live in a message's ``ttl``, in microseconds; None if absent."""
    if not message.HasField("ttl"):
        return None
    ttl: Duration = getattr(message, "ttl")  # noqa: B009 - not every message has it
    return micros_of_duration(ttl, f"{path}.ttl" if path else "ttl")


def edited_fields(
    message: Message, mask: FieldMask, output_only: Iterable[str], path: str
) -> tuple[frozenset[str], int | None]:
    """The fields of a content that an update sets, and its time to live, if any."""
    paths = updated_paths(message, mask, output_only)
    if not paths & _EXPIRY:
        return frozenset(paths), None
    return frozenset(paths - _EXPIRY | {"expire_time"}), ttl_of(message, path)


class EnumCodec(Generic[E]):
    """Proto enum ⇄ domain enum, by name: ``PREFIX_NAME`` ⇄ ``NAME``; PREFIX_UNSPECIFIED is None."""

    def __init__(self, descriptor: EnumDescriptor, cls: type[E]) -> None:
        """Raises TypeError if a member exists on one side only."""
        prefix = descriptor.values_by_number[0].name.removesuffix("UNSPECIFIED")
        by_name = {one.name.removeprefix(prefix): one.number for one in descriptor.values}
        del by_name["UNSPECIFIED"]
        if different := by_name.keys() ^ cls.__members__.keys():
            raise TypeError(f"{cls.__name__} and {descriptor.name}: {', '.join(different)}")
        self.numbers: Mapping[E, Any] = {member: by_name[member.name] for member in cls}
        self.members = {number: member for member, number in self.numbers.items()}

    def to_pb(self, member: E | None) -> Any:
        """The number; None is 0."""
        return 0 if member is None else self.numbers[member]

    def from_pb(self, number: int) -> E | None:
        """The member; None for 0. Unknown numbers were refused by validation."""
        return self.members.get(number)

    def all_from_pb(self, numbers: Any) -> tuple[E, ...]:
        """The members of a repeated field."""
        return tuple(self.members[number] for number in numbers)


RESOURCE_KIND = EnumCodec(resource_kind_pb2.ResourceKind.DESCRIPTOR, ResourceKind)


def resource_kind_to_pb(kind: str | None) -> Any:
    """The number of a kind of record; None and empty are UNSPECIFIED."""
    return RESOURCE_KIND.to_pb(ResourceKind(kind) if kind else None)


def check_size(given: Struct | Value, path: str) -> None:
    """Refuse a Struct or a Value that is too large."""
    if (size := given.ByteSize()) > MAX_STRUCT_BYTES:
        kind = given.DESCRIPTOR.name.lower()
        raise invalid(
            path,
            f"{kind}.max_bytes",
            f"must be at most {MAX_STRUCT_BYTES:,} bytes serialized, is {size:,}",
        )


def check_list_size(items: Iterable[Message | str], path: str) -> None:
    """Refuse a list that would make its record too large for clients."""
    size = sum(one.ByteSize() if isinstance(one, Message) else len(one.encode()) for one in items)
    if size > MAX_LIST_BYTES:
        raise invalid(
            path,
            "repeated.max_bytes",
            f"must be at most {MAX_LIST_BYTES:,} bytes in total, got {size:,}; shorten them",
        )


def check_value(value: Value, path: str) -> None:
    """Refuse a Value without a kind (not even null), or one that is too large."""
    if value.WhichOneof("kind") is None:
        raise invalid(path, "value.kind", "must be a JSON value; for null, set null_value")
    check_size(value, path)


def value_from_pb(value: Value, path: str) -> Any:
    """A Value as JSON, whole numbers as integers. Raises if it is too large or has no kind."""
    check_value(value, path)
    return _value_to_json(value)


def value_from_json(value: Any) -> Value:
    """A JSON value as a Value."""
    return struct_from_json({"value": value}).fields["value"]


def struct_from_pb(struct: Struct, path: str) -> dict[str, Any]:
    """A Struct as JSON, whole numbers as integers. Raises for one that is too large."""
    check_size(struct, path)
    return struct_to_json(struct)


def struct_to_json(struct: Struct) -> dict[str, Any]:
    """A Struct as JSON, whole numbers as integers."""
    return {key: _value_to_json(value) for key, value in struct.fields.items()}


_READERS: dict[str, Callable[[Value], Any]] = {
    "null_value": lambda _: None,
    "number_value": lambda value: whole(value.number_value),
    "string_value": lambda value: value.string_value,
    "bool_value": lambda value: value.bool_value,
    "struct_value": lambda value: struct_to_json(value.struct_value),
    "list_value": lambda value: [_value_to_json(item) for item in value.list_value.values],
}


def _value_to_json(value: Value) -> Any:
    kind = value.WhichOneof("kind")
    return None if kind is None else _READERS[kind](value)


def struct_from_json(values: Mapping[str, Any]) -> Struct:
    """JSON values as a Struct."""
    struct = Struct()
    struct.update(values)
    return struct
