"""Feedback changes the confidence of a pattern, exactly once, even across crashes.

It is applied once, like outcomes (``kernel.apply_once``). Next to its id, the pattern remembers how
it counted, and this is stored with the feedback too. Steps are clamped, so their order matters and
each has a number.

The confidence is also a field that callers edit. Feedback and edits are written only on top of the
content and counters they read, so neither undoes the other. Feedback leaves the pattern's revision
alone, so no etag becomes stale.
"""

from __future__ import annotations

from dataclasses import dataclass

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import PatternNotFoundError
from lot_grpc.domain.feedback import adjustment_of, moved
from lot_grpc.domain.ids import new_id
from lot_grpc.domain.pattern import Pattern
from lot_grpc.domain.request_hash import request_hash
from lot_grpc.kernel.apply_once import Target, apply_once
from lot_grpc.kernel.compare_and_set import update_as_read
from lot_grpc.kernel.idempotency import IdempotencyKey
from lot_grpc.kernel.intents import Journal, Mark
from lot_grpc.kernel.tombstones import DELETED_SINCE
from lot_grpc.ports import Equals, IdIn, Order, Payload, Record
from lot_grpc.services.patterns.patterns import Patterns
from lot_grpc.services.records.collections import FEEDBACK, PATTERNS, SORT_KEY
from lot_grpc.services.records.counters import STATS_REVISION
from lot_grpc.services.records.feedback import (
    FeedbackEntry,
    FeedbackStep,
    GivenFeedback,
    feedback_from_record,
    feedback_record,
)
from lot_grpc.services.records.outcomes import APPLIED
from lot_grpc.services.records.patterns import (
    PENDING_FEEDBACK,
    feedback_payload,
    pattern_from_record,
    pattern_point,
)
from lot_grpc.services.runtime import Runtime

HISTORY = 100
"""How many entries a history shows at most, the latest."""

_METHOD = "RecordPatternFeedback"


@dataclass(frozen=True, slots=True)
class FeedbackDraft:
    """Feedback to give: ``helpful``, an adjustment of the confidence in [-1, 1], or both."""

    pattern_id: str
    helpful: bool | None = None
    confidence_adjustment: float | None = None
    text: str = ""
    request_id: str = ""

    def hash(self) -> str:
        """Equal for equal requests."""
        return request_hash(self)

    def check(self) -> None:
        """Raise RequestInvalidError if it is empty or the adjustment is out of range."""
        adjustment_of(self.helpful, self.confidence_adjustment)


@dataclass(frozen=True, slots=True)
class Given:
    """A pattern after feedback, and that feedback; None if it is no longer in the log."""

    pattern: Pattern
    entry: FeedbackEntry | None


class Feedback:
    """Applies feedback to patterns, and lists it."""

    def __init__(self, runtime: Runtime, patterns: Patterns) -> None:
        self._store = runtime.store
        self._time = runtime.time
        self._idempotency = runtime.idempotency
        self._patterns = patterns
        self._journal = Journal(runtime.store, FEEDBACK, Mark(APPLIED))

    async def give(self, namespace: str, draft: FeedbackDraft) -> Pattern:
        """Apply feedback once; return the pattern as it is afterwards.

        Raises PatternNotFoundError (nothing is kept then), RequestIdReusedError, ContentionError
        (the feedback is kept then, and counted by the next retry or sweep).
        """
        return (await self.give_with_entry(namespace, draft)).pattern

    async def give_with_entry(self, namespace: str, draft: FeedbackDraft) -> Given:
        """Like ``give``, but also return the feedback as applied."""
        draft.check()
        plan = {"feedback_id": new_id("f")}
        key = IdempotencyKey(namespace, _METHOD, draft.request_id, draft.hash(), plan)
        earlier = await self._idempotency.find(key)
        records = await self._patterns.records(namespace, (draft.pattern_id,))
        entry = await self._idempotency.begin_about(key, records.get(draft.pattern_id), earlier)
        if entry is None:
            hint = DELETED_SINCE if earlier or records else ""
            raise PatternNotFoundError(namespace, draft.pattern_id, hint)
        given = self._given(namespace, entry.plan["feedback_id"], draft)
        if entry.result is None:
            await self._count(given, records[draft.pattern_id].payload[SORT_KEY])
            await self._idempotency.finish(entry, {"feedback_id": given.feedback_id})
        return Given(await self._patterns.get(namespace, draft.pattern_id), await self._find(given))

    async def history(self, namespace: str, pattern_id: str) -> list[FeedbackEntry]:
        """The latest feedback of a pattern, newest first, at most ``HISTORY``."""
        rows = await self._store.scroll(
            FEEDBACK,
            namespace,
            [Equals("pattern_id", pattern_id)],
            limit=HISTORY,
            order=Order(SORT_KEY, descending=True),
        )
        return [feedback_from_record(row) for row in rows]

    async def roll_forward(self, before: int) -> int:
        """Apply what was written before ``before`` but never applied; return how much."""

        async def count(row: Record) -> None:
            await self._take_in(feedback_from_record(row).given)

        return await self._journal.recover(before, count)

    # --- steps --------------------------------------------------------------------------------

    def _given(self, namespace: str, feedback_id: str, draft: FeedbackDraft) -> GivenFeedback:
        return GivenFeedback(
            namespace,
            feedback_id,
            draft.pattern_id,
            self._time.now(),
            draft.helpful,
            draft.confidence_adjustment,
            draft.text,
        )

    async def _count(self, given: GivenFeedback, after: int) -> None:
        record = feedback_record(given, self._time.sort_key(after))
        if not await self._journal.write([record]):
            stored = await self._find(given)
            if stored is None:  # it was deleted with its pattern
                return
            given = stored.given
        await self._take_in(given)

    async def _take_in(self, given: GivenFeedback) -> None:
        """Apply feedback unless it was applied. Feedback without a pattern is deleted."""
        point = pattern_point(given.namespace, given.pattern_id)
        target = Target(
            ResourceKind.PATTERN,
            given.pattern_id,
            given.namespace,
            PATTERNS,
            point,
            PENDING_FEEDBACK,
        )

        async def move(record: Record | None, pending: dict[str, Payload]) -> Record | None:
            if record is None:
                return None
            pattern = pattern_from_record(record)
            before = pattern.content.confidence
            adjustment = adjustment_of(given.helpful, given.confidence_adjustment)
            counts = pattern.feedback.record(given.helpful, given.create_time)
            step = FeedbackStep(counts.feedback_count, before, moved(before, adjustment))
            changed = {
                "confidence": step.confidence_after,
                **feedback_payload(counts),
                PENDING_FEEDBACK: {**pending, given.point: step.payload()},
            }
            keys = (STATS_REVISION, "revision")
            return await update_as_read(self._store, PATTERNS, record, changed, *keys)

        record = await apply_once(
            self._store, self._journal, given.point, target, move, remember={}
        )
        if record is None:
            await self._store.delete(FEEDBACK, given.namespace, [IdIn((given.point,))])
        elif step := record.payload.get(PENDING_FEEDBACK, {}).get(given.point):
            await self._journal.finish(given.namespace, given.point, step)

    async def _find(self, given: GivenFeedback) -> FeedbackEntry | None:
        found = await self._store.get(FEEDBACK, given.namespace, [given.point])
        return feedback_from_record(found[given.point]) if given.point in found else None
