# Generated from _async/patterns.py: do not edit.
"""Patterns: save, recall, and record how using them went."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Unpack

from lot_client import fields
from lot_client._sync.base import BaseClient
from lot_client.pb.lot.v1 import pattern_service_pb2 as patterns
from lot_client.pb.lot.v1.pattern_pb2 import Pattern
from lot_client.recall import Answer, PatternRecall
from lot_client.requests import PAGE_SIZE


class PatternCalls(BaseClient):
    """The calls of `LotClient` for patterns."""

    def save_pattern(
        self,
        task: str,
        *,
        pattern_id: str = "",
        initial_success_rate: float | None = None,
        dedupe: fields.DedupeLike | None = None,
        request_id: str = "",
        **pattern: Unpack[fields.PatternFields],
    ) -> patterns.SavePatternResponse:
        """Store a pattern, or count a success for the one with the same content."""
        request = self._requests.make(
            patterns.SavePatternRequest,
            pattern={"task": task, **pattern},
            pattern_id=pattern_id,
            initial_success_rate=initial_success_rate,
            dedupe=dedupe,
            request_id=request_id,
        )
        return self.call(self.patterns.SavePattern, request)

    def batch_save_patterns(
        self, items: Iterable[fields.SavePatternItemLike]
    ) -> patterns.BatchSavePatternsResponse:
        """Save up to 500. Each may fail on its own: `LotError.from_status(result.error)`."""
        request = self._requests.make(patterns.BatchSavePatternsRequest, items=items)
        return self.call(self.patterns.BatchSavePatterns, request)

    def get_pattern(self, pattern_id: str) -> Pattern:
        """Read a pattern."""
        request = self._requests.make(patterns.GetPatternRequest, pattern_id=pattern_id)
        return self.call(self.patterns.GetPattern, request).pattern

    def update_pattern(
        self, pattern_id: str, *, etag: str = "", **edits: Unpack[fields.PatternEdits]
    ) -> patterns.UpdatePatternResponse:
        """Set only the fields given; with ``etag``, only if it was not edited since."""
        request = self._requests.update(pattern_id, etag, edits)
        return self.call(self.patterns.UpdatePattern, request)

    def delete_pattern(
        self, pattern_id: str, *, etag: str = "", allow_missing: bool = False
    ) -> bool:
        """Delete a pattern and its outcomes. False: there was none (``allow_missing``)."""
        request = self._requests.make(
            patterns.DeletePatternRequest,
            pattern_id=pattern_id,
            etag=etag,
            allow_missing=allow_missing,
        )
        return self.call(self.patterns.DeletePattern, request).deleted

    def list_patterns(
        self, *, filter: fields.PatternFilterLike | None = None, page_size: int = PAGE_SIZE
    ) -> Iterator[Pattern]:
        """All that match the filter, newest first, fetched page by page."""
        request = self._requests.make(
            patterns.ListPatternsRequest, filter=filter, page_size=page_size
        )
        return self._pages(self.patterns.ListPatterns, request, "patterns")

    def recall_patterns(
        self,
        query: str,
        *,
        filter: fields.PatternFilterLike | None = None,
        limit: int = 0,
        min_similarity: float | None = None,
        min_match: float | None = None,
        ranking: fields.RankingLike | None = None,
        seed: int | None = None,
        rerank: bool = False,
        explain: bool = False,
    ) -> PatternRecall:
        """The patterns most relevant by meaning and words; ``seed`` makes EXPLORE repeatable."""
        request = self._requests.make(
            patterns.RecallPatternsRequest,
            query=query,
            filter=filter,
            limit=limit,
            min_similarity=min_similarity,
            min_match=min_match,
            ranking=ranking,
            seed=seed,
            rerank=rerank,
            explain=explain,
        )
        return PatternRecall(query, self.call(self.patterns.RecallPatterns, request))

    def record_outcome(
        self,
        pattern_ids: str | Iterable[str],
        outcome: fields.OutcomeLike,
        *,
        memory_ids: Iterable[str] = (),
        episode_ids: Iterable[str] = (),
        error_solution_ids: Iterable[str] = (),
        recall: Answer | None = None,
        query: str = "",
        retrieval_id: str = "",
        reward: float | None = None,
        duration: timedelta | float | None = None,
        note: str = "",
        request_id: str = "",
    ) -> patterns.RecordOutcomeResponse:
        """Record how it went when records from a recall, a search or a context were used.

        Pass the response as ``recall``, or just its ``retrieval_id``. Without any ids, the outcome
        says that nothing of it was used.
        """
        request = self._requests.outcome(
            pattern_ids,
            recall,
            query,
            retrieval_id,
            memory_ids=memory_ids,
            episode_ids=episode_ids,
            error_solution_ids=error_solution_ids,
            outcome=outcome,
            reward=reward,
            duration=duration,
            note=note,
            request_id=request_id,
        )
        return self.call(self.patterns.RecordOutcome, request)

    def get_pattern_stats(
        self, *, filter: fields.PatternFilterLike | None = None
    ) -> patterns.GetPatternStatsResponse:
        """Totals over the patterns that match the filter."""
        request = self._requests.make(patterns.GetPatternStatsRequest, filter=filter)
        return self.call(self.patterns.GetPatternStats, request)
