"""What is moved of each collection, and how: the one place where a kind is entered.

Left out on purpose is what belongs to a store and not to what it knows: requests and tombstones (a
repeat is one of a call to that store), retrievals and selections (they lapse), trajectories (action
values have taken them in), leases, the stamps of the change feed, and everything by which half-done
work is recognised.
A record is exported as if all of that work were done, and imported so: what it counts is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.ids import point_id
from lot_grpc.kernel.create import SIGNATURE
from lot_grpc.ports import Payload, Record
from lot_grpc.services.records import cells, decisions, episodes, patterns, preferences, sessions
from lot_grpc.services.records.actions import UNSETTLED as UNSETTLED_STEPS
from lot_grpc.services.records.changes import STORED_BY, STORED_SEQ
from lot_grpc.services.records.collections import (
    ACTION_VALUES,
    CELLS,
    CHANGE_SEQ,
    DECISIONS,
    EPISODES,
    ERROR_SOLUTIONS,
    EVENTS,
    FEEDBACK,
    LEARNING_EVENTS,
    MEMORIES,
    OUTCOMES,
    PATTERNS,
    POLICIES,
    PREFERENCE_REVISIONS,
    PREFERENCES,
    SESSION_PARTS,
    SESSIONS,
    SORT_KEY,
    WRITER_ID,
)
from lot_grpc.services.records.error_solutions import error_solution_point
from lot_grpc.services.records.feedback import feedback_from_record
from lot_grpc.services.records.learning_events import learning_event_point
from lot_grpc.services.records.memories import memory_point
from lot_grpc.services.records.outcomes import SETTLED, outcome_from_record
from lot_grpc.services.records.policies import policy_point

Place: TypeAlias = tuple[str, str]
"""A collection and where in it."""

_STAMPS = frozenset({WRITER_ID, CHANGE_SEQ, STORED_BY, STORED_SEQ, SIGNATURE})


@dataclass(frozen=True, slots=True)
class Kind:
    """What lies in one collection.

    Attributes:
        kind: with which it is exported.
        collection: where it lies.
        id_key: what names it to a caller.
        point: where in the collection a payload of a namespace lies.
        is_thing: it is a thing of the kind, and counts as one; else it hangs on one.
        dropped: keys that stay behind.
        done: what keys say once the work is done, where a record has them.
        parent: what it hangs on, None for what stands by itself.
        birth: the parent's sort key as the payload knows it; None: it must be looked up.
        half_done: whether a record says nothing yet that is worth moving.
    """

    resource_kind: ResourceKind
    collection: str
    id_key: str
    point: Callable[[str, Payload], str]
    is_thing: bool = True
    dropped: frozenset[str] = frozenset()
    done: Mapping[str, Any] = field(default_factory=dict)
    parent: Callable[[str, Payload], Place] | None = None
    birth: Callable[[Payload], int] | None = None
    half_done: Callable[[Payload], bool] = lambda payload: False

    def as_done(self, payload: Payload) -> Payload:
        """A payload as it is moved and compared."""
        moved = {
            key: value
            for key, value in payload.items()
            if key not in _STAMPS and key not in self.dropped
        }
        moved.update({key: value for key, value in self.done.items() if key in payload})
        if episodes.ACTIVE_TIME in moved:  # it was active since; who looks finds out
            moved[episodes.ACTIVE_TIME] = moved["create_time"]
        return moved


def _by(
    id_key: str, point: Callable[[str, str], str], collection: str = ""
) -> Callable[[str, Payload], Any]:
    """Where the thing of the id in a payload lies; with the collection if that is named."""
    if collection:
        return lambda namespace, payload: (collection, point(namespace, payload[id_key]))
    return lambda namespace, payload: point(namespace, payload[id_key])


def _outcome_parent(namespace: str, payload: Payload) -> Place:
    if "error_solution_id" in payload:
        return ERROR_SOLUTIONS, error_solution_point(namespace, payload["error_solution_id"])
    return PATTERNS, patterns.pattern_point(namespace, payload["pattern_id"])


def _revision_point(namespace: str, payload: Payload) -> str:
    parts = (payload["key"], str(payload[SORT_KEY]), str(payload[preferences.REVISION]))
    return point_id(namespace, "preference_revision", *parts)


def _part_point(namespace: str, payload: Payload) -> str:
    session_id, generation = payload["session_id"], str(payload[sessions.GENERATION])
    if payload[sessions.PART] == sessions.VALUE:
        return point_id(namespace, "session_value", session_id, generation, payload["key"])
    sequence = str(payload[sessions.SEQUENCE])
    return point_id(namespace, "session_message", session_id, generation, sequence)


def _action_value_point(namespace: str, payload: Payload) -> str:
    return point_id(namespace, "action_value", payload["state"], payload["action"])


def _event_point(namespace: str, payload: Payload) -> str:
    return episodes.event_point(namespace, payload["episode_id"], payload["sequence"])


_PATTERN_OF = _by("pattern_id", patterns.pattern_point, PATTERNS)

KINDS: Final[tuple[Kind, ...]] = (
    Kind(
        ResourceKind.PATTERN,
        PATTERNS,
        "pattern_id",
        _by("pattern_id", patterns.pattern_point),
        dropped=frozenset({patterns.UNSETTLED_FEEDBACK}),
        done={patterns.UNSETTLED: []},
    ),
    Kind(
        ResourceKind.PATTERN,
        FEEDBACK,
        "feedback_id",
        lambda namespace, payload: feedback_from_record(Record("", namespace, payload)).fact.point,
        is_thing=False,
        parent=_PATTERN_OF,
        half_done=lambda payload: not payload[SETTLED],
    ),
    Kind(
        ResourceKind.PATTERN,
        CELLS,
        "query",
        lambda namespace, payload: cells.cell_point(
            namespace, payload["pattern_id"], payload["query"]
        ),
        is_thing=False,
        dropped=frozenset({cells.TAKEN_IN}),
        done={cells.UNSETTLED: []},
        parent=_PATTERN_OF,
        half_done=lambda payload: bool(payload.get(cells.MERGING)),
    ),
    Kind(
        ResourceKind.ERROR_SOLUTION,
        ERROR_SOLUTIONS,
        "error_solution_id",
        _by("error_solution_id", error_solution_point),
        done={patterns.UNSETTLED: []},
    ),
    Kind(
        ResourceKind.OUTCOME,
        OUTCOMES,
        "outcome_id",
        lambda namespace, payload: outcome_from_record(Record("", namespace, payload)).point,
        done={SETTLED: True},
        parent=_outcome_parent,
    ),
    Kind(ResourceKind.MEMORY, MEMORIES, "memory_id", _by("memory_id", memory_point)),
    Kind(
        ResourceKind.EPISODE,
        EPISODES,
        "episode_id",
        _by("episode_id", episodes.episode_point),
        dropped=frozenset({episodes.WRITER_UNTIL, episodes.ABANDONING, episodes.UNSETTLED_REUSES}),
        done={episodes.REUSE: episodes.DONE},
    ),
    Kind(
        ResourceKind.EPISODE_EVENT,
        EVENTS,
        "sequence",
        _event_point,
        parent=_by("episode_id", episodes.episode_point, EPISODES),
    ),
    Kind(
        ResourceKind.PREFERENCE,
        PREFERENCES,
        "key",
        _by("key", preferences.preference_point),
        dropped=frozenset({preferences.UNSETTLED_REQUESTS, preferences.CREATED_BY}),
        done={preferences.UNSETTLED: []},
    ),
    Kind(
        ResourceKind.PREFERENCE,
        PREFERENCE_REVISIONS,
        preferences.REVISION,
        _revision_point,
        is_thing=False,
        parent=_by("key", preferences.preference_point, PREFERENCES),
        birth=lambda payload: payload[SORT_KEY],
    ),
    Kind(
        ResourceKind.SESSION,
        SESSIONS,
        "session_id",
        _by("session_id", sessions.session_point),
        done={sessions.UNSETTLED: {}, sessions.FORMER: []},
    ),
    Kind(
        ResourceKind.SESSION,
        SESSION_PARTS,
        sessions.PART,
        _part_point,
        is_thing=False,
        parent=_by("session_id", sessions.session_point, SESSIONS),
        birth=lambda payload: payload[sessions.GENERATION],
    ),
    Kind(
        ResourceKind.LEARNING_EVENT,
        LEARNING_EVENTS,
        "learning_event_id",
        _by("learning_event_id", learning_event_point),
        done={SETTLED: True},
    ),
    Kind(
        ResourceKind.DECISION,
        DECISIONS,
        "decision_id",
        _by("decision_id", decisions.decision_point),
        done={decisions.UNSETTLED: []},
    ),
    Kind(
        ResourceKind.ACTION_VALUE,
        ACTION_VALUES,
        "action",
        _action_value_point,
        done={UNSETTLED_STEPS: {}},
    ),
    Kind(ResourceKind.POLICY, POLICIES, "", lambda namespace, payload: policy_point(namespace)),
)
"""In the order of an export: what hangs on a thing comes behind it, and policies come last, so that
no bound of theirs deletes what is still on its way."""

BY_COLLECTION: Final[Mapping[str, Kind]] = {kind.collection: kind for kind in KINDS}


@dataclass(frozen=True, slots=True)
class Row:
    """A record on the move.

    ``birth``: the sort key of what it hangs on, which tells that from another thing that takes its
    id; 0 for what stands by itself. ``claimed``: it is the one pattern of its content, which saves
    of that content meet.
    """

    kind: Kind
    record: Record
    birth: int = 0
    claimed: bool = False
