"""Page tokens: where a list goes on, bound to the question that it answers.

A token is base64url of JSON {version, hash of the request without its page, position}. It says
where, never who may.
"""

from __future__ import annotations

import binascii
import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from google.protobuf.message import Message

from lot_grpc.domain.errors import PageTokenMismatchError
from lot_grpc.services.paging import Position

_VERSION = 1


def _question(request: Message) -> str:
    bare = type(request)()
    bare.CopyFrom(request)
    bare.ClearField("page_token")
    bare.ClearField("page_size")
    name = request.DESCRIPTOR.full_name.encode()
    return hashlib.sha256(name + bare.SerializeToString(deterministic=True)).hexdigest()[:16]


def _encode(request: Message, position: Any) -> str:
    text = json.dumps([_VERSION, _question(request), position], separators=(",", ":"))
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decode(request: Message, token: str) -> Any:
    try:
        padded = token + "=" * (-len(token) % 4)
        version, question, position = json.loads(urlsafe_b64decode(padded.encode("ascii")))
    except (binascii.Error, ValueError, TypeError, RecursionError) as error:
        raise PageTokenMismatchError(
            "page_token is damaged; start the list again without one"
        ) from error
    if version != _VERSION or question != _question(request):
        raise PageTokenMismatchError(
            "page_token belongs to a list with other arguments; repeat them, or start without one"
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
        case [int(key), *seen] if all(isinstance(point, str) for point in seen):
            return Position(key, tuple(seen))
    raise PageTokenMismatchError("page_token is damaged; start the list again without one")


def number_to_token(request: Message, number: int | None) -> str:
    """The token of the next page of a numbered list; empty at the end."""
    return "" if number is None else _encode(request, number)


def number_from_token(request: Message, token: str) -> int | None:
    """The number to go on behind; None at the beginning. Raises PageTokenMismatchError."""
    if not token:
        return None
    number = _decode(request, token)
    if not isinstance(number, int):
        raise PageTokenMismatchError("page_token is damaged; start the list again without one")
    return number
