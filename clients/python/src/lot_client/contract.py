"""Checks messages against the rules of the contract that a client can verify before it sends.

The rules are those that the contract itself carries (`buf.validate`), and those that hold for every
text, number and `Struct`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import cache
from typing import Any
from unicodedata import normalize

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct, Value

from lot_client.pb.buf.validate import validate_pb2
from lot_client.pb.lot.v1.episode_pb2 import EpisodeEvent

MAX_DATA_BYTES = 256 * 1024
MAX_DATA_DEPTH = 16
YEAR_9999_END = 253_402_300_800
"""Seconds since 1970, behind the last instant."""


def check_event(event: EpisodeEvent) -> None:
    """Reject what the server would reject, which would end the stream of all events.

    Raises:
        ValueError: names the violated rule.
    """
    if not event.event_type:
        raise ValueError("event_type must not be empty")
    if not 0 <= event.event_time.seconds < YEAR_9999_END:
        raise ValueError("event_time must be from 1970 to the end of the year 9999")
    if (size := event.data.ByteSize()) > MAX_DATA_BYTES:
        raise ValueError(f"data must be at most {MAX_DATA_BYTES:,} bytes, is {size:,}")
    check(event)


def check(message: Message, within: str = "") -> None:
    """Reject set fields that violate a rule. The server checks rules across fields.

    Raises:
        ValueError: names the violated rule.
    """
    for field, value in message.ListFields():
        where = within + field.name
        rules = _rules_of(field)
        if isinstance(value, Message | str | bytes | float | int):
            _check_value(where, value, rules)
        elif hasattr(value, "items"):
            _check_count(where, value, rules.map.max_pairs)
            if _has_twice(value):
                raise ValueError(f"{where} must not have the same key twice")
            for key in value:
                _check_value(f"{where} key", key, rules.map.keys)
                _check_value(f"{where}[{key!r}]", value[key], rules.map.values)
        else:
            _check_count(where, value, rules.repeated.max_items)
            if rules.repeated.unique and _has_twice(value):
                raise ValueError(f"{where} must not have duplicate items")
            for index, item in enumerate(value):
                _check_value(f"{where}[{index}]", item, rules.repeated.items)


def _has_twice(items: Iterable[Any]) -> bool:
    """Whether two are the same, texts in whatever Unicode form."""
    one_form = [normalize("NFC", item) if isinstance(item, str) else item for item in items]
    return len(set(one_form)) < len(one_form)


@cache
def _rules_of(field: FieldDescriptor) -> Any:
    options: Any = field.GetOptions()
    extensions: Any = validate_pb2
    return options.Extensions[extensions.field]


def _check_count(where: str, items: Any, most: int) -> None:
    if most and len(items) > most:
        raise ValueError(f"{where} must have at most {most:,} items, has {len(items):,}")


def _check_value(where: str, value: Any, rules: Any) -> None:
    if isinstance(value, str):
        _check_text(where, value, rules.string)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{where} must be a finite number, neither NaN nor infinity")
        bounds = rules.double
        low = bounds.gte if bounds.HasField("gte") else -math.inf
        high = bounds.lte if bounds.HasField("lte") else math.inf
        if not low <= value <= high:
            raise ValueError(f"{where} must be from {low:g} to {high:g}, is {value:g}")
    elif isinstance(value, Struct):
        _check_struct(where, value, 1)
    elif isinstance(value, Message):
        check(value, f"{where}.")


def _check_text(where: str, text: str, rules: Any) -> None:
    if "\0" in text:
        raise ValueError(f"{where} must not contain NUL (U+0000)")
    if len(text) < rules.min_len:
        raise ValueError(f"{where} must not be empty")
    if rules.max_bytes and len(text) * 4 > rules.max_bytes < len(text.encode()):
        raise ValueError(f"{where} must be at most {rules.max_bytes:,} bytes")
    if rules.pattern and not re.search(rules.pattern.removesuffix("$") + r"\Z", text):
        raise ValueError(f"{where} must match {rules.pattern}, {text!r} does not")


def _check_struct(where: str, struct: Struct, depth: int) -> None:
    for key, value in struct.fields.items():
        if "\0" in key:
            raise ValueError(f"{where} must not contain NUL (U+0000)")
        _check_json(where, value, depth)


def _check_json(where: str, value: Value, depth: int) -> None:
    kind = value.WhichOneof("kind")
    if kind == "number_value" and not math.isfinite(value.number_value):
        raise ValueError(f"{where} must contain neither NaN nor infinity")
    if kind == "string_value" and "\0" in value.string_value:
        raise ValueError(f"{where} must not contain NUL (U+0000)")
    if kind in {"struct_value", "list_value"} and depth >= MAX_DATA_DEPTH:
        raise ValueError(f"{where} must be nested at most {MAX_DATA_DEPTH} deep")
    if kind == "struct_value":
        _check_struct(where, value.struct_value, depth + 1)
    elif kind == "list_value":
        for item in value.list_value.values:
            _check_json(where, item, depth + 1)
