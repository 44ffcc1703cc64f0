"""Selections, trajectories and action values ⇄ Record."""

from __future__ import annotations

from dataclasses import dataclass

from lot_grpc.domain.action_values import ActionValue, LearningState, TrajectoryStep
from lot_grpc.domain.ids import SELECTION_LIFE, point_id
from lot_grpc.domain.selection import SelectionPolicy
from lot_grpc.ports import EXPIRES_KEY, Payload, Record
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.records.fields import FieldCodec

APPLIED = "applied"
"""Whether all steps of a trajectory have been applied."""

REVISION = "revision"

PENDING = "pending_steps"
"""On an action value: for each trajectory not yet settled, by its point, the first step applied.
Steps are applied backwards, so later ones have been applied as well."""

VALUE_ORDER = "value_order"
"""The value in units of 1e-12, since a scroll can only be ordered by integers."""


@dataclass(frozen=True, slots=True)
class Selection:
    """An action that was chosen, what was known then, and when (microseconds)."""

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
    """The steps of a finished trajectory, in order; immutable."""

    namespace: str
    trajectory_id: str
    steps: tuple[TrajectoryStep, ...]
    create_time: int
    episode_id: str = ""

    @property
    def point(self) -> str:
        """Its point id."""
        return trajectory_point(self.namespace, self.trajectory_id)


_KNOWN = FieldCodec(ActionValue, sparse=False, skip={"task_type", "complexity"})
"""What was known about an action when another was chosen; the state has the rest."""
_SELECTION = FieldCodec(Selection, sparse=False, skip={"namespace", "values"})
_TRAJECTORY = FieldCodec(
    Trajectory,
    skip={"namespace"},
    values={"steps": FieldCodec(TrajectoryStep, values={"reward": float})},
)
_VALUE = FieldCodec(ActionValue, defaults={"complexity": None}, values={"value": float})


# --- selections -------------------------------------------------------------------------------


def selection_point(namespace: str, selection_id: str) -> str:
    """The point id of a selection."""
    return point_id(namespace, "selection", selection_id)


def selection_record(selection: Selection) -> Record:
    """Encode a selection, with its expiry."""
    payload = {
        **_SELECTION.write(selection),
        "values": [_KNOWN.write(one) for one in selection.values],
        EXPIRES_KEY: selection.create_time + SELECTION_LIFE,
    }
    point = selection_point(selection.namespace, selection.selection_id)
    return Record(point, selection.namespace, payload)


def selection_from_record(record: Record) -> Selection:
    """Decode the selection of a record."""
    payload = record.payload
    state = payload["state"]
    of_state = {"task_type": state["task_type"], "complexity": state.get("complexity")}
    values = tuple(_VALUE.read({**of_state, **one}) for one in payload["values"])
    return _SELECTION.read(payload, namespace=record.namespace, values=values)


# --- trajectories -----------------------------------------------------------------------------


def trajectory_point(namespace: str, trajectory_id: str) -> str:
    """The point id of a trajectory."""
    return point_id(namespace, "trajectory", trajectory_id)


def trajectory_record(trajectory: Trajectory) -> Record:
    """Encode a trajectory with no step applied yet."""
    payload = {**_TRAJECTORY.write(trajectory), APPLIED: False}
    return Record(trajectory.point, trajectory.namespace, payload)


def trajectory_from_record(record: Record) -> Trajectory:
    """Decode the trajectory of a record."""
    return _TRAJECTORY.read(record.payload, namespace=record.namespace)


# --- action values ----------------------------------------------------------------------------


def action_value_point(namespace: str, state: LearningState, action: str) -> str:
    """The point id of the value of an action in a state."""
    return point_id(namespace, "action_value", state.key, action)


def _order(value: float) -> int:
    return round(value * 1e12)


def value_payload(value: float, visit_count: int, update_time: int) -> Payload:
    """The keys that each step writes."""
    return {
        "value": value,
        VALUE_ORDER: _order(value),
        "visit_count": visit_count,
        "update_time": update_time,
    }


def first_value_record(
    namespace: str, step: TrajectoryStep, value: float, update_time: int, sort_key: int
) -> Record:
    """The record of an action's value after its first step, with the mark of what was applied."""
    state, action = step.state, step.action
    first = ActionValue(state.task_type, state.complexity, action, value, 1, update_time)
    payload = {
        **_VALUE.write(first),
        "state": state.key,
        VALUE_ORDER: _order(value),
        REVISION: 1,
        SORT_KEY: sort_key,
    }
    return Record(action_value_point(namespace, state, action), namespace, payload)


def action_value_from_record(record: Record) -> ActionValue:
    """Decode the action value of a record."""
    return _VALUE.read(record.payload)
