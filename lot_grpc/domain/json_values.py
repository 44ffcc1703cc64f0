"""Numbers in free-form JSON: doubles on the wire, whole ones as integers in the store and in text.

A ``google.protobuf.Struct`` or ``Value`` has doubles only. A double that is whole and fits into 64
bits is kept as the integer that it is, so that a payload, a filter and a text say ``8080``, not
``8080.0``; whatever else a double is (a fraction, ``-0.0``, 1e19 and beyond) stays as it is. No
value changes: 1e18 and 10**18 are one number. Whether a sender rounded an integer beyond 2**53 to
that double cannot be seen any more, which is why the clients refuse those.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

_INT64: Final = 2.0**63


def whole(number: float) -> float:
    """The number as an integer where it is whole and fits into 64 bits; else as it is."""
    if number.is_integer() and -_INT64 <= number < _INT64 and (number or _is_positive(number)):
        return int(number)
    return number


def _is_positive(zero: float) -> bool:
    return math.copysign(1.0, zero) > 0


def with_whole_numbers(value: Any) -> Any:
    """JSON in which each number is ``whole``; what earlier versions stored is not."""
    return _each_number(value, float, whole)


def as_doubles(value: Any) -> Any:
    """JSON in which each number is a double.

    What is hashed has this form, as it had before whole numbers were kept as such: the hashes of
    stored requests and contents stay good.
    """
    return _each_number(value, int, float)


def _each_number(value: Any, kind: type, convert: Any) -> Any:
    if type(value) is kind:
        return convert(value)
    if isinstance(value, Mapping):
        return {key: _each_number(inner, kind, convert) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_each_number(inner, kind, convert) for inner in value]
    return value


def json_text(value: Any, *, indent: int | None = None, compact: bool = False) -> str:
    """JSON as people write it, keys in order: ``8080``, ``0.1``, ``"é"``."""
    return json.dumps(
        with_whole_numbers(value),
        ensure_ascii=False,
        indent=indent,
        separators=(",", ": " if indent is not None else ":") if compact else None,
        sort_keys=True,
    )


def number_text(number: float) -> str:
    """A number as people write it, with all its digits: ``8080``, ``0.1``."""
    return str(whole(float(number)))
