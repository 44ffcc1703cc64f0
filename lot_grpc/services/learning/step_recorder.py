"""Recording finished trajectories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lot_grpc.domain.action_values import ActionValue, LearningState, TrajectoryStep
from lot_grpc.domain.errors import invalid
from lot_grpc.domain.ids import new_id
from lot_grpc.domain.request_hash import request_hash
from lot_grpc.domain.text_form import normal_form
from lot_grpc.kernel.idempotency import IdempotencyKey
from lot_grpc.services.learning.action_values import ActionValues
from lot_grpc.services.learning.selections import Selections
from lot_grpc.services.records.actions import Selection, Trajectory
from lot_grpc.services.runtime import Runtime


@dataclass(frozen=True, slots=True)
class StepDraft:
    """A step: state and action, or the selection that has them. ``reward`` in [-1, 1]."""

    reward: float
    state: LearningState | None = None
    action: str = ""
    next_state: LearningState | None = None
    selection_id: str = ""


@dataclass(frozen=True, slots=True)
class StepsDraft:
    """The steps of a finished trajectory, in order."""

    steps: tuple[StepDraft, ...]
    episode_id: str = ""
    request_id: str = ""

    def hash(self) -> str:
        """Equal for equal requests."""
        return request_hash(self)


class StepRecorder:
    """Records trajectories and learns from them."""

    def __init__(self, runtime: Runtime, values: ActionValues, selections: Selections) -> None:
        self._time = runtime.time
        self._idempotency = runtime.idempotency
        self._values = values
        self._selections = selections

    async def record(self, namespace: str, draft: StepsDraft) -> list[ActionValue]:
        """Learn from each step once; return the changed values.

        Raises SelectionNotFoundError and RequestInvalidError, and then learns nothing;
        RequestIdReusedError; ContentionError, after which a retry resumes.
        """
        plan = {"trajectory_id": new_id("t")}
        key = IdempotencyKey(namespace, "RecordSteps", draft.request_id, draft.hash(), plan)
        entry = await self._idempotency.find(key)
        trajectory = None
        if entry is not None:
            trajectory = await self._values.trajectory(namespace, entry.plan["trajectory_id"])
        if entry is None or trajectory is None:
            steps = await self._resolved(namespace, draft.steps)
            entry = entry or await self._idempotency.begin(key)
            own, now = entry.plan["trajectory_id"], self._time.now()
            trajectory = Trajectory(namespace, own, steps, now, draft.episode_id)
        if entry.result is None:
            await self._values.learn(trajectory)
            await self._idempotency.finish(entry, {})
        return await self._values.moved_by(trajectory)

    async def _resolved(
        self, namespace: str, drafts: Sequence[StepDraft]
    ) -> tuple[TrajectoryStep, ...]:
        """The steps with the states and actions of their selections."""
        ids = [draft.selection_id for draft in drafts if draft.selection_id]
        selections: Mapping[str, Selection] = {}
        if ids:
            selections = await self._selections.get_many(namespace, ids)
        return tuple(_step(n, draft, selections) for n, draft in enumerate(drafts))


def _step(number: int, draft: StepDraft, selections: Mapping[str, Selection]) -> TrajectoryStep:
    selection = selections.get(draft.selection_id)
    if selection is None:
        if draft.state is None or not draft.action:
            raise invalid(
                f"steps[{number}]",
                "step.choice.required",
                "a step needs state and action, or a selection_id",
            )
        return TrajectoryStep(draft.state, draft.action, draft.reward, draft.next_state)
    given, chosen = normal_form(draft.action), normal_form(selection.action)
    other = "action" if given not in ("", chosen) else ""
    if draft.state is not None and draft.state.key != selection.state.key:
        other = "state"
    if other:
        raise invalid(
            f"steps[{number}].{other}",
            "step.selection",
            f"differs from that of the selection; omit {other}, or omit selection_id",
        )
    state = draft.state or selection.state
    return TrajectoryStep(state, selection.action, draft.reward, draft.next_state)
