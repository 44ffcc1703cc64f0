"""Cursors of the feed of changes, as callers keep them.

A cursor is base64url of JSON [version, time, positions, since, scan]. It says where, never who may.
"""

from __future__ import annotations

import binascii
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Container
from typing import Any

from lot_grpc.domain.change import Cursor, ScanPosition
from lot_grpc.domain.errors import RequestInvalidError, invalid

_VERSION = 1
_WRITER = re.compile(r"[A-Za-z0-9_-]{1,64}")
_POINT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MOST_WRITERS = 10_000


def cursor_to_token(cursor: Cursor) -> str:
    """The cursor as a text."""
    scan = cursor.scan
    where = None if scan is None else [scan.resource_kind, scan.sort_key, *scan.seen]
    parts = [_VERSION, cursor.time, cursor.positions, cursor.since, where]
    return urlsafe_b64encode(json.dumps(parts, separators=(",", ":")).encode()).decode().rstrip("=")


def cursor_from_token(token: str, watched: Container[str]) -> Cursor | None:
    """The cursor of a text; None for an empty one. Raises RequestInvalidError.

    ``watched`` are the kinds that can be watched.
    """
    if not token:
        return None
    try:
        padded = token + "=" * (-len(token) % 4)
        parts = json.loads(urlsafe_b64decode(padded.encode("ascii")))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise _damaged() from error
    match parts:
        case [version, time, positions, since, scan] if version == _VERSION and _is_number(time):
            stood = None if since is None else _positions(since)
            return Cursor(time, _positions(positions), stood, _scan(scan, watched))
    raise _damaged()


def _positions(value: Any) -> dict[str, int]:
    if not isinstance(value, dict) or not 0 < len(value) <= _MOST_WRITERS:
        raise _damaged()
    if not all(_WRITER.fullmatch(one) for one in value) or not all(map(_is_number, value.values())):
        raise _damaged()
    return value


def _scan(value: Any, watched: Container[str]) -> ScanPosition | None:
    match value:
        case None:
            return None
        case [str(resource_kind), None] if resource_kind in watched:
            return ScanPosition(resource_kind)
        case [str(resource_kind), key, *seen] if resource_kind in watched and _is_number(key):
            if len(seen) <= _MOST_WRITERS and all(map(_is_point, seen)):
                return ScanPosition(resource_kind, key, tuple(seen))
    raise _damaged()


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**53


def _is_point(value: Any) -> bool:
    return isinstance(value, str) and _POINT.fullmatch(value) is not None


def _damaged() -> RequestInvalidError:
    return invalid(
        "after_cursor",
        "cursor.damaged",
        "after_cursor was not issued by this server; omit it, or watch with from_start",
    )
