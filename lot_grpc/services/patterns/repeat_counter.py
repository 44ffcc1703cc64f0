"""Saves that add no pattern, but count as a success of one that is stored.

Those of the same content (``dedupe`` EXACT), or of nearly the same meaning (SEMANTIC).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.ids import ResourceRef
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import dedupe_hash, different_fields, search_text
from lot_grpc.domain.recorded_outcome import RecordedOutcome
from lot_grpc.kernel.compare_and_set import ConflictError, compare_and_set
from lot_grpc.kernel.idempotency import CREATE_TIME
from lot_grpc.ports import Record, VectorStore
from lot_grpc.services.outcomes.counting import OutcomeCounter
from lot_grpc.services.patterns.drafts import Saved, SaveWork
from lot_grpc.services.patterns.nearest import Nearest
from lot_grpc.services.records.collections import PATTERNS
from lot_grpc.services.records.patterns import pattern_from_record, pattern_point
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.unique_content import UniqueContentIndex


class RepeatCounter:
    """Counts repeated saves as successes of stored patterns."""

    def __init__(
        self,
        runtime: Runtime,
        counting: OutcomeCounter,
        content_index: UniqueContentIndex,
        nearest: Nearest,
    ) -> None:
        self._store = runtime.store
        self._indexer = runtime.indexer
        self._time = runtime.time
        self._idempotency = runtime.idempotency
        self._counting = counting
        self._content_index = content_index
        self._nearest = nearest

    async def merge(self, work: SaveWork) -> None:
        """Count a SEMANTIC save for the pattern of nearly the same meaning, if there is one.

        A request notes which pattern that is before it counts, so a retry counts for no other.
        """
        if not work.draft.semantic:
            return
        planned = work.entry.plan.get("merge") if work.entry else None
        if planned is not None:
            record = await stored_pattern(self._store, work.namespace, planned["pattern_id"])
            created = record.payload[CREATE_TIME] if record is not None else None
            if created is None or planned.get(CREATE_TIME, created) != created:
                planned = None  # that one is gone

        async def attempt() -> Saved | None:
            nonlocal planned
            merge, planned = planned or await self._plan_merge(work), None
            if merge is None:
                return None
            saved = await self.count(work, merge["pattern_id"])
            if saved is None:  # that one is gone
                raise ConflictError
            return replace(saved, merged_at=merge["similarity"])

        work.result = await compare_and_set(ResourceKind.PATTERN, work.id, attempt)

    async def count(self, work: SaveWork, pattern_id: str) -> Saved | None:
        """Count a save as a success of a pattern, exactly once; None if the pattern is gone."""
        record = await stored_pattern(self._store, work.namespace, pattern_id)
        if record is None:
            return None
        recorded = RecordedOutcome(
            work.namespace,
            work.outcome_id,
            ResourceRef(ResourceKind.PATTERN, pattern_id),
            Outcome.SUCCESS,
            self._time.now(),
            from_repeated_save=True,
        )
        counted = await self._counting.count([recorded], {record.id: record})
        if record.id not in counted:
            return None
        pattern = pattern_from_record(counted[record.id])
        unchanged_fields = different_fields(pattern.content, work.draft.content)
        return Saved(pattern, created=False, unchanged_fields=unchanged_fields)

    async def _plan_merge(self, work: SaveWork) -> Mapping[str, Any] | None:
        content = work.draft.content
        if work.claimed:  # by a pattern of just this content, as a rule
            owner = await self._content_index.owner(work.namespace, work.claim, work.id)
            record = await stored_pattern(self._store, work.namespace, owner)
            if record and dedupe_hash(pattern_from_record(record).content) == dedupe_hash(content):
                return None
        if work.indexed is None:
            work.indexed = await self._indexer.vectors_of(search_text(content))
        near = await self._nearest.find(work.namespace, content, work.indexed.vectors)
        if near is None:
            return None
        if dedupe_hash(near.pattern.content) == dedupe_hash(content):
            return None  # another save of this content was first: no merge, a repeat
        found = {
            "pattern_id": near.pattern.pattern_id,
            "similarity": near.similarity,
            CREATE_TIME: near.pattern.create_time,
        }
        if work.entry is None:
            return found
        work.entry = await self._idempotency.replan(work.entry, {**work.entry.plan, "merge": found})
        planned: Mapping[str, Any] | None = work.entry.plan.get("merge")
        return planned


async def stored_pattern(store: VectorStore, namespace: str, pattern_id: str) -> Record | None:
    """The record of a pattern; None if it does not exist."""
    point = pattern_point(namespace, pattern_id)
    return (await store.get(PATTERNS, namespace, [point])).get(point)
