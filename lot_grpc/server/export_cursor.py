"""Cursors of exports: behind which record an export goes on, bound to what it exports.

A cursor is base64url of JSON [version, hash of the request, namespace, kind, sort key, id, inner].
It says where, never who may.
"""

from __future__ import annotations

import binascii
import hashlib
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Container

from lot_grpc.domain.errors import RequestInvalidError, invalid
from lot_grpc.domain.transfer import ExportPosition
from lot_grpc.pb.lot.v1 import transfer_pb2 as pb

_VERSION = 1
_POINT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def request_of(request: pb.ExportRequest) -> str:
    """The same for requests that export the same."""
    requested = [
        "" if request.all_namespaces else request.namespace or "default",
        sorted(set(request.resource_kinds)),
        request.include_vectors,
    ]
    return hashlib.sha256(json.dumps(requested).encode()).hexdigest()[:16]


def export_cursor(request_key: str, place: ExportPosition) -> str:
    """The cursor behind a record."""
    parts = [
        _VERSION,
        request_key,
        place.namespace,
        place.kind,
        place.sort_key,
        place.id,
        place.inner,
    ]
    return urlsafe_b64encode(json.dumps(parts, separators=(",", ":")).encode()).decode().rstrip("=")


def position_of(
    request_key: str, cursor: str, collections: Container[str]
) -> ExportPosition | None:
    """Where to go on; None for an empty cursor. Raises RequestInvalidError.

    ``collections`` are those that are exported.
    """
    if not cursor:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        parts = json.loads(urlsafe_b64decode(padded.encode("ascii")))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise _damaged() from error
    match parts:
        case [version, str(requested), str(namespace), str(kind), key, str(id), str(inner)]:
            if version != _VERSION or kind not in collections or not _POINT.fullmatch(id):
                raise _damaged()
            if type(key) is not int or not 0 <= key < 2**53 or not _is_inner(kind, inner):
                raise _damaged()
            if requested != request_key:
                raise invalid(
                    "after_cursor",
                    "cursor.other_export",
                    "after_cursor belongs to an export with other arguments; repeat those "
                    "(namespace, all_namespaces, resource_kinds, include_vectors), or omit it",
                )
            return ExportPosition(namespace, kind, key, id, inner)
    raise _damaged()


def _is_inner(kind: str, inner: str) -> bool:
    """Whether a name within a thing can be one: events and messages are numbered."""
    if inner == "" or inner.startswith("v"):
        return True
    return inner.removeprefix("w").isdecimal() and len(inner) < 17


def _damaged() -> RequestInvalidError:
    return invalid(
        "after_cursor",
        "cursor.damaged",
        "after_cursor was not issued by an export; omit it to start from the beginning",
    )
