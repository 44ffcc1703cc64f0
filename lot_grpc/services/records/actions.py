"""Selections, trajectories and action values ⇄ Record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lot_grpc.domain.action_values import ActionValue, LearningState, Step
from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.ids import SELECTION_LIFE, point_id
from lot_grpc.domain.selection import SelectionPolicy
from lot_grpc.ports import EXPIRES_KEY, Payload, Record
from lot_grpc.services.records.collections import SORT_KEY

SETTLED = "settled"
"""Whether all steps of a trajectory are taken in."""

REVISION = "revision"

UNSETTLED = "unsettled_steps"
"""Of an action value: the first step it took in of each trajectory that is not settled, by the
trajectory's point. Steps go backwards, so the later ones are taken in as well."""

VALUE_ORDER = "value_order"
"""The value in units of 1e-12, since only whole numbers order a scroll."""


@dataclass(frozen=True, slots=True)
class Selection:
    """An action that was chosen, what was known then, and in microseconds when."""

    namespace: str
    selection_id: str
    state: LearningState
    action: str
    policy: SelectionPolicy
    explored: bool
    values: tuple[ActionValue, ...]
    create_time: int


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A fact: the steps of a finished trajectory, in order."""

    namespace: str
    trajectory_id: str
    steps: tuple[Step, ...]
    create_time: int
    episode_id: str = ""

    @property
    def point(self) -> str:
        """Where it lies."""
        return trajectory_point(self.namespace, self.trajectory_id)


def _state_payload(state: LearningState) -> Payload:
    payload: Payload = {"task_type": state.task_type}
    if state.complexity is not None:
        payload["complexity"] = state.complexity.value
    if state.features:
        payload["features"] = dict(state.features)
    return payload


def _state(stored: Mapping[str, Any]) -> LearningState:
    return LearningState(stored["task_type"], _complexity(stored), stored.get("features", {}))


def _complexity(stored: Mapping[str, Any]) -> Complexity | None:
    return Complexity(stored["complexity"]) if "complexity" in stored else None


# --- selections -------------------------------------------------------------------------------


def selection_point(namespace: str, selection_id: str) -> str:
    """Where a selection lies."""
    return point_id(namespace, "selection", selection_id)


def selection_record(selection: Selection) -> Record:
    """A selection, kept for its life."""
    known = [
        {
            "action": one.action,
            "value": one.value,
            "visit_count": one.visit_count,
            "update_time": one.update_time,
        }
        for one in selection.values
    ]
    return Record(
        selection_point(selection.namespace, selection.selection_id),
        selection.namespace,
        {
            "selection_id": selection.selection_id,
            "state": _state_payload(selection.state),
            "action": selection.action,
            "policy": selection.policy.value,
            "explored": selection.explored,
            "values": known,
            "create_time": selection.create_time,
            EXPIRES_KEY: selection.create_time + SELECTION_LIFE,
        },
    )


def selection_from_record(record: Record) -> Selection:
    """The selection of a record."""
    payload = record.payload
    state = _state(payload["state"])
    return Selection(
        record.namespace,
        payload["selection_id"],
        state,
        payload["action"],
        SelectionPolicy(payload["policy"]),
        payload["explored"],
        tuple(ActionValue(state.task_type, state.complexity, **one) for one in payload["values"]),
        payload["create_time"],
    )


# --- trajectories -----------------------------------------------------------------------------


def trajectory_point(namespace: str, trajectory_id: str) -> str:
    """Where a trajectory lies."""
    return point_id(namespace, "trajectory", trajectory_id)


def trajectory_record(trajectory: Trajectory) -> Record:
    """A trajectory of which no step is taken in yet."""
    payload: Payload = {
        "trajectory_id": trajectory.trajectory_id,
        "steps": [_step_payload(step) for step in trajectory.steps],
        "create_time": trajectory.create_time,
        SETTLED: False,
    }
    if trajectory.episode_id:
        payload["episode_id"] = trajectory.episode_id
    return Record(trajectory.point, trajectory.namespace, payload)


def _step_payload(step: Step) -> Payload:
    payload: Payload = {
        "state": _state_payload(step.state),
        "action": step.action,
        "reward": step.reward,
    }
    if step.next_state is not None:
        payload["next_state"] = _state_payload(step.next_state)
    return payload


def _step(stored: Mapping[str, Any]) -> Step:
    following = _state(stored["next_state"]) if "next_state" in stored else None
    return Step(_state(stored["state"]), stored["action"], float(stored["reward"]), following)


def trajectory_from_record(record: Record) -> Trajectory:
    """The trajectory of a record."""
    payload = record.payload
    return Trajectory(
        record.namespace,
        payload["trajectory_id"],
        tuple(_step(step) for step in payload["steps"]),
        payload["create_time"],
        payload.get("episode_id", ""),
    )


# --- action values ----------------------------------------------------------------------------


def action_value_point(namespace: str, state: LearningState, action: str) -> str:
    """Where the value of an action in a state lies."""
    return point_id(namespace, "action_value", state.key, action)


def value_payload(value: float, visit_count: int, update_time: int) -> Payload:
    """The keys that each step writes."""
    return {
        "value": value,
        VALUE_ORDER: round(value * 1e12),
        "visit_count": visit_count,
        "update_time": update_time,
    }


def first_value_record(
    namespace: str, step: Step, value: float, update_time: int, sort_key: int
) -> Record:
    """The record of an action's value after its first step; who took it in stands beside it."""
    return Record(
        action_value_point(namespace, step.state, step.action),
        namespace,
        {
            "state": step.state.key,
            "task_type": step.state.task_type,
            **({"complexity": step.state.complexity.value} if step.state.complexity else {}),
            "action": step.action,
            **value_payload(value, 1, update_time),
            REVISION: 1,
            SORT_KEY: sort_key,
        },
    )


def action_value_from_record(record: Record) -> ActionValue:
    """The action value of a record."""
    payload = record.payload
    return ActionValue(
        payload["task_type"],
        _complexity(payload),
        payload["action"],
        float(payload["value"]),
        payload["visit_count"],
        payload["update_time"],
    )
