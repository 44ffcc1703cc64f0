"""The kinds ``learning_event``, ``decision`` and ``action_value``, and how they are treated."""

from __future__ import annotations

from typing import Final

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import DecisionNotFoundError, LearningEventNotFoundError
from lot_grpc.domain.ids import point_id
from lot_grpc.ports import Index, Payload
from lot_grpc.services.records import decisions
from lot_grpc.services.records.actions import PENDING, action_value_from_record
from lot_grpc.services.records.collections import (
    ACTION_VALUES,
    DECISIONS,
    LEARNING_EVENTS,
    SELECTIONS,
    SORT_KEY,
    TRAJECTORIES,
)
from lot_grpc.services.records.learning_events import (
    APPLIED,
    learning_event_conditions,
    learning_event_from_record,
    learning_event_point,
)
from lot_grpc.services.resource_spec import (
    CHANGE_INDEXES,
    COMMON_INDEXES,
    ExportRule,
    ResourceCollection,
    ResourceSpec,
    WatchRule,
    indexes,
)


def _action_value_point(namespace: str, payload: Payload) -> str:
    return point_id(namespace, "action_value", payload["state"], payload["action"])


LEARNING_EVENT: Final = ResourceSpec(
    kind=ResourceKind.LEARNING_EVENT,
    id_key="learning_event_id",
    point=learning_event_point,
    read=learning_event_from_record,
    conditions=learning_event_conditions,
    missing=LearningEventNotFoundError,
    method="RecordLearningEvent",
    collection=ResourceCollection(
        name=LEARNING_EVENTS,
        description="A learning event.",
        indexes=COMMON_INDEXES
        | CHANGE_INDEXES
        | indexes(
            keyword="event_type outcome agent_role target_key",
            floating="reward",
            boolean="applied",
        ),
        export=ExportRule(done={APPLIED: True}),
    ),
    watch=WatchRule(quiet=frozenset({APPLIED})),
)

DECISION: Final = ResourceSpec(
    kind=ResourceKind.DECISION,
    id_key="decision_id",
    point=decisions.decision_point,
    read=decisions.decision_from_record,
    conditions=decisions.decision_conditions,
    missing=DecisionNotFoundError,
    method="RecordDecision",
    unchanged=(decisions.REVISION,),
    collection=ResourceCollection(
        name=DECISIONS,
        description="A decision, with its outcome once that is known.",
        indexes=COMMON_INDEXES
        | CHANGE_INDEXES
        | indexes(keyword="agent_role chosen_option outcome category episode_id task_id"),
        export=ExportRule(done={decisions.PENDING: []}),
    ),
    watch=WatchRule(),
)

ACTION_VALUE: Final = ResourceSpec(
    kind=ResourceKind.ACTION_VALUE,
    id_key="action",
    read=action_value_from_record,
    collection=ResourceCollection(
        name=ACTION_VALUES,
        derived=True,
        description="What one action is worth in one state.",
        key="`state`, `action`",
        indexes=indexes(keyword="state", integer=f"value_order {SORT_KEY}"),
        export=ExportRule(point=_action_value_point, done={PENDING: {}}),
    ),
    # Not exported: selections lapse, and the values have taken the trajectories in. A clear takes
    # both along, since they would bring a value back.
    parts=(
        ResourceCollection(
            name=SELECTIONS,
            description="An action that was selected, and the values known then.",
            key="`selection_id`",
            expires=True,
            derived=True,
        ),
        ResourceCollection(
            name=TRAJECTORIES,
            description="The steps of a finished trajectory.",
            key="`trajectory_id`",
            indexes={"applied": Index.BOOL},
        ),
    ),
)
