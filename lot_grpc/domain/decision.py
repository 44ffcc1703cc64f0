"""Decisions: what an agent chose, why, and with which outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lot_grpc.domain.ids import etag_of
from lot_grpc.domain.outcomes import Outcome


@dataclass(frozen=True, slots=True)
class DecisionOption:
    """An option of a decision; ``score`` None: the agent gave none."""

    name: str
    description: str = ""
    score: float | None = None


@dataclass(frozen=True, slots=True)
class DecisionContent:
    """What callers give. Field by field as in ``lot.v1.Decision``; empty means not given."""

    context: str
    chosen_option: str
    agent_role: str = ""
    options: tuple[DecisionOption, ...] = ()
    reasoning: str = ""
    confidence: float | None = None
    episode_id: str = ""
    task_id: str = ""
    category: str = ""
    tags: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    decision_time: int | None = None
    """Microseconds since 1970, by the caller's clock; None is the time of creation."""


@dataclass(frozen=True, slots=True)
class DecisionOutcome:
    """The outcome of a decision. ``reward`` in [-1, 1]; None if not given."""

    outcome: Outcome
    outcome_time: int
    reward: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """A stored decision. ``create_time`` in microseconds since 1970."""

    namespace: str
    decision_id: str
    content: DecisionContent
    create_time: int
    result: DecisionOutcome | None = None
    feedback_reward: float | None = None
    """The reward of the first feedback that found none."""
    revision: int = 1
    """Grows with every outcome or reward recorded for it."""

    @property
    def etag(self) -> str:
        """Changes with every revision."""
        return etag_of(self.namespace, self.decision_id, self.create_time, self.revision)

    @property
    def reward(self) -> float | None:
        """The reward of the outcome, else of feedback."""
        if self.result is not None and self.result.reward is not None:
            return self.result.reward
        return self.feedback_reward


@dataclass(frozen=True, slots=True)
class DecisionFilter:
    """Narrows decisions; see ``lot.v1.DecisionFilter``. Times are exclusive."""

    agent_roles: tuple[str, ...] = ()
    chosen_options: tuple[str, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    pending: bool | None = None
    categories: tuple[str, ...] = ()
    episode_ids: tuple[str, ...] = ()
    task_ids: tuple[str, ...] = ()
    tags_any: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    created_after: int | None = None
    created_before: int | None = None
