"""The encoder of each kind of record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from google.protobuf.message import Message

from lot_grpc.domain.change import ResourceKind
from lot_grpc.server.codec.admin import policy_to_pb
from lot_grpc.server.codec.episodes import episode_to_pb, event_to_pb
from lot_grpc.server.codec.error_solutions import error_solution_to_pb
from lot_grpc.server.codec.learning import action_value_to_pb, decision_to_pb, learning_event_to_pb
from lot_grpc.server.codec.memories import memory_to_pb
from lot_grpc.server.codec.outcomes import outcome_entry_to_pb
from lot_grpc.server.codec.patterns import pattern_to_pb
from lot_grpc.server.codec.retrievals import retrieval_to_pb
from lot_grpc.server.codec.sessions import preference_to_pb, session_to_pb
from lot_grpc.services.outcomes.outcome_log import LoggedOutcome

TO_PB: Final[Mapping[str, Callable[[Any], Message]]] = {
    ResourceKind.MEMORY: memory_to_pb,
    ResourceKind.PATTERN: pattern_to_pb,
    ResourceKind.OUTCOME: lambda recorded: outcome_entry_to_pb(LoggedOutcome(recorded, "")),
    ResourceKind.EPISODE: episode_to_pb,
    ResourceKind.EPISODE_EVENT: event_to_pb,
    ResourceKind.ERROR_SOLUTION: error_solution_to_pb,
    ResourceKind.PREFERENCE: preference_to_pb,
    ResourceKind.SESSION: session_to_pb,
    ResourceKind.LEARNING_EVENT: learning_event_to_pb,
    ResourceKind.DECISION: decision_to_pb,
    ResourceKind.ACTION_VALUE: action_value_to_pb,
    ResourceKind.POLICY: policy_to_pb,
    ResourceKind.RETRIEVAL: retrieval_to_pb,
}
"""By kind: the encoder of a resource as ``ResourceSpec.read`` returns it. In changes and exports,
its field has the name of the kind."""
