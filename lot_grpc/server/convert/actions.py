"""Learning states, selections, steps and action values."""

from __future__ import annotations

from lot_grpc.domain.action_values import ActionValue, LearningState
from lot_grpc.domain.errors import invalid
from lot_grpc.domain.selection import EXPLORATION_RATE, SelectionPolicy
from lot_grpc.domain.text_form import normal_form
from lot_grpc.pb.lot.v1 import learning_pb2 as pb
from lot_grpc.server.convert.outcomes import COMPLEXITY
from lot_grpc.server.convert.values import EnumCodec, struct_from_pb, time_to_pb
from lot_grpc.services.learning.selections import SelectionDraft
from lot_grpc.services.learning.step_recorder import StepDraft, StepsDraft
from lot_grpc.services.records.actions import Selection

POLICY = EnumCodec(pb.SelectionPolicy.DESCRIPTOR, SelectionPolicy, "SELECTION_POLICY_")


def state_from_pb(message: pb.LearningState, path: str) -> LearningState:
    """A state."""
    features = struct_from_pb(message.features, f"{path}.features")
    return LearningState(message.task_type, COMPLEXITY.from_pb(message.complexity), features)


def action_value_to_pb(value: ActionValue) -> pb.ActionValue:
    """What was learned of an action."""
    return pb.ActionValue(
        task_type=value.task_type,
        complexity=COMPLEXITY.to_pb(value.complexity),
        action=value.action,
        value=value.value,
        visit_count=value.visit_count,
        update_time=time_to_pb(value.update_time),
    )


def selection_draft_from_pb(message: pb.SelectActionRequest) -> SelectionDraft:
    """What to choose from."""
    if len({normal_form(action.name) for action in message.actions}) < len(message.actions):
        raise invalid(
            "actions",
            "select_action.actions.unique",
            "action names must be distinct, and not only in their Unicode form",
        )
    return SelectionDraft(
        state_from_pb(message.state, "state"),
        {
            action.name: struct_from_pb(action.parameters, f"actions[{number}].parameters")
            for number, action in enumerate(message.actions)
        },
        POLICY.from_pb(message.policy) or SelectionPolicy.EPSILON_GREEDY,
        message.seed if message.HasField("seed") else None,
        message.exploration_rate if message.HasField("exploration_rate") else EXPLORATION_RATE,
        message.request_id,
    )


def selection_to_pb(
    selection: Selection, request: pb.SelectActionRequest
) -> pb.SelectActionResponse:
    """A selection, with the action as the request gave it."""
    chosen = normal_form(selection.action)
    [action] = [action for action in request.actions if normal_form(action.name) == chosen]
    return pb.SelectActionResponse(
        action=action,
        selection_id=selection.selection_id,
        explored=selection.explored,
        action_values=[action_value_to_pb(value) for value in selection.values],
    )


def steps_from_pb(message: pb.RecordStepsRequest) -> StepsDraft:
    """The steps of a trajectory."""
    steps = tuple(_step_from_pb(step, f"steps[{n}]") for n, step in enumerate(message.steps))
    return StepsDraft(steps, message.episode_id, message.request_id)


def _step_from_pb(message: pb.Step, path: str) -> StepDraft:
    state = following = None
    if message.HasField("state"):
        state = state_from_pb(message.state, f"{path}.state")
    if message.HasField("next_state"):
        following = state_from_pb(message.next_state, f"{path}.next_state")
    return StepDraft(message.reward, state, message.action, following, message.selection_id)
