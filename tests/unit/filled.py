"""Messages in which every field says something, found by walking their descriptors."""

from __future__ import annotations

from typing import Any, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

M = TypeVar("M", bound=Message)

_TEXT = FieldDescriptor.TYPE_STRING
_WHOLE = (FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_INT32)


def _scalar(field: Any, n: int) -> Any:
    if field.type == _TEXT:
        return f"{field.name}-{n}"
    if field.type == FieldDescriptor.TYPE_ENUM:
        return field.enum_type.values[1 + n % (len(field.enum_type.values) - 1)].number
    if field.type == FieldDescriptor.TYPE_BOOL:
        return True
    if field.type == FieldDescriptor.TYPE_DOUBLE:
        return 0.25 + n / 100
    if field.type in _WHOLE:
        return 7 + n
    raise AssertionError(f"no value known for {field.full_name}")


def _fill_message(message: Any, n: int) -> None:
    match message.DESCRIPTOR.full_name:
        case "google.protobuf.Struct":
            message.update({"key": [1.0, None, True, {"a": "b"}], "n": float(n)})
        case "google.protobuf.Timestamp" | "google.protobuf.Duration":
            message.seconds, message.nanos = 1_000 + n, 500_000_000
        case _:
            for field in message.DESCRIPTOR.fields:
                if field.containing_oneof is None or field is field.containing_oneof.fields[0]:
                    set_field(message, field.name, n)


def set_field(message: Message, name: str, n: int = 0) -> None:
    """Give one field a value that is not its default; repeated ones get two."""
    field: Any = message.DESCRIPTOR.fields_by_name[name]
    target: Any = getattr(message, name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        value = field.message_type.fields_by_name["value"]
        target["key"] = _scalar(value, n)
        target["other"] = _scalar(value, n + 1)
    elif field.message_type is not None and field.is_repeated:
        _fill_message(target.add(), n)
        _fill_message(target.add(), n + 1)
    elif field.message_type is not None:
        _fill_message(target, n)
    elif field.is_repeated:
        target.extend([_scalar(field, n), _scalar(field, n + 1)])
    else:
        setattr(message, name, _scalar(field, n))


def filled(cls: type[M], **oneofs: str) -> M:
    """A message with all fields set; ``oneofs`` names the member to set, else the first."""
    message = cls()
    fields: list[Any] = list(cls.DESCRIPTOR.fields)
    for number, field in enumerate(fields):
        oneof = field.containing_oneof
        if oneof is None or field.name == oneofs.get(oneof.name, oneof.fields[0].name):
            set_field(message, field.name, number)
    return message


def names(cls: type[Message]) -> list[str]:
    """The names of all fields."""
    return [field.name for field in cls.DESCRIPTOR.fields]
