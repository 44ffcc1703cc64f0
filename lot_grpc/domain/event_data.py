"""The data of an event, read key by key.

An event carries the bytes of a ``google.protobuf.Struct`` of up to 256 KiB, of which learning needs
a few short keys. So the bytes are walked, and everything else is skipped unread. The
encoding is that of protobuf (protobuf.dev, "Encoding"): a Struct is a map, field 1, of entries with
the key in field 1 and a Value in field 2; a Value has null, number, string, bool, Struct or list in
fields 1 to 6.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from typing import Any

from lot_grpc.domain.json_values import whole

_NO_STRUCT = "the data is not a valid google.protobuf.Struct"
_VARINT, _DOUBLE, _BYTES, _FLOAT = 0, 1, 2, 5
_NULL, _NUMBER, _STRING, _BOOL, _STRUCT, _LIST = 1, 2, 3, 4, 5, 6


def read_data(data: bytes, keys: Collection[str]) -> dict[str, Any]:
    """The values of the named top-level keys that are there, as JSON.

    Raises ValueError for bytes that are no Struct.
    """
    found: dict[str, Any] = {}
    try:
        for key, value in _entries(memoryview(data)):
            if key in keys:
                found[key] = _value(value)
    except (IndexError, TypeError, struct.error, UnicodeDecodeError) as error:
        raise ValueError(_NO_STRUCT) from error
    return found


def _entries(data: memoryview) -> Iterator[tuple[str, memoryview]]:
    for number, entry in _fields(data):
        if number != 1 or not isinstance(entry, memoryview):
            continue
        key, value = "", memoryview(b"")
        for part, content in _fields(entry):
            if part == 1 and isinstance(content, memoryview):
                key = bytes(content).decode()
            elif part == 2 and isinstance(content, memoryview):
                value = content
        yield key, value


def _value(data: memoryview) -> Any:
    value: Any = None
    for number, content in _fields(data):
        if number == _NULL:
            value = None
        elif number == _NUMBER:
            value = whole(struct.unpack("<d", content)[0])  # type: ignore[arg-type]
        elif number == _BOOL:
            value = bool(content)
        elif not isinstance(content, memoryview):
            raise ValueError(_NO_STRUCT)
        elif number == _STRING:
            value = bytes(content).decode()
        elif number == _STRUCT:
            value = {key: _value(inner) for key, inner in _entries(content)}
        elif number == _LIST:
            value = [_value(item) for part, item in _fields(content) if part == 1]  # type: ignore[arg-type]
    return value


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    at = 0
    while at < len(data):
        tag = data[at]
        at += 1
        if tag > 127:  # no field of ours has a number that takes more than a byte
            raise ValueError(_NO_STRUCT)
        wire = tag & 7
        if wire == _VARINT:
            content, at = _varint(data, at)
            yield tag >> 3, content
            continue
        if wire == _BYTES:
            size = data[at]
            at += 1
            if size > 127:
                size, at = _varint(data, at - 1)
        elif wire == _DOUBLE:
            size = 8
        elif wire == _FLOAT:
            size = 4
        else:
            raise ValueError(_NO_STRUCT)
        if at + size > len(data):
            raise IndexError(at)
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 64, 7):
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
    raise ValueError(_NO_STRUCT)
