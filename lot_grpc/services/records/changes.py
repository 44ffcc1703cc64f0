"""What the change feed reads of every watched record: who wrote it last, and when.

A stamp is written in the same write as the change it stands for, so that none is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lot_grpc.domain.ids import point_id
from lot_grpc.ports import Payload
from lot_grpc.services.records.collections import CHANGE_SEQ, WRITER_ID

STORED_BY, STORED_SEQ = "stored_by", "stored_seq"
"""The stamp of the write that made the record; it stays through edits."""

STAMP_KEYS = frozenset({WRITER_ID, CHANGE_SEQ, STORED_BY, STORED_SEQ})

GENERATION = "generation"
"""On the mark of a cleared namespace: the number of the clear. No tombstone has it."""


def clear_mark_point(namespace: str, resource_kind: str | None) -> str:
    """The point id of the mark that a kind was cleared (None: everything)."""
    return point_id(namespace, "cleared", resource_kind or "")


def clear_mark(resource_kind: str | None, generation: int, time: int) -> Payload:
    """The payload of the mark, which is stored among the tombstones."""
    return {
        "resource_kind": resource_kind or "",
        "id": "",
        GENERATION: generation,
        "delete_time": time,
        "done": True,
    }


def stamp(replica: str, seq: int) -> dict[str, Any]:
    """The keys of a stamp."""
    return {WRITER_ID: replica, CHANGE_SEQ: seq}


def first_stamp(replica: str, seq: int) -> dict[str, Any]:
    """The keys of the stamp of a new record."""
    return {WRITER_ID: replica, CHANGE_SEQ: seq, STORED_BY: replica, STORED_SEQ: seq}


def stored_stamp(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The keys to preserve; none in a record that an older version wrote."""
    return {key: payload[key] for key in (STORED_BY, STORED_SEQ) if key in payload}
