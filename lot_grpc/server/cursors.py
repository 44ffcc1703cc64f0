"""Cursors of the change feed and of exports, in the form that callers see.

A cursor of the feed is base64url of JSON [version, hash of principal and namespace, time,
positions, since, scan]; one of an export is that of [version, hash of principal and request,
namespace, kind, sort key, id, inner].
"""

from __future__ import annotations

import json
import re
from collections.abc import Container
from typing import Any

from lot_grpc.domain.change import Cursor, ScanPosition
from lot_grpc.domain.errors import RequestInvalidError, invalid
from lot_grpc.domain.transfer import ExportPosition
from lot_grpc.pb.lot.v1 import transfer_pb2
from lot_grpc.server.tokens import bound_hash, decode, encode, is_number, is_point
from lot_grpc.services.records.collections import SESSION_PARTS

_VERSION = 1
_WRITER = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MOST_WRITERS = 10_000
_NUMBER = re.compile(r"[0-9]{0,16}")
_SESSION_PART = re.compile(r"|v.*|w[0-9]{1,16}", re.DOTALL)

# --- the change feed ------------------------------------------------------------------------------


def feed_of(namespace: str) -> str:
    """A key that is equal for a caller's watches of one namespace."""
    return bound_hash(namespace.encode())


def cursor_to_token(feed_key: str, cursor: Cursor) -> str:
    """Encode a cursor as text."""
    scan = cursor.scan
    where = None if scan is None else [scan.resource_kind, scan.sort_key, *scan.seen]
    return encode([_VERSION, feed_key, cursor.time, cursor.positions, cursor.since, where])


def cursor_from_token(feed_key: str, token: str, watched: Container[str]) -> Cursor | None:
    """Decode a cursor; None for an empty text. Raises RequestInvalidError.

    ``watched`` are the kinds that can be watched.
    """
    if not token:
        return None
    try:
        parts = decode(token)
    except ValueError as error:
        raise _damaged() from error
    match parts:
        case [version, str(feed), time, positions, since, scan] if (
            version == _VERSION and is_number(time)
        ):
            if feed != feed_key:
                raise invalid(
                    "after_cursor",
                    "cursor.other_feed",
                    "after_cursor belongs to the feed of another namespace or of other "
                    "credentials; repeat those, or omit it",
                )
            stood = None if since is None else _positions(since)
            return Cursor(time, _positions(positions), stood, _scan(scan, watched))
    raise _damaged()


def _positions(value: Any) -> dict[str, int]:
    if not isinstance(value, dict) or not 0 < len(value) <= _MOST_WRITERS:
        raise _damaged()
    if not all(_WRITER.fullmatch(one) for one in value) or not all(map(is_number, value.values())):
        raise _damaged()
    return value


def _scan(value: Any, watched: Container[str]) -> ScanPosition | None:
    match value:
        case None:
            return None
        case [str(resource_kind), None] if resource_kind in watched:
            return ScanPosition(resource_kind)
        case [str(resource_kind), key, *seen] if resource_kind in watched and is_number(key):
            if len(seen) <= _MOST_WRITERS and all(map(is_point, seen)):
                return ScanPosition(resource_kind, key, tuple(seen))
    raise _damaged()


def _damaged() -> RequestInvalidError:
    return invalid(
        "after_cursor",
        "cursor.damaged",
        "after_cursor was not issued by this server; omit it, or watch with from_start",
    )


# --- exports --------------------------------------------------------------------------------------


def request_of(request: transfer_pb2.ExportRequest) -> str:
    """A key that is equal for requests that export the same."""
    requested = [
        "" if request.all_namespaces else request.namespace or "default",
        sorted(set(request.resource_kinds)),
        request.include_vectors,
        request.subject,
    ]
    return bound_hash(json.dumps(requested).encode())


def export_cursor(request_key: str, place: ExportPosition) -> str:
    """The cursor after a record."""
    where = (place.namespace, place.kind, place.sort_key, place.id, place.inner)
    return encode([_VERSION, request_key, *where])


def position_of(
    request_key: str, cursor: str, collections: Container[str]
) -> ExportPosition | None:
    """Where to continue; None for an empty cursor. Raises RequestInvalidError.

    ``collections`` are those that are exported.
    """
    if not cursor:
        return None
    try:
        parts = decode(cursor)
    except ValueError as error:
        raise _damaged_export() from error
    match parts:
        case [version, str(requested), str(namespace), str(kind), key, str(id), str(inner)]:
            if version != _VERSION or kind not in collections or not is_point(id):
                raise _damaged_export()
            if not is_number(key) or not _inner_of(kind).fullmatch(inner):
                raise _damaged_export()
            if requested != request_key:
                raise invalid(
                    "after_cursor",
                    "cursor.other_export",
                    "after_cursor belongs to an export with other arguments, or of other "
                    "credentials; repeat those (namespace, all_namespaces, resource_kinds, "
                    "include_vectors), or omit it",
                )
            return ExportPosition(namespace, kind, key, id, inner)
    raise _damaged_export()


def _inner_of(kind: str) -> re.Pattern[str]:
    """What names a part: the events of an episode, say, are numbered."""
    return _SESSION_PART if kind == SESSION_PARTS else _NUMBER


def _damaged_export() -> RequestInvalidError:
    return invalid(
        "after_cursor",
        "cursor.damaged",
        "after_cursor was not issued by an export; omit it to start from the beginning",
    )
