"""Recording outcomes of patterns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lot_grpc.domain.errors import PatternNotFoundError, RetrievalNotFoundError
from lot_grpc.domain.ids import new_id
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import Pattern
from lot_grpc.domain.request_hash import request_hash
from lot_grpc.kernel.idempotency import CREATE_TIMES, IdempotencyKey, create_times
from lot_grpc.ports import Record
from lot_grpc.services.outcomes.counting import OutcomeCounter
from lot_grpc.services.outcomes.query_vectors import QueryVectors
from lot_grpc.services.patterns.patterns import Patterns
from lot_grpc.services.records.outcomes import RecordedOutcome
from lot_grpc.services.records.patterns import pattern_from_record
from lot_grpc.services.runtime import Runtime

_METHOD = "RecordOutcome"


@dataclass(frozen=True, slots=True)
class OutcomeDraft:
    """An outcome to record. ``duration`` in seconds, ``reward`` in [-1, 1]."""

    pattern_ids: tuple[str, ...]
    outcome: Outcome
    retrieval_id: str = ""
    query: str = ""
    reward: float | None = None
    duration: float | None = None
    note: str = ""
    request_id: str = ""

    def hash(self) -> str:
        """Equal for equal requests."""
        return request_hash(self)


@dataclass(frozen=True, slots=True)
class Recorded:
    """The patterns after the outcome, and the id of the log entry."""

    patterns: list[Pattern]
    outcome_id: str


class OutcomeRecorder:
    """Records outcomes of patterns."""

    def __init__(
        self,
        runtime: Runtime,
        counting: OutcomeCounter,
        patterns: Patterns,
        vectors: QueryVectors,
    ) -> None:
        self._time = runtime.time
        self._idempotency = runtime.idempotency
        self._counting = counting
        self._patterns = patterns
        self._retrievals = runtime.retrievals
        self._vectors = vectors

    async def record(self, namespace: str, draft: OutcomeDraft) -> Recorded:
        """Count an outcome once for each pattern.

        Raises PatternNotFoundError and RetrievalNotFoundError, and then counts none.
        """
        key = _key(namespace, draft)
        entry = await self._idempotency.find(key)
        if entry is None:
            query, vector = await self._query_vectors(namespace, draft, required=True)
            present = known = await self._require_patterns(namespace, draft.pattern_ids)
            key = replace(key, plan={**key.plan, CREATE_TIMES: create_times(present)})
            entry = await self._idempotency.begin(key)
        else:
            present, known = await self._patterns.records(namespace, draft.pattern_ids), {}
            query, vector = "", None
            if entry.result is None:
                query, vector = await self._query_vectors(namespace, draft, required=False)
        present = entry.about(present)
        if entry.result is not None:
            return _recorded(draft, present, entry.plan)
        now = self._time.now()
        recorded_outcomes = [
            RecordedOutcome(
                namespace,
                entry.plan["outcome_id"],
                pattern_id,
                draft.outcome,
                now,
                reward=draft.reward,
                duration=draft.duration,
                query=query,
                retrieval_id=draft.retrieval_id,
                note=draft.note,
            )
            for pattern_id in draft.pattern_ids
            if pattern_id in present
        ]
        counted = await self._counting.count(recorded_outcomes, known, vector)
        await self._idempotency.finish(entry, {"pattern_ids": list(draft.pattern_ids)})
        return _recorded(draft, counted, entry.plan)

    async def _require_patterns(
        self, namespace: str, pattern_ids: tuple[str, ...]
    ) -> dict[str, Record]:
        present = await self._patterns.records(namespace, pattern_ids)
        for pattern_id in pattern_ids:
            if pattern_id not in present:
                raise PatternNotFoundError(
                    namespace, pattern_id, "the outcome was not counted for any pattern"
                )
        return present

    async def _query_vectors(
        self, namespace: str, draft: OutcomeDraft, *, required: bool
    ) -> tuple[str, Sequence[float] | None]:
        """What was asked, and its vector. A retry does without an unknown retrieval.

        Before anything is written, so that nothing is where the vector cannot be had.
        """
        query, retrieval = draft.query, None
        if draft.retrieval_id:
            retrieval = await self._retrievals.find(namespace, draft.retrieval_id)
        if draft.retrieval_id and not query:
            if retrieval is None and required:
                raise RetrievalNotFoundError(
                    namespace, draft.retrieval_id, "send query as well, or instead"
                )
            query = retrieval.query if retrieval else ""
        if not query:
            return "", None
        return query, await self._vectors.of(query, retrieval)


def _recorded(
    draft: OutcomeDraft, records: Mapping[str, Record], plan: Mapping[str, Any]
) -> Recorded:
    """The patterns that still exist, in the order of the request."""
    patterns = [pattern_from_record(records[one]) for one in draft.pattern_ids if one in records]
    return Recorded(patterns, plan["outcome_id"])


def _key(namespace: str, draft: OutcomeDraft) -> IdempotencyKey:
    content = draft.hash() if draft.request_id else ""  # else it is not compared
    return IdempotencyKey(
        namespace, _METHOD, draft.request_id, content, {"outcome_id": new_id("o")}
    )
