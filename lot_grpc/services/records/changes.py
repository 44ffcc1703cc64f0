"""What the feed of changes reads of every watched record: who wrote it last, and when.

A stamp is written in the same write as the change it stands for, so that none is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.ids import point_id
from lot_grpc.ports import Payload
from lot_grpc.services.records.collections import (
    CHANGE_SEQ,
    DECISIONS,
    EPISODES,
    ERROR_SOLUTIONS,
    LEARNING_EVENTS,
    MEMORIES,
    PATTERNS,
    PREFERENCES,
    SESSIONS,
    TOMBSTONES,
    WRITER_ID,
)
from lot_grpc.services.records.decisions import decision_point
from lot_grpc.services.records.episodes import (
    ABANDONING,
    ACTIVE_TIME,
    EXTRACTED_PATTERNS,
    EXTRACTED_SOLUTIONS,
    EXTRACTION,
    REUSE,
    WRITER_BASE,
    WRITER_BASE_EPOCH,
    WRITER_EPOCH,
    WRITER_UNTIL,
    episode_point,
)
from lot_grpc.services.records.error_solutions import error_solution_point
from lot_grpc.services.records.learning_events import SETTLED, learning_event_point
from lot_grpc.services.records.memories import memory_point
from lot_grpc.services.records.patterns import pattern_point
from lot_grpc.services.records.preferences import preference_point
from lot_grpc.services.records.sessions import FORMER, session_point

STORED_BY, STORED_SEQ = "stored_by", "stored_seq"
"""The stamp of the write that made the record; it stays through edits."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A kind that is watched, and where its things lie.

    ``quiet`` keys are bookkeeping: a write of nothing else is no change.
    """

    resource_kind: ResourceKind
    collection: str
    id_key: str
    point: Callable[[str, str], str]
    quiet: frozenset[str] = frozenset()


_EPISODE_KEYS = (
    ABANDONING,
    ACTIVE_TIME,
    REUSE,
    EXTRACTION,
    EXTRACTED_PATTERNS,
    EXTRACTED_SOLUTIONS,
    WRITER_BASE,
    WRITER_BASE_EPOCH,
    WRITER_EPOCH,
    WRITER_UNTIL,
)

WATCHED: Mapping[ResourceKind, Watched] = {
    one.resource_kind: one
    for one in (
        Watched(ResourceKind.MEMORY, MEMORIES, "memory_id", memory_point),
        Watched(ResourceKind.PATTERN, PATTERNS, "pattern_id", pattern_point),
        Watched(
            ResourceKind.EPISODE, EPISODES, "episode_id", episode_point, frozenset(_EPISODE_KEYS)
        ),
        Watched(
            ResourceKind.ERROR_SOLUTION, ERROR_SOLUTIONS, "error_solution_id", error_solution_point
        ),
        Watched(ResourceKind.PREFERENCE, PREFERENCES, "key", preference_point),
        Watched(ResourceKind.SESSION, SESSIONS, "session_id", session_point, frozenset({FORMER})),
        Watched(
            ResourceKind.LEARNING_EVENT,
            LEARNING_EVENTS,
            "learning_event_id",
            learning_event_point,
            frozenset({SETTLED}),
        ),
        Watched(ResourceKind.DECISION, DECISIONS, "decision_id", decision_point),
    )
}
"""In the order in which a watch from the start tells them."""

BY_COLLECTION: Mapping[str, Watched] = {one.collection: one for one in WATCHED.values()}

TRACKED = frozenset({*BY_COLLECTION, TOMBSTONES})
"""The collections whose records carry a stamp."""


GENERATION = "generation"
"""Of a mark that a namespace was cleared: which of its clears that was. No tombstone has it."""


def clear_mark_point(namespace: str, resource_kind: ResourceKind | None) -> str:
    """Where the mark lies that a kind was cleared, None: everything."""
    return point_id(namespace, "cleared", resource_kind or "")


def clear_mark(resource_kind: ResourceKind | None, generation: int, time: int) -> Payload:
    """The mark, as it lies among the tombstones."""
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
    """The keys that stay; none in a record that an older version wrote."""
    return {key: payload[key] for key in (STORED_BY, STORED_SEQ) if key in payload}
