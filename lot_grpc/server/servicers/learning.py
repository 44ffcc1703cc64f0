"""LearningService."""

from __future__ import annotations

from lot_grpc.domain.trends import DEFAULT_SAMPLE
from lot_grpc.pb.lot.v1 import (
    decision_pb2,
    learning_event_pb2,
    learning_pb2,
    performance_pb2,
    recommendation_pb2,
    retrieval_pb2,
)
from lot_grpc.pb.lot.v1.learning_service_pb2_grpc import LearningServiceServicer
from lot_grpc.server.call import Context
from lot_grpc.server.codec import learning as codec
from lot_grpc.server.codec import retrievals as retrievals_codec
from lot_grpc.server.codec.episodes import filter_from_pb
from lot_grpc.server.servicers.base import namespace_of, read_page, was_deleted
from lot_grpc.services.build import Services

_DEFAULT_LIMIT = 3


class LearningServicer(LearningServiceServicer):
    """Implements LearningService: converts, calls a service, converts back."""

    def __init__(self, services: Services) -> None:
        self._services = services

    # --- recommendations and reports --------------------------------------------------------------

    async def GetRecommendations(
        self, request: recommendation_pb2.GetRecommendationsRequest, context: Context
    ) -> recommendation_pb2.GetRecommendationsResponse:
        recommended = await self._services.learning.recommender.recommend(
            namespace_of(request),
            codec.profile_from_pb(request),
            request.limit or _DEFAULT_LIMIT,
            request.min_score if request.HasField("min_score") else None,
        )
        return codec.recommended_to_pb(recommended)

    async def GetTrends(
        self, request: performance_pb2.GetTrendsRequest, context: Context
    ) -> performance_pb2.GetTrendsResponse:
        narrowed, wish = filter_from_pb(request.filter), codec.trend_wish_from_pb(request)
        trends = await self._services.learning.performance.trends(
            namespace_of(request), narrowed, wish
        )
        return performance_pb2.GetTrendsResponse(trends=map(codec.trend_to_pb, trends))

    async def GetPerformanceReport(
        self, request: performance_pb2.GetPerformanceReportRequest, context: Context
    ) -> performance_pb2.GetPerformanceReportResponse:
        report = await self._services.learning.performance.report(
            namespace_of(request),
            filter_from_pb(request.filter),
            request.sample_size or DEFAULT_SAMPLE,
            *codec.report_period_from_pb(request),
        )
        return performance_pb2.GetPerformanceReportResponse(report=codec.report_to_pb(report))

    # --- learning events and feedback -------------------------------------------------------------

    async def RecordLearningEvent(
        self, request: learning_event_pb2.RecordLearningEventRequest, context: Context
    ) -> learning_event_pb2.RecordLearningEventResponse:
        event, created = await self._services.learning.learning_events.record(
            namespace_of(request), codec.learning_event_draft_from_pb(request)
        )
        return learning_event_pb2.RecordLearningEventResponse(
            learning_event=codec.learning_event_to_pb(event), created=created
        )

    async def GetLearningEvent(
        self, request: learning_event_pb2.GetLearningEventRequest, context: Context
    ) -> learning_event_pb2.GetLearningEventResponse:
        event = await self._services.learning.learning_events.get(
            namespace_of(request), request.learning_event_id
        )
        return learning_event_pb2.GetLearningEventResponse(
            learning_event=codec.learning_event_to_pb(event)
        )

    async def DeleteLearningEvent(
        self, request: learning_event_pb2.DeleteLearningEventRequest, context: Context
    ) -> learning_event_pb2.DeleteLearningEventResponse:
        deleting = self._services.learning.learning_events.delete(
            namespace_of(request), request.learning_event_id
        )
        return learning_event_pb2.DeleteLearningEventResponse(
            deleted=await was_deleted(deleting, request)
        )

    async def ListLearningEvents(
        self, request: learning_event_pb2.ListLearningEventsRequest, context: Context
    ) -> learning_event_pb2.ListLearningEventsResponse:
        response = learning_event_pb2.ListLearningEventsResponse()
        narrowed = codec.learning_event_filter_from_pb(request.filter)
        read = self._services.learning.learning_events.list_page
        return await read_page(request, response, codec.learning_event_to_pb, read, narrowed)

    async def SubmitFeedback(
        self, request: learning_event_pb2.SubmitFeedbackRequest, context: Context
    ) -> learning_event_pb2.SubmitFeedbackResponse:
        submitted = await self._services.learning.feedback_handler.submit(
            namespace_of(request), codec.feedback_from_pb(request)
        )
        return codec.submitted_to_pb(submitted)

    # --- decisions --------------------------------------------------------------------------------

    async def RecordDecision(
        self, request: decision_pb2.RecordDecisionRequest, context: Context
    ) -> decision_pb2.RecordDecisionResponse:
        decision, created = await self._services.learning.decisions.record(
            namespace_of(request), codec.decision_draft_from_pb(request)
        )
        return decision_pb2.RecordDecisionResponse(
            decision=codec.decision_to_pb(decision), created=created
        )

    async def RecordDecisionOutcome(
        self, request: decision_pb2.RecordDecisionOutcomeRequest, context: Context
    ) -> decision_pb2.RecordDecisionOutcomeResponse:
        decision = await self._services.learning.decisions.record_outcome(
            namespace_of(request), codec.decision_outcome_from_pb(request)
        )
        return decision_pb2.RecordDecisionOutcomeResponse(decision=codec.decision_to_pb(decision))

    async def GetDecision(
        self, request: decision_pb2.GetDecisionRequest, context: Context
    ) -> decision_pb2.GetDecisionResponse:
        decision = await self._services.learning.decisions.get(
            namespace_of(request), request.decision_id
        )
        return decision_pb2.GetDecisionResponse(decision=codec.decision_to_pb(decision))

    async def DeleteDecision(
        self, request: decision_pb2.DeleteDecisionRequest, context: Context
    ) -> decision_pb2.DeleteDecisionResponse:
        deleting = self._services.learning.decisions.delete(
            namespace_of(request), request.decision_id, request.etag
        )
        return decision_pb2.DeleteDecisionResponse(deleted=await was_deleted(deleting, request))

    async def ListDecisions(
        self, request: decision_pb2.ListDecisionsRequest, context: Context
    ) -> decision_pb2.ListDecisionsResponse:
        response = decision_pb2.ListDecisionsResponse()
        narrowed = codec.decision_filter_from_pb(request.filter)
        read = self._services.learning.decisions.list_page
        return await read_page(request, response, codec.decision_to_pb, read, narrowed)

    # --- actions ----------------------------------------------------------------------------------

    async def SelectAction(
        self, request: learning_pb2.SelectActionRequest, context: Context
    ) -> learning_pb2.SelectActionResponse:
        selection = await self._services.learning.selections.select(
            namespace_of(request), codec.selection_draft_from_pb(request)
        )
        return codec.selection_to_pb(selection, request)

    async def RecordSteps(
        self, request: learning_pb2.RecordStepsRequest, context: Context
    ) -> learning_pb2.RecordStepsResponse:
        values = await self._services.learning.step_recorder.record(
            namespace_of(request), codec.steps_from_pb(request)
        )
        return learning_pb2.RecordStepsResponse(action_values=map(codec.action_value_to_pb, values))

    async def ListActionValues(
        self, request: learning_pb2.ListActionValuesRequest, context: Context
    ) -> learning_pb2.ListActionValuesResponse:
        values = await self._services.learning.action_values.best(
            namespace_of(request),
            codec.state_from_pb(request.state),
            request.limit or _DEFAULT_LIMIT,
        )
        return learning_pb2.ListActionValuesResponse(
            action_values=map(codec.action_value_to_pb, values)
        )

    # --- retrievals -------------------------------------------------------------------------------

    async def GetRetrieval(
        self, request: retrieval_pb2.GetRetrievalRequest, context: Context
    ) -> retrieval_pb2.GetRetrievalResponse:
        receipt = await self._services.receipts.receipt(namespace_of(request), request.retrieval_id)
        return retrieval_pb2.GetRetrievalResponse(retrieval=retrievals_codec.receipt_to_pb(receipt))

    async def ListRetrievals(
        self, request: retrieval_pb2.ListRetrievalsRequest, context: Context
    ) -> retrieval_pb2.ListRetrievalsResponse:
        response = retrieval_pb2.ListRetrievalsResponse()
        narrowed = retrievals_codec.filter_from_pb(request.filter)
        read, to_pb = self._services.receipts.receipts_page, retrievals_codec.receipt_to_pb
        return await read_page(request, response, to_pb, read, narrowed)
