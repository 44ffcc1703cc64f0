"""What an export says of a record: the message of the thing that it is, or is a part of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

from google.protobuf.message import Message

from lot_grpc.pb.lot.v1 import preference_pb2, session_pb2
from lot_grpc.pb.lot.v1 import transfer_pb2 as pb
from lot_grpc.ports import Record
from lot_grpc.server.codec.admin import policy_to_pb
from lot_grpc.server.codec.episodes import episode_to_pb, event_to_pb
from lot_grpc.server.codec.error_solutions import error_solution_to_pb
from lot_grpc.server.codec.learning import (
    action_value_to_pb,
    decision_to_pb,
    learning_event_to_pb,
)
from lot_grpc.server.codec.memories import memory_to_pb
from lot_grpc.server.codec.outcomes import outcome_entry_to_pb
from lot_grpc.server.codec.patterns import pattern_to_pb
from lot_grpc.server.codec.sessions import (
    add_value,
    message_to_pb,
    preference_to_pb,
    revision_to_pb,
    session_to_pb,
)
from lot_grpc.services.outcomes.outcome_log import LoggedOutcome
from lot_grpc.services.records import (
    actions,
    cells,
    collections,
    decisions,
    episodes,
    error_solutions,
    feedback,
    learning_events,
    memories,
    outcomes,
    patterns,
    policies,
    preferences,
    sessions,
)

T = TypeVar("T")
_Thing: TypeAlias = Callable[[Record], Message | None]


def _event(record: Record) -> Message:
    event = event_to_pb(episodes.event_from_record(record))
    return pb.ExportedEpisodeEvent(episode_id=record.payload["episode_id"], event=event)


def _outcome(record: Record) -> Message:
    return outcome_entry_to_pb(LoggedOutcome(outcomes.outcome_from_record(record), ""))


def _preference(record: Record) -> Message:
    preference = preference_to_pb(preferences.preference_from_record(record))
    return pb.ExportedPreference(preference=preference)


def _revision(record: Record) -> Message:
    key = preference_pb2.Preference(key=record.payload["key"])
    return pb.ExportedPreference(
        preference=key, history=[revision_to_pb(preferences.revision_from_record(record))]
    )


def _session(record: Record) -> Message:
    """With the message that its row holds, the latest one."""
    message = session_to_pb(sessions.session_from_record(record))
    if latest := record.payload[sessions.LATEST]:
        message.messages.append(message_to_pb(sessions.message_from_payload(latest)))
    return message


def _part(record: Record) -> Message:
    payload = record.payload
    message = session_pb2.Session(session_id=payload["session_id"], namespace=record.namespace)
    if payload[sessions.PART] == sessions.VALUE:
        add_value(message, payload["key"], sessions.value_from_record(record))
    else:
        message.messages.append(message_to_pb(sessions.message_from_payload(payload)))
    return message


def _feedback(record: Record) -> None:
    """No message stands for it; it is read all the same, which tells whether it is whole."""
    feedback.feedback_from_record(record)


def _cell(record: Record) -> None:
    cells.cell_from_payload(record.payload)


def _whole(read: Callable[[Record], T], to_pb: Callable[[T], Message]) -> _Thing:
    return lambda record: to_pb(read(record))


THINGS: Mapping[str, tuple[str, _Thing]] = {
    collections.PATTERNS: ("pattern", _whole(patterns.pattern_from_record, pattern_to_pb)),
    collections.FEEDBACK: ("", _feedback),
    collections.CELLS: ("", _cell),
    collections.ERROR_SOLUTIONS: (
        "error_solution",
        _whole(error_solutions.error_solution_from_record, error_solution_to_pb),
    ),
    collections.OUTCOMES: ("outcome", _outcome),
    collections.MEMORIES: ("memory", _whole(memories.memory_from_record, memory_to_pb)),
    collections.EPISODES: ("episode", _whole(episodes.episode_from_record, episode_to_pb)),
    collections.EVENTS: ("episode_event", _event),
    collections.PREFERENCES: ("preference", _preference),
    collections.PREFERENCE_REVISIONS: ("preference", _revision),
    collections.SESSIONS: ("session", _session),
    collections.SESSION_PARTS: ("session", _part),
    collections.LEARNING_EVENTS: (
        "learning_event",
        _whole(learning_events.learning_event_from_record, learning_event_to_pb),
    ),
    collections.DECISIONS: ("decision", _whole(decisions.decision_from_record, decision_to_pb)),
    collections.ACTION_VALUES: (
        "action_value",
        _whole(actions.action_value_from_record, action_value_to_pb),
    ),
    collections.POLICIES: ("policy", _whole(policies.policy_from_record, policy_to_pb)),
}
"""By collection: the field of an exported record that shows its thing, and how. One for each kind.
"""
