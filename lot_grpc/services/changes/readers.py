"""How the things that are watched are read from their records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from lot_grpc.domain.change import ResourceKind
from lot_grpc.ports import Record
from lot_grpc.services.episodes.episodes import Episodes
from lot_grpc.services.records.decisions import decision_from_record
from lot_grpc.services.records.error_solutions import error_solution_from_record
from lot_grpc.services.records.learning_events import learning_event_from_record
from lot_grpc.services.records.memories import memory_from_record
from lot_grpc.services.records.patterns import pattern_from_record
from lot_grpc.services.records.preferences import preference_from_record
from lot_grpc.services.records.sessions import session_from_record

Readers: TypeAlias = Mapping[ResourceKind, Callable[[Record], Awaitable[Any]]]
"""By kind: the thing of a record."""


def readers_of(episodes: Episodes) -> Readers:
    """The readers of all kinds; ``episodes`` counts the events of one that is running."""
    return {
        ResourceKind.MEMORY: _reading(memory_from_record),
        ResourceKind.PATTERN: _reading(pattern_from_record),
        ResourceKind.EPISODE: episodes.read,
        ResourceKind.ERROR_SOLUTION: _reading(error_solution_from_record),
        ResourceKind.PREFERENCE: _reading(preference_from_record),
        ResourceKind.LEARNING_EVENT: _reading(learning_event_from_record),
        ResourceKind.DECISION: _reading(decision_from_record),
        ResourceKind.SESSION: _reading(session_from_record),
    }


def _reading(read: Callable[[Record], Any]) -> Callable[[Record], Awaitable[Any]]:
    async def reading(record: Record) -> Any:
        return read(record)

    return reading
