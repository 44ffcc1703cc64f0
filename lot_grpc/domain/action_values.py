"""What an action is worth in a state: Q-learning over finished trajectories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lot_grpc.domain.complexity import Complexity

ALPHA = 0.1
"""How far a value moves towards what a step shows, unless a policy says otherwise."""

GAMMA = 0.95
"""What the next state's best value counts in a step, unless a policy says otherwise."""

BOUND = 1 / (1 - GAMMA)
"""No value leaves [-BOUND, BOUND] at this discount: rewards lie in [-1, 1], values start at 0."""


@dataclass(frozen=True, slots=True)
class LearningState:
    """A situation in which actions are chosen. ``complexity`` None is a state of its own."""

    task_type: str
    complexity: Complexity | None = None
    features: Mapping[str, Any] = field(default_factory=dict)
    """Carried; takes no part in what is learned."""

    @property
    def key(self) -> str:
        """What values are kept by: ``task_type:complexity``, nothing after the colon for None."""
        return f"{self.task_type}:{self.complexity or ''}"


@dataclass(frozen=True, slots=True)
class ActionValue:
    """What was learned of an action in a state. ``update_time`` in microseconds since 1970."""

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
    """By value, the greatest first; equal ones by name."""
    return sorted(values, key=lambda one: (-one.value, one.action))
