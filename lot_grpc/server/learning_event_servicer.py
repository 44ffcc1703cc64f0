"""LearningService on the wire: learning events and judgements."""

from __future__ import annotations

from lot_grpc.domain.errors import LearningEventNotFoundError
from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.pb.lot.v1 import learning_event_pb2 as pb
from lot_grpc.pb.lot.v1 import learning_service_pb2_grpc
from lot_grpc.server.answers import Page
from lot_grpc.server.call import Context
from lot_grpc.server.convert import learning_events as convert
from lot_grpc.server.page_token import position_from_token, position_to_token
from lot_grpc.services.learning.feedback_handler import FeedbackHandler
from lot_grpc.services.learning.learning_events import LearningEvents

_DEFAULT_PAGE = 10


class LearningEventServicer(learning_service_pb2_grpc.LearningServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(self, events: LearningEvents, feedback: FeedbackHandler) -> None:
        self._events = events
        self._feedback = feedback

    async def RecordLearningEvent(
        self, request: pb.RecordLearningEventRequest, context: Context
    ) -> pb.RecordLearningEventResponse:
        event, created = await self._events.record(
            namespace_or_default(request.namespace), convert.draft_from_pb(request)
        )
        return pb.RecordLearningEventResponse(
            learning_event=convert.learning_event_to_pb(event), created=created
        )

    async def GetLearningEvent(
        self, request: pb.GetLearningEventRequest, context: Context
    ) -> pb.GetLearningEventResponse:
        event = await self._events.get(
            namespace_or_default(request.namespace), request.learning_event_id
        )
        return pb.GetLearningEventResponse(learning_event=convert.learning_event_to_pb(event))

    async def DeleteLearningEvent(
        self, request: pb.DeleteLearningEventRequest, context: Context
    ) -> pb.DeleteLearningEventResponse:
        try:
            await self._events.delete(
                namespace_or_default(request.namespace), request.learning_event_id
            )
        except LearningEventNotFoundError:
            if not request.allow_missing:
                raise
            return pb.DeleteLearningEventResponse(deleted=False)
        return pb.DeleteLearningEventResponse(deleted=True)

    async def ListLearningEvents(
        self, request: pb.ListLearningEventsRequest, context: Context
    ) -> pb.ListLearningEventsResponse:
        page = Page(request, pb.ListLearningEventsResponse(), convert.learning_event_to_pb)
        _, position = await self._events.list_page(
            namespace_or_default(request.namespace),
            convert.filter_from_pb(request.filter),
            request.page_size or _DEFAULT_PAGE,
            position_from_token(request, request.page_token),
            page.fits,
        )
        return page.ending(position_to_token(request, position))

    async def SubmitFeedback(
        self, request: pb.SubmitFeedbackRequest, context: Context
    ) -> pb.SubmitFeedbackResponse:
        submitted = await self._feedback.submit(
            namespace_or_default(request.namespace), convert.feedback_from_pb(request)
        )
        return convert.submitted_to_pb(submitted)
