"""PatternService on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from lot_grpc.domain.counting import counted
from lot_grpc.domain.errors import LimitExceededError, LotError, PatternNotFoundError
from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.domain.pattern import Pattern
from lot_grpc.domain.query import Ranking
from lot_grpc.pb.lot.v1 import outcome_pb2
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pb
from lot_grpc.pb.lot.v1 import pattern_service_pb2_grpc as pb_grpc
from lot_grpc.server.answers import Page
from lot_grpc.server.call import Context
from lot_grpc.server.convert import patterns as convert
from lot_grpc.server.convert.feedback import confidence_notices
from lot_grpc.server.convert.hits import pattern_hit_to_pb
from lot_grpc.server.convert.outcomes import (
    OUTCOME,
    RANKING,
    explanation_to_pb,
    merged_notices,
    query_notices,
    text_notices,
    unchanged_notices,
)
from lot_grpc.server.convert.values import seconds_from_pb
from lot_grpc.server.page_token import position_from_token, position_to_token
from lot_grpc.server.status import to_status
from lot_grpc.services.outcomes.outcomes import OutcomeDraft, OutcomeRecorder
from lot_grpc.services.patterns.drafts import PatternDraft, Saved
from lot_grpc.services.patterns.feedback import Feedback
from lot_grpc.services.patterns.pattern_stats import PatternStats
from lot_grpc.services.patterns.pattern_writer import PatternWriter
from lot_grpc.services.patterns.patterns import Patterns, Updated
from lot_grpc.services.recall.recall import Recall
from lot_grpc.services.recall.targets import RecallOptions, pattern_request

_DEFAULT_LIMIT = 5
_DEFAULT_PAGE = 10


class PatternServicer(pb_grpc.PatternServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(
        self,
        pattern_writer: PatternWriter,
        patterns: Patterns,
        recall: Recall[Pattern],
        outcomes: OutcomeRecorder,
        feedback: Feedback,
        max_batch_items: int,
    ) -> None:
        self._pattern_writer = pattern_writer
        self._patterns = patterns
        self._recall = recall
        self._outcomes = outcomes
        self._feedback = feedback
        self._max_batch_items = max_batch_items

    async def SavePattern(
        self, request: pb.SavePatternRequest, context: Context
    ) -> pb.SavePatternResponse:
        draft = convert.draft_from_pb(request)
        saved = await self._pattern_writer.save(namespace_or_default(request.namespace), draft)
        return _saved_to_pb(saved)

    async def BatchSavePatterns(
        self, request: pb.BatchSavePatternsRequest, context: Context
    ) -> pb.BatchSavePatternsResponse:
        if len(request.items) > self._max_batch_items:
            raise LimitExceededError(
                f"at most {counted(self._max_batch_items, 'item')} per batch on this server; "
                "split it",
                limit=self._max_batch_items,
                given=len(request.items),
            )
        drafts: list[PatternDraft | LotError] = []
        for item in request.items:
            drafts.append(_draft_or_error(item))
            await asyncio.sleep(0)  # a batch of large items must not hold all other calls
        saved = iter(
            await self._pattern_writer.save_many(
                namespace_or_default(request.namespace),
                [draft for draft in drafts if isinstance(draft, PatternDraft)],
            )
        )
        results = [draft if isinstance(draft, LotError) else next(saved) for draft in drafts]
        return pb.BatchSavePatternsResponse(
            results=[_result_to_pb(result) for result in results],
            # One that is named twice by its request id was new once.
            created_count=len(
                {r.pattern.pattern_id for r in results if isinstance(r, Saved) and r.created}
            ),
            failed_count=sum(isinstance(r, LotError) for r in results),
        )

    async def UpdatePattern(
        self, request: pb.UpdatePatternRequest, context: Context
    ) -> pb.UpdatePatternResponse:
        convert.same_id("pattern", request.pattern.pattern_id, request.pattern_id)
        edit = convert.edit_from_pb(request.pattern, request.update_mask)
        updated = await self._patterns.update(
            namespace_or_default(request.namespace), request.pattern_id, edit, request.etag
        )
        return pb.UpdatePatternResponse(
            pattern=convert.pattern_to_pb(updated.pattern),
            notices=[*_unread_notices(updated), *confidence_notices(updated.unchanged_fields)],
        )

    async def DeletePattern(
        self, request: pb.DeletePatternRequest, context: Context
    ) -> pb.DeletePatternResponse:
        try:
            await self._patterns.delete(
                namespace_or_default(request.namespace), request.pattern_id, request.etag
            )
        except PatternNotFoundError:
            if not request.allow_missing:
                raise
            return pb.DeletePatternResponse(deleted=False)
        return pb.DeletePatternResponse(deleted=True)

    async def ListPatterns(
        self, request: pb.ListPatternsRequest, context: Context
    ) -> pb.ListPatternsResponse:
        page = Page(request, pb.ListPatternsResponse(), convert.pattern_to_pb)
        found = await self._patterns.list_page(
            namespace_or_default(request.namespace),
            convert.filter_from_pb(request.filter),
            request.page_size or _DEFAULT_PAGE,
            position_from_token(request, request.page_token),
            page.fits,
        )
        return page.ending(position_to_token(request, found.next))

    async def RecallPatterns(
        self, request: pb.RecallPatternsRequest, context: Context
    ) -> pb.RecallPatternsResponse:
        requested = RecallOptions(
            query=request.query,
            limit=request.limit or _DEFAULT_LIMIT,
            min_similarity=request.min_similarity,
            ranking=RANKING.from_pb(request.ranking) or Ranking.BALANCED,
            seed=request.seed if request.HasField("seed") else None,
            rerank=request.rerank,
            explain=request.explain,
        )
        answer = await self._recall.find(
            namespace_or_default(request.namespace),
            pattern_request(requested, convert.filter_from_pb(request.filter)),
        )
        return pb.RecallPatternsResponse(
            hits=[pattern_hit_to_pb(hit, explain=request.explain) for hit in answer.hits],
            retrieval_id=answer.retrieval_id,
            notices=query_notices(answer),
            explanation=explanation_to_pb(answer.explanation),
        )

    async def RecordOutcome(
        self, request: pb.RecordOutcomeRequest, context: Context
    ) -> pb.RecordOutcomeResponse:
        draft = OutcomeDraft(
            pattern_ids=tuple(request.pattern_ids),
            outcome=OUTCOME.all_from_pb([request.outcome])[0],
            retrieval_id=request.retrieval_id,
            query=request.query,
            reward=request.reward if request.HasField("reward") else None,
            duration=seconds_from_pb(request, "duration"),
            note=request.note,
            request_id=request.request_id,
        )
        recorded = await self._outcomes.record(namespace_or_default(request.namespace), draft)
        return pb.RecordOutcomeResponse(
            patterns=[convert.pattern_to_pb(pattern) for pattern in recorded.patterns],
            outcome_id=recorded.outcome_id,
        )

    async def GetPatternStats(
        self, request: pb.GetPatternStatsRequest, context: Context
    ) -> pb.GetPatternStatsResponse:
        stats = await self._patterns.stats(
            namespace_or_default(request.namespace), convert.filter_from_pb(request.filter)
        )
        return _stats_to_pb(stats)


def _draft_or_error(item: pb.SavePatternItem) -> PatternDraft | LotError:
    try:
        return convert.draft_from_pb(item)
    except LotError as error:
        return error


def _saved_to_pb(saved: Saved) -> pb.SavePatternResponse:
    return pb.SavePatternResponse(
        pattern=convert.pattern_to_pb(saved.pattern),
        created=saved.created,
        notices=[
            *_unread_notices(saved),
            *unchanged_notices("pattern", saved.unchanged_fields),
            *merged_notices("pattern", saved.pattern.pattern_id, saved.merged_at),
        ],
    )


def _unread_notices(stored: Saved | Updated) -> list[outcome_pb2.Notice]:
    return [
        *text_notices("pattern.task", truncated=stored.text_truncated),
        *text_notices("pattern.code", truncated=stored.code_truncated),
    ]


def _result_to_pb(result: Saved | LotError) -> pb.SavePatternResult:
    if isinstance(result, LotError):
        return pb.SavePatternResult(error=to_status(result))
    return pb.SavePatternResult(response=_saved_to_pb(result))


def _stats_to_pb(stats: PatternStats) -> pb.GetPatternStatsResponse:
    return pb.GetPatternStatsResponse(
        total_patterns=stats.total,
        average_success_rate=stats.average_success_rate,
        max_success_rate=stats.max_success_rate,
        total_usage_count=stats.total_usage,
        most_used_pattern_id=stats.most_used_pattern_id,
        by_language=stats.by_language,
        by_category=stats.by_category,
        by_kind=_named(stats.by_kind),
        min_success_rate=stats.min_success_rate,
        used_count=stats.used,
        average_used_success_rate=stats.average_used_success_rate,
        total_success_count=stats.total_success,
        total_failure_count=stats.total_failure,
        total_partial_count=stats.total_partial,
        success_share=stats.success_share,
        pinned_count=stats.pinned,
        by_pattern_type=_named(stats.by_pattern_type),
        by_code_kind=_named(stats.by_code_kind),
        by_task_type=stats.by_task_type,
    )


def _named(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts by the names of an enum, without their prefix."""
    return {name.upper(): count for name, count in counts.items()}
