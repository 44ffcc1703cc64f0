"""LEARNED patterns in the store: one per group, kept up to date.

Extraction rewrites what it wrote itself; fields edited since, or changed by feedback, stay. To tell
them apart, a pattern carries a hash of each field as extraction last wrote it. Outcomes stay too; a
pattern that was never used takes its group's new rate.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Final

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.extraction.learning import EXTRACTION, Learned, LearningTask
from lot_grpc.domain.ids import content_hash
from lot_grpc.domain.json_values import as_doubles
from lot_grpc.domain.origin import OriginKind, review_of_new, rewritten
from lot_grpc.domain.outcomes import OutcomeStats
from lot_grpc.domain.pattern import Pattern, PatternContent, search_text
from lot_grpc.domain.sameness import same_content
from lot_grpc.kernel.compare_and_set import ConflictError, as_read, compare_and_set
from lot_grpc.ports import Record
from lot_grpc.services.outcomes.logs import forget_older_logs
from lot_grpc.services.patterns.lineage import PatternLineage
from lot_grpc.services.patterns.spec import PATTERN
from lot_grpc.services.records.collections import PATTERNS, SORT_KEY
from lot_grpc.services.records.counters import STATS_REVISION
from lot_grpc.services.records.patterns import (
    LEARNED_FIELDS,
    content_payload,
    pattern_from_record,
    pattern_point,
    pattern_record,
    preserved_in_edits,
)
from lot_grpc.services.runtime import Runtime

_WRITTEN: Final = (
    "task", "actions", "language", "category", "task_type", "task_type_pattern", "complexity",
    "approach", "success_indicators", "failure_indicators", "recommended_context",
    "success_factors", "tools", "confidence", "source_episode_ids",
)  # fmt: skip
"""The fields that extraction writes, beside its key in the metadata."""

_DIGITS = 6


@dataclass(frozen=True, slots=True)
class _Plan:
    """The new state of a pattern; ``before`` is its record, None if it is new."""

    pattern: Pattern
    changed: bool
    before: Record | None
    hashes: Mapping[str, str]


class LearnedPatterns:
    """Stores learned patterns."""

    def __init__(self, runtime: Runtime) -> None:
        self._store = runtime.store
        self._indexer = runtime.indexer
        self._time = runtime.time
        self._lineage = PatternLineage(runtime.store, runtime.time)
        self._policies = runtime.policies

    async def find(self, namespace: str, pattern_id: str) -> Pattern | None:
        """The pattern with an id; None if it does not exist."""
        record = await self._record(namespace, pattern_id)
        return pattern_from_record(record) if record else None

    async def preview(self, learned: Learned) -> Pattern:
        """What ``store`` would return."""
        learning_task = learned.learning_task
        before = await self._record(learning_task.namespace, learning_task.pattern_id)
        return self._plan(learned, before, await self._review_origins(learning_task)).pattern

    async def store(self, learned: Learned) -> Pattern:
        """Create or update the pattern. Idempotent."""
        learning_task = learned.learning_task

        review_origins = await self._review_origins(learning_task)

        async def attempt() -> Pattern:
            before = await self._record(learning_task.namespace, learning_task.pattern_id)
            plan = self._plan(learned, before, review_origins)
            if plan.changed and not await self._write(plan):
                raise ConflictError
            return plan.pattern

        return await compare_and_set(ResourceKind.PATTERN, learning_task.pattern_id, attempt)

    async def _review_origins(self, learning_task: LearningTask) -> Collection[OriginKind]:
        return await self._policies.review_origins(learning_task.namespace)

    def _plan(
        self, learned: Learned, before: Record | None, review_origins: Collection[OriginKind]
    ) -> _Plan:
        learning_task, now = learned.learning_task, self._time.now()
        hashes = _hashes(learned.content)
        fresh = OutcomeStats(success_rate=learned.success_rate)
        if before is None:
            pattern = Pattern(
                learning_task.namespace,
                learning_task.pattern_id,
                learned.content,
                fresh,
                1,
                now,
                now,
                review=review_of_new(learned.content.origin, review_origins),
            )
            return _Plan(pattern, changed=True, before=None, hashes=hashes)
        stored = pattern_from_record(before)
        written = before.payload.get(LEARNED_FIELDS, {})
        content = _merged(stored.content, learned.content, written)
        unused = not stored.outcomes.usage_count
        outcomes = fresh if unused else stored.outcomes
        moved = unused and abs(fresh.success_rate - stored.outcomes.success_rate) > 10**-_DIGITS
        if same_content(stored.content, content) and not moved:
            return _Plan(stored, changed=False, before=before, hashes=written)
        edited = replace(
            rewritten(stored, content, review_origins),
            outcomes=outcomes,
            revision=stored.revision + 1,
            update_time=max(now, stored.update_time),
        )
        preserved = _hashes(stored.content)
        ours = {name: hashes[name] for name in _WRITTEN if preserved[name] == written.get(name)}
        return _Plan(edited, changed=True, before=before, hashes={**written, **ours})

    async def _write(self, plan: _Plan) -> bool:
        if plan.before is None:
            return await self._insert(plan)
        before = plan.before
        contents = pattern_from_record(before).content, plan.pattern.content
        indexed = await self._indexer.vectors_after_edit(before, *map(search_text, contents))
        preserved = {**preserved_in_edits(before.payload), LEARNED_FIELDS: dict(plan.hashes)}
        record = pattern_record(plan.pattern, before.payload[SORT_KEY], indexed.vectors, preserved)
        write = partial(
            self._store.replace, PATTERNS, record, as_read(before, "revision", STATS_REVISION)
        )
        return await self._lineage.carry_out(before, record.payload, write)

    async def _insert(self, plan: _Plan) -> bool:
        pattern = plan.pattern
        indexed = await self._indexer.vectors_of(search_text(pattern.content))
        record = pattern_record(pattern, self._time.sort_key(), indexed.vectors)
        record.payload[LEARNED_FIELDS] = dict(plan.hashes)
        if record.id not in await self._lineage.insert([record]):
            return False
        await forget_older_logs(self._store, PATTERN, [record])
        return True

    async def _record(self, namespace: str, pattern_id: str) -> Record | None:
        point = pattern_point(namespace, pattern_id)
        found = await self._store.get(PATTERNS, namespace, [point], vectors=True)
        return found.get(point)


def _merged(
    stored: PatternContent, learned: PatternContent, written: Mapping[str, str]
) -> PatternContent:
    """The content with learned fields, except those edited since extraction wrote them."""
    now = _hashes(stored)
    changed = {
        field.name: getattr(learned, field.name)
        for field in fields(PatternContent)
        if field.name in _WRITTEN and now[field.name] == written.get(field.name)
    }
    provenance = {**stored.metadata, EXTRACTION: learned.metadata[EXTRACTION]}
    return replace(stored, **changed, metadata=provenance)


def _hashes(content: PatternContent) -> dict[str, str]:
    """A short hash of each field, the last digits of numbers aside."""
    payload = content_payload(content)
    payload["confidence"] = round(content.confidence, _DIGITS)
    return {name: content_hash(as_doubles(payload.get(name)))[:12] for name in _WRITTEN}
