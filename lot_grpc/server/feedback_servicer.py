"""PatternService on the wire: feedback."""

from __future__ import annotations

from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pb
from lot_grpc.pb.lot.v1 import pattern_service_pb2_grpc as pb_grpc
from lot_grpc.server.call import Context
from lot_grpc.server.convert.feedback import draft_from_pb, entry_to_pb
from lot_grpc.server.convert.patterns import filter_from_pb, pattern_to_pb
from lot_grpc.services.patterns.feedback import Feedback
from lot_grpc.services.patterns.feedback_candidates import FeedbackCandidates

_DEFAULT_LIMIT = 10


class FeedbackServicer(pb_grpc.PatternServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(self, feedback: Feedback, candidates: FeedbackCandidates) -> None:
        self._feedback = feedback
        self._candidates = candidates

    async def GiveFeedback(
        self, request: pb.GiveFeedbackRequest, context: Context
    ) -> pb.GiveFeedbackResponse:
        given = await self._feedback.give_with_entry(
            namespace_or_default(request.namespace), draft_from_pb(request)
        )
        return pb.GiveFeedbackResponse(
            pattern=pattern_to_pb(given.pattern),
            feedback=entry_to_pb(given.entry) if given.entry else None,
        )

    async def ListFeedbackCandidates(
        self, request: pb.ListFeedbackCandidatesRequest, context: Context
    ) -> pb.ListFeedbackCandidatesResponse:
        found = await self._candidates.find(
            namespace_or_default(request.namespace),
            filter_from_pb(request.filter),
            request.limit or _DEFAULT_LIMIT,
        )
        return pb.ListFeedbackCandidatesResponse(
            patterns=[pattern_to_pb(pattern) for pattern, _ in found.patterns],
            scores=[score for _, score in found.patterns],
            examined_count=found.examined,
            exact=found.exact,
        )
