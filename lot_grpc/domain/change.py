"""Changes of stored records, and cursors into the change feed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

DEFAULT_KEEP_SECONDS = 7 * 24 * 3600.0
"""How long a cursor is valid."""

DEFAULT_POLL_SECONDS = 0.5
"""How often a server polls a shared store for the changes of others."""


class ResourceKind(StrEnum):
    """A kind of record in a namespace. ``services.resources`` has their specs."""

    MEMORY = "memory"
    PATTERN = "pattern"
    OUTCOME = "outcome"
    EPISODE = "episode"
    EPISODE_EVENT = "episode_event"
    ERROR_SOLUTION = "error_solution"
    PREFERENCE = "preference"
    SESSION = "session"
    LEARNING_EVENT = "learning_event"
    DECISION = "decision"
    ACTION_VALUE = "action_value"
    POLICY = "policy"
    RETRIEVAL = "retrieval"


class ChangeType(StrEnum):
    """What happened."""

    STORED = "stored"
    UPDATED = "updated"
    DELETED = "deleted"
    CLEARED = "cleared"
    PATTERN_LEARNED = "pattern_learned"
    PATTERN_MATCHED = "pattern_matched"
    CONTEXT_SUGGESTED = "context_suggested"


Positions: TypeAlias = Mapping[str, int]
"""The number of the last change reported, by the process that wrote it. For a process not listed:
none of its changes."""


@dataclass(frozen=True, slots=True)
class ScanPosition:
    """How far a watch from the start has sent what existed.

    Within ``resource_kind``, newest first, after the sort key and the records of that key already
    sent; None: nothing of the kind yet.
    """

    resource_kind: str
    sort_key: int | None = None
    seen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cursor:
    """A position in the change feed.

    Attributes:
        time: the server's time when it was made, in microseconds.
        positions: the last changes reported.
        since: the reader's positions before the changes that it is in the middle of: what was
            stored after them is new to the reader, even if it has changed since. None: the same as
            ``positions``.
        scan: where a watch from the start continues, before the feed does. None: it is done.
    """

    time: int
    positions: Positions
    since: Positions | None = None
    scan: ScanPosition | None = None
