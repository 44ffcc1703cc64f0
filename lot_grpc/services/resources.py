"""The list of all kinds of record. A new kind is added here and nowhere else in the services."""

from __future__ import annotations

from typing import Final

from lot_grpc.services.episodes.spec import EPISODE, EPISODE_EVENT
from lot_grpc.services.errors.spec import ERROR_SOLUTION
from lot_grpc.services.learning.spec import ACTION_VALUE, DECISION, LEARNING_EVENT
from lot_grpc.services.memories.spec import MEMORY
from lot_grpc.services.outcomes.spec import OUTCOME
from lot_grpc.services.patterns.spec import PATTERN
from lot_grpc.services.preferences.spec import PREFERENCE
from lot_grpc.services.registry import Registry
from lot_grpc.services.resource_spec import ResourceSpec
from lot_grpc.services.retention.spec import POLICY
from lot_grpc.services.retrievals.spec import RETRIEVAL
from lot_grpc.services.sessions.spec import SESSION

RESOURCES: Final[tuple[ResourceSpec, ...]] = (
    MEMORY,
    PATTERN,
    OUTCOME,
    EPISODE,
    EPISODE_EVENT,
    ERROR_SOLUTION,
    PREFERENCE,
    SESSION,
    LEARNING_EVENT,
    DECISION,
    ACTION_VALUE,
    POLICY,
    RETRIEVAL,
)
"""In the order of the contract's ``ResourceKind``, which is that of a watch from the start."""

REGISTRY: Final = Registry(RESOURCES)
"""The registry that a server uses."""
