"""The log of outcomes on the wire."""

from __future__ import annotations

from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pb
from lot_grpc.pb.lot.v1 import pattern_service_pb2_grpc as pb_grpc
from lot_grpc.server.answers import Page
from lot_grpc.server.call import Context
from lot_grpc.server.convert.outcomes import OUTCOME, outcome_entry_to_pb
from lot_grpc.server.convert.patterns import pattern_to_pb
from lot_grpc.server.page_token import position_from_token, position_to_token
from lot_grpc.services.outcomes.outcome_log import CorrectionDraft, OutcomeLog

_DEFAULT_PAGE = 10


class OutcomeServicer(pb_grpc.PatternServiceServicer):
    """Lists and corrects what RecordOutcome was told."""

    def __init__(self, log: OutcomeLog) -> None:
        self._log = log

    async def ListOutcomes(
        self, request: pb.ListOutcomesRequest, context: Context
    ) -> pb.ListOutcomesResponse:
        page = Page(request, pb.ListOutcomesResponse(), outcome_entry_to_pb)
        found = await self._log.list_page(
            namespace_or_default(request.namespace),
            request.pattern_id,
            request.page_size or _DEFAULT_PAGE,
            position_from_token(request, request.page_token),
            page.fits,
        )
        return page.ending(position_to_token(request, found.next))

    async def CorrectOutcome(
        self, request: pb.CorrectOutcomeRequest, context: Context
    ) -> pb.CorrectOutcomeResponse:
        draft = CorrectionDraft(
            request.outcome_id,
            OUTCOME.from_pb(request.outcome),
            request.note,
            request.request_id,
        )
        corrected = await self._log.correct(namespace_or_default(request.namespace), draft)
        return pb.CorrectOutcomeResponse(
            patterns=[pattern_to_pb(one) for one in corrected.patterns],
            outcome_id=corrected.outcome_id,
        )
