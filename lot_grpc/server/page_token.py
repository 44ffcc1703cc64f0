"""Page tokens: where a list goes on, bound to the question that it answers.

A token is base64url of JSON {version, hash of the request without its page, position}. It says
where, never who may.
"""

from __future__ import annotations

import binascii
import hashlib
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from google.protobuf.message import Message

from lot_grpc.domain.errors import PageTokenMismatchError
from lot_grpc.services.paging import Position

_VERSION = 1
_POINT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Ids of records: whoever makes up a token must not reach the store with anything else."""


def _request_key(request: Message) -> str:
    bare = type(request)()
    bare.CopyFrom(request)
    bare.ClearField("page_token")
    bare.ClearField("page_size")
    name = request.DESCRIPTOR.full_name.encode()
    return hashlib.sha256(name + bare.SerializeToString(deterministic=True)).hexdigest()[:16]


def _encode(request: Message, position: Any) -> str:
    text = json.dumps([_VERSION, _request_key(request), position], separators=(",", ":"))
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decode(request: Message, token: str) -> Any:
    try:
        padded = token + "=" * (-len(token) % 4)
        version, request_key, position = json.loads(urlsafe_b64decode(padded.encode("ascii")))
    except (binascii.Error, ValueError, TypeError, RecursionError) as error:
        raise _damaged() from error
    if version != _VERSION or request_key != _request_key(request):
        raise PageTokenMismatchError(
            "page_token belongs to a list with other arguments; repeat those, or start without one"
        )
    return position


def position_to_token(request: Message, position: Position | None) -> str:
    """The token of the next page; empty at the end."""
    if position is None:
        return ""
    return _encode(request, [position.sort_key, *position.seen])


def position_from_token(request: Message, token: str) -> Position | None:
    """Where to go on; None at the beginning. Raises PageTokenMismatchError."""
    if not token:
        return None
    position = _decode(request, token)
    match position:
        case [key, *seen] if _is_number(key) and all(map(_is_point, seen)):
            return Position(key, tuple(seen))
    raise _damaged()


def number_to_token(request: Message, number: int | None) -> str:
    """The token of the next page of a numbered list; empty at the end."""
    return "" if number is None else _encode(request, number)


def number_from_token(request: Message, token: str) -> int | None:
    """The number to go on behind; None at the beginning. Raises PageTokenMismatchError."""
    if not token:
        return None
    number: int = _decode(request, token)
    if not _is_number(number):
        raise _damaged()
    return number


def name_to_token(request: Message, name: str) -> str:
    """The token of the next page of a list by name; empty at the end."""
    return _encode(request, name) if name else ""


def name_from_token(request: Message, token: str) -> str:
    """The name to go on behind; empty at the beginning. Raises PageTokenMismatchError."""
    if not token:
        return ""
    name = _decode(request, token)
    if not isinstance(name, str):
        raise _damaged()
    return name


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_point(value: Any) -> bool:
    return isinstance(value, str) and _POINT.fullmatch(value) is not None


def _damaged() -> PageTokenMismatchError:
    return PageTokenMismatchError("page_token is damaged; start the list again without one")
