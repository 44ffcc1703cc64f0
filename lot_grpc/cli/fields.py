"""Human-readable fields of the contract's messages, from their descriptors."""

from __future__ import annotations

from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

from lot_grpc.cli.texts import data_text
from lot_grpc.cli.times import local_time
from lot_grpc.cli.words import enum_word
from lot_grpc.domain.json_values import number_text
from lot_grpc.domain.spans import span

_LABELS = {
    "create_time": "created",
    "update_time": "updated",
    "expire_time": "expires",
    "start_time": "started",
    "end_time": "ended",
    "event_count": "events",
    "reused_count": "reused",
}
_ON_ONE_LINE = {"tags", "tools", "tools_used"}
"""Lists of short words, shown on one line."""


def field_label(message: Message, name: str) -> str:
    """The label of a field: ``source episodes`` for ``source_episode_ids``."""
    if name == f"{message.DESCRIPTOR.name.lower()}_id":
        return "id"
    if name.endswith("_ids"):
        name = f"{name.removesuffix('_ids')}s"
    return _LABELS.get(name, name.replace("_", " "))


def field_text(message: Message, name: str, form: str = "") -> str:
    """The value of a field; empty if it is not set. Not cleaned.

    Args:
        message: The message.
        name: The field's name; a nested field's name follows a dot.
        form: The format of a number, as in ``format``.
    """
    if "." in name:
        parent, name = name.split(".", 1)
        return field_text(getattr(message, parent), name, form)
    field = message.DESCRIPTOR.fields_by_name[name]
    value = getattr(message, name)
    if form:
        unset = field.has_presence and not message.HasField(name)
        return "" if unset else format(value, form)
    if field.is_repeated:
        if field.message_type and field.message_type.GetOptions().map_entry:
            inner = field.message_type.fields_by_name["value"]
            return "\n".join(f"{key}={_text(inner, value[key])}" for key in sorted(value))
        between = ", " if name in _ON_ONE_LINE else "\n"
        return between.join(_text(field, one) for one in value)
    if field.has_presence:
        return _text(field, value) if message.HasField(name) else ""
    is_count = isinstance(value, int) and not isinstance(value, bool) and not field.enum_type
    return _text(field, value) if value or is_count else ""


def _text(field: Any, value: Any) -> str:
    match value:
        case Timestamp():
            return local_time(value)
        case Duration():
            return span(value.ToTimedelta().total_seconds())
        case Struct() | Value():
            return data_text(value)
        case bool():
            return "yes" if value else "no"
        case int():
            return enum_word(field.enum_type, value) if field.enum_type else f"{value:,}"
        case float():
            return number_text(value)
        case _:
            return str(value)
