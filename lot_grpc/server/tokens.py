"""The format of tokens and cursors: base64url of JSON. They are positions, not credentials.

What binds one to its caller guards against mix-ups, not against forgery: a forged one is a position
in what its caller may read anyway.
"""

from __future__ import annotations

import binascii
import hashlib
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from lot_grpc.work import current_caller

_POINT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def encode(parts: Any) -> str:
    """JSON as a token."""
    text = json.dumps(parts, separators=(",", ":"))
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode(token: str) -> Any:
    """The JSON of a token. Raises ValueError."""
    try:
        return json.loads(urlsafe_b64decode((token + "=" * (-len(token) % 4)).encode("ascii")))
    except (binascii.Error, RecursionError) as error:
        raise ValueError(str(error)) from error


def bound_hash(data: bytes) -> str:
    """A hash that distinguishes a request of one caller from another one, and from another's."""
    owner = current_caller().principal.id
    return hashlib.sha256(f"{len(owner)} {owner}".encode() + data).hexdigest()[:16]


def is_number(value: Any, below: int = 2**53) -> bool:
    """Whether it is a non-negative integer below a bound."""
    return type(value) is int and 0 <= value < below


def is_point(value: Any) -> bool:
    """Whether it has the form of a record's id: the store must not see anything else."""
    return isinstance(value, str) and _POINT.fullmatch(value) is not None
