"""Page tokens: where a list continues, bound to its request and to who made it.

A token is base64url of JSON [version, hash of the principal and of the request without its page,
position].
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from lot_grpc.domain.errors import PageTokenMismatchError
from lot_grpc.server.tokens import bound_hash, decode, encode, is_number, is_point
from lot_grpc.services.paging import Position

_VERSION = 1


def _request_key(request: Message) -> str:
    bare = type(request)()
    bare.CopyFrom(request)
    bare.ClearField("page_token")
    bare.ClearField("page_size")
    name = request.DESCRIPTOR.full_name
    return bound_hash(name.encode() + bare.SerializeToString(deterministic=True))


def _encode(request: Message, position: Any) -> str:
    return encode([_VERSION, _request_key(request), position])


def _decode(request: Message, token: str) -> Any:
    try:
        version, request_key, position = decode(token)
    except (ValueError, TypeError) as error:
        raise _damaged() from error
    if version != _VERSION or request_key != _request_key(request):
        raise PageTokenMismatchError(
            "page_token belongs to a list with other arguments, or of other credentials; repeat "
            "those, or start without one"
        )
    return position


def position_to_token(request: Message, position: Position | None) -> str:
    """The token of the next page; empty at the end."""
    if position is None:
        return ""
    return _encode(request, [position.sort_key, *position.seen])


def position_from_token(request: Message, token: str) -> Position | None:
    """Where to continue; None at the beginning. Raises PageTokenMismatchError."""
    if not token:
        return None
    position = _decode(request, token)
    match position:
        case [key, *seen] if is_number(key, 2**63) and all(map(is_point, seen)):
            return Position(key, tuple(seen))
    raise _damaged()


def number_to_token(request: Message, number: int | None) -> str:
    """The token of the next page of a numbered list; empty at the end."""
    return "" if number is None else _encode(request, number)


def number_from_token(request: Message, token: str) -> int | None:
    """The number after which to continue; None at first. Raises PageTokenMismatchError."""
    if not token:
        return None
    number: int = _decode(request, token)
    if not is_number(number, 2**63):
        raise _damaged()
    return number


def name_to_token(request: Message, name: str | None) -> str:
    """The token of the next page of a list by name; empty at the end."""
    return _encode(request, name) if name else ""


def name_from_token(request: Message, token: str) -> str:
    """The name after which to continue; empty at first. Raises PageTokenMismatchError."""
    if not token:
        return ""
    name = _decode(request, token)
    if not isinstance(name, str):
        raise _damaged()
    return name


def _damaged() -> PageTokenMismatchError:
    return PageTokenMismatchError("page_token is damaged; start the list again without one")
