"""Learning events: successes, failures and feedback; stored once and never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lot_grpc.domain.outcomes import Outcome

USER_FEEDBACK = "user_feedback"
"""Event type of what users said."""


class TargetKind(StrEnum):
    """What feedback can refer to."""

    PATTERN = "pattern"
    EPISODE = "episode"
    ERROR_SOLUTION = "error_solution"
    DECISION = "decision"
    SELECTION = "selection"
    MEMORY = "memory"
    RETRIEVAL = "retrieval"


@dataclass(frozen=True, slots=True)
class FeedbackTarget:
    """The target of feedback."""

    kind: TargetKind
    id: str

    @property
    def key(self) -> str:
        """The key that filters compare: ``kind:id``."""
        return f"{self.kind}:{self.id}"


@dataclass(frozen=True, slots=True)
class LearningEventContent:
    """What callers give. Field by field as in ``lot.v1.LearningEvent``; empty means not given."""

    event_type: str
    task: str = ""
    outcome: Outcome | None = None
    text: str = ""
    reward: float | None = None
    target: FeedbackTarget | None = None
    agent_role: str = ""
    tags: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    event_time: int | None = None
    """Microseconds since 1970, by the caller's clock; None is the time of creation."""


@dataclass(frozen=True, slots=True)
class LearningEvent:
    """A stored learning event. ``create_time`` in microseconds since 1970."""

    namespace: str
    learning_event_id: str
    content: LearningEventContent
    create_time: int


@dataclass(frozen=True, slots=True)
class LearningEventFilter:
    """Narrows learning events; see ``lot.v1.LearningEventFilter``. Times are exclusive."""

    event_types: tuple[str, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    min_reward: float | None = None
    max_reward: float | None = None
    agent_roles: tuple[str, ...] = ()
    tags_any: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    target: FeedbackTarget | None = None
    created_after: int | None = None
    created_before: int | None = None
