"""JSON in Python and in protobuf: `Struct` and `Value`, whose numbers are doubles.

A value that would not come back unchanged is rejected, with its path.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from operator import index
from typing import Any

from google.protobuf.struct_pb2 import ListValue, Struct, Value

MAX_WHOLE = 2**53 - 1
"""Doubles represent every integer from its negative up to it exactly."""
MAX_DEPTH = 16
"""Maximum nesting of Structs and lists in the contract."""

_NUL = "must not contain NUL (U+0000)"
_SURROGATE = (
    "holds a lone surrogate, which UTF-8 does not have; decode it with errors='backslashreplace'"
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_INSTEAD = {
    "bytes": "encode it as text, for example with base64",
    "bytearray": "encode it as text, for example with base64",
    "date": "use its isoformat()",
    "datetime": "use its isoformat()",
    "Decimal": "use str(), or float() if it may be rounded",
    "set": "use a sorted list",
    "frozenset": "use a sorted list",
}


def to_struct(value: Mapping[str, Any], path: str = "") -> Struct:
    """A `Struct` of a JSON dict: str, bool, None, numbers, lists, tuples and dicts.

    Integers of other libraries (`numpy.int64`) count as int; a tuple comes back as a list.

    Args:
        value: the dict.
        path: its name in errors.

    Raises:
        TypeError: a value is not JSON: bytes, datetime, Decimal, set, a key that is not a str.
        ValueError: NaN or infinity; an int beyond ±(2**53 - 1), which a double would round; a text
            with NUL or a lone surrogate; more than 16 levels.
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"{path or 'the value'} must be a dict, not {value!r}")
    made = Struct()
    try:
        _fill_struct(made, value, 1)
    except _RefusedError as refused:
        raise refused.named(path) from None
    return made


def to_value(value: Any, path: str = "") -> Value:
    """A `Value` of any JSON; None is null. Raises the same errors as `to_struct`."""
    made = Value()
    try:
        _fill(made, value, 0)
    except _RefusedError as refused:
        raise refused.named(path) from None
    return made


def to_dict(struct: Struct) -> dict[str, Any]:
    """The dict of a `Struct`; whole numbers are int up to ±(2**53 - 1), float beyond."""
    return {key: from_value(value) for key, value in struct.fields.items()}


def from_value(value: Value) -> Any:
    """What a `Value` holds; whole numbers are int up to ±(2**53 - 1), float beyond."""
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return to_dict(value.struct_value)
    if kind == "list_value":
        return [from_value(item) for item in value.list_value.values]
    if kind == "number_value":
        number = value.number_value
        negative_zero = not number and math.copysign(1.0, number) < 0
        exact = number.is_integer() and abs(number) <= MAX_WHOLE and not negative_zero
        return int(number) if exact else number
    return None if kind in (None, "null_value") else getattr(value, kind)


def require_exact(value: Any, path: str) -> Any:
    """The double of a number. Raises ValueError for an int that it would round."""
    if isinstance(value, int) and abs(value) > MAX_WHOLE:
        raise ValueError(f"{path} {_rounded(value)}")
    return value


class _RefusedError(Exception):
    """What is wrong with a value; its path is added while unwinding, last step first."""

    def __init__(self, kind: type[Exception], text: str) -> None:
        super().__init__(text)
        self.steps: list[str | int] = []
        self._kind, self._text = kind, text

    def named(self, path: str) -> Exception:
        """The error with the path as the server writes it, `metadata.ids[1]["odd key"]`."""
        for step in reversed(self.steps):
            if isinstance(step, str) and _NAME.fullmatch(step):
                path += f".{step}" if path else step
            else:
                path += f"[{json.dumps(step)}]"
        return self._kind(f"{path or 'the value'} {self._text}")


def _fill_struct(made: Struct, value: Mapping[str, Any], depth: int) -> None:
    _require_depth(depth)
    for key, inner in value.items():
        if not isinstance(key, str):
            raise _RefusedError(TypeError, f"has the key {key!r}; keys must be str")
        try:
            _fill(_field(made, key), inner, depth)
        except _RefusedError as refused:
            refused.steps.append(key)
            raise


def _field(made: Struct, key: str) -> Value:
    if "\0" in key:
        raise _RefusedError(ValueError, _NUL)
    try:
        return made.fields[key]
    except UnicodeEncodeError:
        raise _RefusedError(ValueError, _SURROGATE) from None


def _fill(made: Value, value: Any, depth: int) -> None:
    """Set ``made``, which lies in ``depth`` Structs and lists."""
    if isinstance(value, str):
        if "\0" in value:
            raise _RefusedError(ValueError, _NUL)
        try:
            made.string_value = value
        except UnicodeEncodeError:
            raise _RefusedError(ValueError, _SURROGATE) from None
    elif isinstance(value, bool):
        made.bool_value = value
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise _RefusedError(ValueError, f"is {value}; it must be neither NaN nor infinity")
        made.number_value = value
    elif isinstance(value, int):
        made.number_value = _exact(value)
    elif value is None:
        made.null_value = 0  # type: ignore[assignment]
    elif isinstance(value, list | tuple | ListValue):
        _fill_list(made.list_value, value, depth + 1)
    elif isinstance(value, Mapping):
        made.struct_value.SetInParent()
        _fill_struct(made.struct_value, value, depth + 1)
    else:
        made.number_value = _exact(_whole(value))


def _fill_list(made: ListValue, value: Iterable[Any], depth: int) -> None:
    _require_depth(depth)
    made.SetInParent()
    for number, inner in enumerate(value):
        try:
            _fill(made.values.add(), inner, depth)
        except _RefusedError as refused:
            refused.steps.append(number)
            raise


def _whole(value: Any) -> int:
    try:
        return index(value)
    except TypeError:
        kind = type(value).__name__
        plain = "use its tolist()" if hasattr(value, "tolist") else "convert it first"
        text = f"is of type {kind}, which is not JSON; {_INSTEAD.get(kind, plain)}"
        raise _RefusedError(TypeError, text) from None


def _exact(number: int) -> int:
    if abs(number) > MAX_WHOLE:
        raise _RefusedError(ValueError, _rounded(number))
    return number


def _rounded(number: int) -> str:
    return (
        f"is {number}, beyond ±(2**53 - 1), where a double rounds whole numbers; pass it as a str, "
        "or as a float if it may be rounded"
    )


def _require_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _RefusedError(ValueError, f"must be nested at most {MAX_DEPTH} deep")
