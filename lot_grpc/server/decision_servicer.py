"""LearningService on the wire: decisions."""

from __future__ import annotations

from lot_grpc.domain.errors import DecisionNotFoundError
from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.pb.lot.v1 import decision_pb2 as pb
from lot_grpc.pb.lot.v1 import learning_service_pb2_grpc
from lot_grpc.server.answers import Page
from lot_grpc.server.call import Context
from lot_grpc.server.convert import decisions as convert
from lot_grpc.server.page_token import position_from_token, position_to_token
from lot_grpc.services.learning.decisions import Decisions

_DEFAULT_PAGE = 10


class DecisionServicer(learning_service_pb2_grpc.LearningServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(self, decisions: Decisions) -> None:
        self._decisions = decisions

    async def RecordDecision(
        self, request: pb.RecordDecisionRequest, context: Context
    ) -> pb.RecordDecisionResponse:
        decision, created = await self._decisions.record(
            namespace_or_default(request.namespace), convert.draft_from_pb(request)
        )
        return pb.RecordDecisionResponse(decision=convert.decision_to_pb(decision), created=created)

    async def RecordDecisionOutcome(
        self, request: pb.RecordDecisionOutcomeRequest, context: Context
    ) -> pb.RecordDecisionOutcomeResponse:
        decision = await self._decisions.record_outcome(
            namespace_or_default(request.namespace), convert.outcome_from_pb(request)
        )
        return pb.RecordDecisionOutcomeResponse(decision=convert.decision_to_pb(decision))

    async def GetDecision(
        self, request: pb.GetDecisionRequest, context: Context
    ) -> pb.GetDecisionResponse:
        decision = await self._decisions.get(
            namespace_or_default(request.namespace), request.decision_id
        )
        return pb.GetDecisionResponse(decision=convert.decision_to_pb(decision))

    async def DeleteDecision(
        self, request: pb.DeleteDecisionRequest, context: Context
    ) -> pb.DeleteDecisionResponse:
        try:
            await self._decisions.delete(
                namespace_or_default(request.namespace), request.decision_id, request.etag
            )
        except DecisionNotFoundError:
            if not request.allow_missing:
                raise
            return pb.DeleteDecisionResponse(deleted=False)
        return pb.DeleteDecisionResponse(deleted=True)

    async def ListDecisions(
        self, request: pb.ListDecisionsRequest, context: Context
    ) -> pb.ListDecisionsResponse:
        page = Page(request, pb.ListDecisionsResponse(), convert.decision_to_pb)
        _, position = await self._decisions.list_page(
            namespace_or_default(request.namespace),
            convert.filter_from_pb(request.filter),
            request.page_size or _DEFAULT_PAGE,
            position_from_token(request, request.page_token),
            page.fits,
        )
        return page.ending(position_to_token(request, position))
