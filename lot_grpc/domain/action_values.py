"""Action values: Q-learning over finished trajectories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lot_grpc.domain.complexity import Complexity

ALPHA = 0.1
"""How far a value moves towards what a step shows, unless a policy says otherwise."""

GAMMA = 0.95
"""The discount of the next state's best value in a step, unless a policy sets another."""

BOUND = 1 / (1 - GAMMA)
"""At this discount values stay in [-BOUND, BOUND]: rewards are in [-1, 1], values start at 0."""


@dataclass(frozen=True, slots=True)
class LearningState:
    """A situation in which actions are selected. ``complexity`` None is a separate state."""

    task_type: str
    complexity: Complexity | None = None
    features: Mapping[str, Any] = field(default_factory=dict)
    """Carried; takes no part in what is learned."""

    @property
    def key(self) -> str:
        """The key of its values: ``task_type:complexity``, nothing after the colon for None."""
        return f"{self.task_type}:{self.complexity or ''}"


@dataclass(frozen=True, slots=True)
class ActionValue:
    """The learned value of an action in a state. ``update_time`` in microseconds since 1970."""

    task_type: str
    complexity: Complexity | None
    action: str
    value: float
    visit_count: int
    update_time: int


@dataclass(frozen=True, slots=True)
class TrajectoryStep:
    """One choice and the reward in [-1, 1] that followed; without ``next_state`` it was the end."""

    state: LearningState
    action: str
    reward: float
    next_state: LearningState | None = None


def learned(
    value: float, reward: float, best_next: float, alpha: float = ALPHA, gamma: float = GAMMA
) -> float:
    """The value after one more step: Q(s,a) + alpha (r + gamma max Q(s',.) - Q(s,a)).

    Q-learning (Watkins 1989).
    ``best_next`` is 0 at the end of a trajectory and for a state of which nothing is known.
    """
    return value + alpha * (reward + gamma * best_next - value)


def best_first(values: Iterable[ActionValue]) -> list[ActionValue]:
    """Sorted by value, the greatest first, then by name."""
    return sorted(values, key=lambda one: (-one.value, one.action))
