"""PatternService."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TypeVar

from lot_grpc.domain.errors import LotError
from lot_grpc.pb.lot.v1 import pattern_pb2
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pb
from lot_grpc.pb.lot.v1.pattern_service_pb2_grpc import PatternServiceServicer
from lot_grpc.server.call import Context
from lot_grpc.server.codec import outcomes as outcomes_codec
from lot_grpc.server.codec import patterns as codec
from lot_grpc.server.codec.episodes import episode_to_pb
from lot_grpc.server.codec.error_solutions import error_solution_to_pb
from lot_grpc.server.codec.memories import memory_to_pb
from lot_grpc.server.codec.notices import query_notices
from lot_grpc.server.servicers.base import carry_out_batch, namespace_of, read_page, was_deleted
from lot_grpc.server.status import to_status
from lot_grpc.services.build import Services
from lot_grpc.services.outcomes.outcomes import Recorded
from lot_grpc.services.patterns.drafts import Saved
from lot_grpc.services.recall.targets import pattern_request

_DEFAULT_CANDIDATES = 10

R = TypeVar("R", pb.RecordOutcomeResponse, pb.CorrectOutcomeResponse)


class PatternServicer(PatternServiceServicer):
    """Implements PatternService: converts, calls a service, converts back."""

    def __init__(self, services: Services, max_batch_items: int) -> None:
        self._services = services
        self._max_batch_items = max_batch_items

    # --- patterns ---------------------------------------------------------------------------------

    async def SavePattern(
        self, request: pb.SavePatternRequest, context: Context
    ) -> pb.SavePatternResponse:
        draft = codec.draft_from_pb(request)
        return codec.saved_to_pb(
            await self._services.patterns.writer.save(namespace_of(request), draft)
        )

    async def BatchSavePatterns(
        self, request: pb.BatchSavePatternsRequest, context: Context
    ) -> pb.BatchSavePatternsResponse:
        save = partial(self._services.patterns.writer.save_many, namespace_of(request))
        results: list[Saved | LotError] = await carry_out_batch(
            request.items, self._max_batch_items, codec.draft_from_pb, save
        )
        return pb.BatchSavePatternsResponse(
            results=map(_result_to_pb, results),
            # If the same request id occurs twice, the pattern was new once.
            created_count=len(
                {r.pattern.pattern_id for r in results if isinstance(r, Saved) and r.created}
            ),
            failed_count=sum(isinstance(r, LotError) for r in results),
        )

    async def GetPattern(
        self, request: pb.GetPatternRequest, context: Context
    ) -> pb.GetPatternResponse:
        namespace, services = namespace_of(request), self._services
        pattern = await services.patterns.patterns.get(namespace, request.pattern_id)
        lineage = (
            await services.patterns.lineage.read(namespace, pattern)
            if request.include_lineage
            else []
        )
        history = []
        if request.include_feedback:
            history = await services.patterns.feedback.history(namespace, pattern.pattern_id)
        return pb.GetPatternResponse(
            pattern=codec.pattern_to_pb(pattern),
            lineage=map(codec.lineage_to_pb, lineage),
            feedback=map(codec.feedback_entry_to_pb, history),
        )

    async def UpdatePattern(
        self, request: pb.UpdatePatternRequest, context: Context
    ) -> pb.UpdatePatternResponse:
        codec.same_id("pattern", request.pattern.pattern_id, request.pattern_id)
        edit = codec.edit_from_pb(request.pattern, request.update_mask)
        updated = await self._services.patterns.patterns.update(
            namespace_of(request), request.pattern_id, edit, request.etag
        )
        return codec.updated_to_pb(updated)

    async def DeletePattern(
        self, request: pb.DeletePatternRequest, context: Context
    ) -> pb.DeletePatternResponse:
        deleting = self._services.patterns.patterns.delete(
            namespace_of(request), request.pattern_id, request.etag
        )
        return pb.DeletePatternResponse(deleted=await was_deleted(deleting, request))

    async def ListPatterns(
        self, request: pb.ListPatternsRequest, context: Context
    ) -> pb.ListPatternsResponse:
        response, narrowed = pb.ListPatternsResponse(), codec.filter_from_pb(request.filter)
        read = self._services.patterns.patterns.list_page
        return await read_page(request, response, codec.pattern_to_pb, read, narrowed)

    async def RecallPatterns(
        self, request: pb.RecallPatternsRequest, context: Context
    ) -> pb.RecallPatternsResponse:
        requested, narrowed = codec.request_from_pb(request), codec.filter_from_pb(request.filter)
        answer = await self._services.recall.patterns.find(
            namespace_of(request), pattern_request(requested, narrowed)
        )
        return pb.RecallPatternsResponse(
            hits=[codec.pattern_hit_to_pb(hit, explain=request.explain) for hit in answer.hits],
            retrieval_id=answer.retrieval_id,
            notices=query_notices(answer),
            explanation=outcomes_codec.explanation_to_pb(answer.explanation),
        )

    async def GetPatternStats(
        self, request: pb.GetPatternStatsRequest, context: Context
    ) -> pb.GetPatternStatsResponse:
        narrowed = codec.filter_from_pb(request.filter)
        return codec.stats_to_pb(
            await self._services.patterns.patterns.stats(namespace_of(request), narrowed)
        )

    async def PrunePatterns(
        self, request: pb.PrunePatternsRequest, context: Context
    ) -> pb.PrunePatternsResponse:
        draft = codec.prune_draft_from_pb(request)
        return codec.pruned_to_pb(
            await self._services.patterns.pruner.prune(namespace_of(request), draft)
        )

    # --- outcomes and feedback --------------------------------------------------------------------

    async def RecordOutcome(
        self, request: pb.RecordOutcomeRequest, context: Context
    ) -> pb.RecordOutcomeResponse:
        recorded = await self._services.outcomes.recorder.record(
            namespace_of(request), outcomes_codec.outcome_draft_from_pb(request)
        )
        return _recorded_to_pb(recorded, pb.RecordOutcomeResponse)

    async def ListOutcomes(
        self, request: pb.ListOutcomesRequest, context: Context
    ) -> pb.ListOutcomesResponse:
        response, read = pb.ListOutcomesResponse(), self._services.outcomes.log.list_page
        to_pb, resource = (
            outcomes_codec.outcome_entry_to_pb,
            outcomes_codec.resource_from_pb(request),
        )
        return await read_page(request, response, to_pb, read, resource)

    async def CorrectOutcome(
        self, request: pb.CorrectOutcomeRequest, context: Context
    ) -> pb.CorrectOutcomeResponse:
        corrected = await self._services.outcomes.log.correct(
            namespace_of(request), outcomes_codec.correction_draft_from_pb(request)
        )
        return _recorded_to_pb(corrected, pb.CorrectOutcomeResponse)

    async def RecordPatternFeedback(
        self, request: pb.RecordPatternFeedbackRequest, context: Context
    ) -> pb.RecordPatternFeedbackResponse:
        given = await self._services.patterns.feedback.give_with_entry(
            namespace_of(request), codec.feedback_from_pb(request)
        )
        return pb.RecordPatternFeedbackResponse(
            pattern=codec.pattern_to_pb(given.pattern),
            feedback=codec.feedback_entry_to_pb(given.entry) if given.entry else None,
        )

    async def ListFeedbackCandidates(
        self, request: pb.ListFeedbackCandidatesRequest, context: Context
    ) -> pb.ListFeedbackCandidatesResponse:
        found = await self._services.patterns.feedback_candidates.find(
            namespace_of(request),
            codec.filter_from_pb(request.filter),
            request.limit or _DEFAULT_CANDIDATES,
        )
        return pb.ListFeedbackCandidatesResponse(
            patterns=[codec.pattern_to_pb(pattern) for pattern, _ in found.patterns],
            scores=[score for _, score in found.patterns],
            examined_count=found.examined,
            exact=found.exact,
        )

    # --- extraction and distillation --------------------------------------------------------------

    async def ExtractPatterns(
        self, request: pb.ExtractPatternsRequest, context: Context
    ) -> pb.ExtractPatternsResponse:
        extracted = await self._services.extraction.patterns.extract(
            namespace_of(request), codec.extraction_draft_from_pb(request)
        )
        return pb.ExtractPatternsResponse(
            patterns=map(codec.pattern_to_pb, extracted.patterns),
            episode_count=extracted.episode_count,
        )

    async def ExtractPatternsFromCode(
        self, request: pb.ExtractPatternsFromCodeRequest, context: Context
    ) -> pb.ExtractPatternsFromCodeResponse:
        extracted = await self._services.extraction.code.extract(
            namespace_of(request), codec.code_draft_from_pb(request)
        )
        patterns: list[pattern_pb2.Pattern] = []
        for pattern in extracted.patterns:
            patterns.append(codec.pattern_to_pb(pattern))
            await asyncio.sleep(0)  # thousands of them must not block other calls
        return pb.ExtractPatternsFromCodeResponse(
            patterns=patterns,
            unparsed=extracted.unparsed,
            created_count=extracted.created_count,
            notices=codec.code_notices(extracted),
        )

    async def DistillPatterns(
        self, request: pb.DistillPatternsRequest, context: Context
    ) -> pb.DistillPatternsResponse:
        distilled = await self._services.distillation.distiller.distil(
            namespace_of(request), codec.distill_request_from_pb(request)
        )
        return codec.distilled_to_pb(distilled)


def _recorded_to_pb(recorded: Recorded, response: type[R]) -> R:
    return response(
        outcome_id=recorded.outcome_id,
        patterns=map(codec.pattern_to_pb, recorded.patterns),
        memories=map(memory_to_pb, recorded.memories),
        episodes=map(episode_to_pb, recorded.episodes),
        error_solutions=map(error_solution_to_pb, recorded.error_solutions),
    )


def _result_to_pb(result: Saved | LotError) -> pb.SavePatternResult:
    if isinstance(result, LotError):
        return pb.SavePatternResult(error=to_status(result))
    return pb.SavePatternResult(response=codec.saved_to_pb(result))
