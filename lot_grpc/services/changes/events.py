"""The request of a watch, and the events it yields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lot_grpc.domain.change import ChangeType, Cursor


@dataclass(frozen=True, slots=True)
class PatternMatch:
    """A pattern that was found for a query."""

    pattern_id: str
    query: str
    similarity: float
    retrieval_id: str


@dataclass(frozen=True, slots=True)
class ContextSuggestion:
    """A context that was given for a task."""

    task: str
    pattern_ids: tuple[str, ...]
    episode_ids: tuple[str, ...]
    retrieval_id: str


@dataclass(frozen=True, slots=True)
class ChangeEvent:
    """A change as sent. ``thing`` is the current record; None for a delete, or if not requested.

    ``resource_kind`` None and ``id`` empty: everything was cleared, or a context of several kinds
    was suggested. ``cursor`` None: it is live only.
    """

    namespace: str
    type: ChangeType
    resource_kind: str | None
    id: str
    change_time: int
    thing: Any
    cursor: Cursor | None


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Changes (none in a heartbeat) and the cursor after the last of them."""

    changes: list[ChangeEvent]
    cursor: Cursor


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """What to watch. ``resource_kinds`` and ``types`` empty: all.

    ``cursor`` None: from now on, or from the start.

    ``heartbeat``: seconds without news after which news without changes is given.
    """

    namespace: str
    resource_kinds: tuple[str, ...] = ()
    types: frozenset[ChangeType] = frozenset()
    cursor: Cursor | None = None
    from_start: bool = False
    payload: bool = True
    heartbeat: float = 15.0

    def wants(self, kind: ChangeType) -> bool:
        """Whether changes of this type are requested."""
        return not self.types or kind in self.types
