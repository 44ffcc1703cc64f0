"""The origin of a record: of its writer, or of an editor."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from lot_grpc.domain.origin import Editor, Origin, require_settable
from lot_grpc.pb.lot.v1 import origin_pb2
from lot_grpc.server.codec.generic import Decoder

_FIELD = "origin"
_origin = Decoder(origin_pb2.Origin, Origin, path=_FIELD)


def check_origin(message: Any, resource_kind: str) -> None:
    """Refuse an origin of a new record that only the server sets. Raises OriginReservedError."""
    require_settable(_origin(message.origin), resource_kind)


def editor_of(message: Any, mask: FieldMask, paths: Collection[str]) -> tuple[Editor, set[str]]:
    """Who edits, and the ``paths`` of the update without those of the origin."""
    others = {path for path in paths if not _is_origin(path)}
    editor = Editor(
        _origin(message.origin) if message.HasField(_FIELD) or _named(mask) else None,
        named=_named(mask),
        alone=not others and len(paths) > 0,
    )
    return editor, others


def _named(mask: FieldMask) -> bool:
    return any(map(_is_origin, mask.paths))


def _is_origin(path: str) -> bool:
    return path.partition(".")[0] == _FIELD
