"""LearningService on the wire: choosing actions and learning their values."""

from __future__ import annotations

from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.pb.lot.v1 import learning_pb2 as pb
from lot_grpc.pb.lot.v1 import learning_service_pb2_grpc
from lot_grpc.server.call import Context
from lot_grpc.server.convert import actions as convert
from lot_grpc.services.learning.action_values import ActionValues
from lot_grpc.services.learning.selections import Selections
from lot_grpc.services.learning.step_recorder import StepRecorder

_DEFAULT_LIMIT = 3


class ActionServicer(learning_service_pb2_grpc.LearningServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(self, selections: Selections, steps: StepRecorder, values: ActionValues) -> None:
        self._selections = selections
        self._steps = steps
        self._values = values

    async def SelectAction(
        self, request: pb.SelectActionRequest, context: Context
    ) -> pb.SelectActionResponse:
        selection = await self._selections.select(
            namespace_or_default(request.namespace), convert.selection_draft_from_pb(request)
        )
        return convert.selection_to_pb(selection, request)

    async def RecordSteps(
        self, request: pb.RecordStepsRequest, context: Context
    ) -> pb.RecordStepsResponse:
        values = await self._steps.record(
            namespace_or_default(request.namespace), convert.steps_from_pb(request)
        )
        return pb.RecordStepsResponse(
            action_values=[convert.action_value_to_pb(value) for value in values]
        )

    async def GetBestActions(
        self, request: pb.GetBestActionsRequest, context: Context
    ) -> pb.GetBestActionsResponse:
        values = await self._values.best(
            namespace_or_default(request.namespace),
            convert.state_from_pb(request.state, "state"),
            request.limit or _DEFAULT_LIMIT,
        )
        return pb.GetBestActionsResponse(
            action_values=[convert.action_value_to_pb(value) for value in values]
        )
