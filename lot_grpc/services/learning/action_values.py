"""Action values: applying trajectories step by step, each step once, and reading values.

A trajectory is applied once (``kernel.apply_once``), to several targets: its steps are applied from
the last to the first, each to one action value, which remembers the first step of the trajectory
that it has applied. Whoever finds an open trajectory starts at its end and skips what is
remembered, so it continues where another process stopped, and concurrent processes do no harm.
Values of other states are read as they are: Q-learning does not need a consistent snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence

from lot_grpc.domain.action_values import ActionValue, LearningState, best_first, learned
from lot_grpc.domain.policy import NamespacePolicy
from lot_grpc.kernel.apply_once import Target, apply_once
from lot_grpc.kernel.compare_and_set import insert_new, update_as_read
from lot_grpc.kernel.intents import Journal, Mark
from lot_grpc.ports import Equals, Order, Record, VectorStore
from lot_grpc.services.records.actions import (
    APPLIED,
    PENDING,
    REVISION,
    VALUE_ORDER,
    Trajectory,
    action_value_from_record,
    action_value_point,
    first_value_record,
    trajectory_from_record,
    trajectory_point,
    trajectory_record,
    value_payload,
)
from lot_grpc.services.records.collections import ACTION_VALUES, TRAJECTORIES
from lot_grpc.services.retention.policies import Policies
from lot_grpc.services.scanning import scan
from lot_grpc.services.time_slice import TimeSlice
from lot_grpc.services.time_source import TimeSource


class ActionValues:
    """The action values of all namespaces."""

    def __init__(self, store: VectorStore, time_source: TimeSource, policies: Policies) -> None:
        self._store = store
        self._time = time_source
        self._policies = policies
        self._journal = Journal(store, TRAJECTORIES, Mark(APPLIED))

    # --- reading ------------------------------------------------------------------------------

    async def of(
        self, namespace: str, state: LearningState, actions: Sequence[str]
    ) -> dict[str, ActionValue]:
        """The values of actions in a state, by name; unknown actions are omitted."""
        points = [action_value_point(namespace, state, action) for action in actions]
        found = await self._store.get(ACTION_VALUES, namespace, points)
        return {
            action: action_value_from_record(found[point])
            for action, point in zip(actions, points, strict=True)
            if point in found
        }

    async def best(self, namespace: str, state: LearningState, limit: int) -> list[ActionValue]:
        """The best known actions of a state; ties are broken by name."""
        where = [Equals("state", state.key)]
        values = [
            action_value_from_record(record)
            async for record in scan(self._store, ACTION_VALUES, namespace, where)
        ]
        return best_first(values)[:limit]

    async def moved_by(self, trajectory: Trajectory) -> list[ActionValue]:
        """The current values of a trajectory's actions, in the order of its steps."""
        points = dict.fromkeys(
            action_value_point(trajectory.namespace, step.state, step.action)
            for step in trajectory.steps
        )
        found = await self._store.get(ACTION_VALUES, trajectory.namespace, list(points))
        return [action_value_from_record(found[point]) for point in points if point in found]

    async def trajectory(self, namespace: str, trajectory_id: str) -> Trajectory | None:
        """A stored trajectory; None if it does not exist."""
        point = trajectory_point(namespace, trajectory_id)
        found = await self._store.get(TRAJECTORIES, namespace, [point])
        return trajectory_from_record(found[point]) if point in found else None

    # --- learning -----------------------------------------------------------------------------

    async def learn(self, trajectory: Trajectory) -> None:
        """Write a trajectory if it is not there, and take in those of its steps that are not.

        Raises ContentionError; the trajectory is then kept, and the next retry or sweep resumes.
        """
        await self._journal.write([trajectory_record(trajectory)])
        await self._take_in(trajectory)

    async def roll_forward(self, before: int) -> int:
        """Apply trajectories written before ``before`` but never completed; return how many."""

        async def take_in(row: Record) -> None:
            found = await self._store.get(TRAJECTORIES, row.namespace, [row.id])
            if row.id in found:
                await self._take_in(trajectory_from_record(found[row.id]))

        return await self._journal.recover(before, take_in, payload=("create_time",))

    async def _take_in(self, trajectory: Trajectory) -> None:
        time_slice = TimeSlice()
        policy = (await self._policies.get(trajectory.namespace)).policy
        for number in reversed(range(len(trajectory.steps))):
            await self._take_step(trajectory, number, policy)
            await time_slice.give_way()
        await self._journal.finish(trajectory.namespace, trajectory.point)

    async def _take_step(
        self, trajectory: Trajectory, number: int, policy: NamespacePolicy
    ) -> None:
        """Apply a step unless it was applied before. All later steps have been."""
        namespace, step = trajectory.namespace, trajectory.steps[number]
        point = action_value_point(namespace, step.state, step.action)

        async def learn(record: Record | None, pending: dict[str, int]) -> Record:
            now = self._time.now()
            best = await self._best_value(namespace, step.next_state)
            rates = policy.action_learning_rate, policy.action_discount
            if record is None:
                value = learned(0.0, step.reward, best, *rates)
                first = first_value_record(namespace, step, value, now, self._time.sort_key())
                first.payload[PENDING] = pending
                return await insert_new(self._store, ACTION_VALUES, first)
            old = record.payload
            value = learned(float(old["value"]), step.reward, best, *rates)
            changed = value_payload(value, old["visit_count"] + 1, max(now, old["update_time"]))
            changed[PENDING] = pending
            return await update_as_read(self._store, ACTION_VALUES, record, changed, REVISION)

        await apply_once(
            self._store,
            self._journal,
            trajectory.point,
            Target("action value", step.action, namespace, ACTION_VALUES, point, PENDING),
            learn,
            remember=number,
            has=lambda first: bool(first <= number),
        )

    async def _best_value(self, namespace: str, state: LearningState | None) -> float:
        """The greatest value in a state; 0 without a state or known actions."""
        if state is None:
            return 0.0
        best = await self._store.scroll(
            ACTION_VALUES,
            namespace,
            [Equals("state", state.key)],
            limit=1,
            order=Order(VALUE_ORDER, descending=True),
            payload=("value",),
        )
        return float(best[0].payload["value"]) if best else 0.0
