"""Feedback moves the confidence of a pattern, each just once, whatever dies in between.

As for outcomes (``services.outcomes.facts``): (a) the feedback is written as a fact, insert-only
and unsettled; (b) a compare-and-set of the pattern moves its confidence and its counts, and puts
how the fact counted into ``unsettled_feedback``, in the same point; (c) the fact is settled with
that; (d) the next feedback of the pattern drops it from there. Since steps are clamped, their order
matters, and so each has a number.

The confidence is a field that callers edit, too. A feedback is written only on top of the content
and the counters that it read, and so is an edit, so neither undoes the other; it leaves the
pattern's revision alone, so no editor's etag goes stale by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lot_grpc.domain.errors import ContentionError, PatternNotFoundError
from lot_grpc.domain.feedback import adjustment_of, moved
from lot_grpc.domain.ids import content_hash, new_id
from lot_grpc.domain.pattern import Pattern
from lot_grpc.ports import Equals, IdIn, Order, Payload, Record, VectorStore
from lot_grpc.services.ledger import CREATE_TIME, Ask, Ledger
from lot_grpc.services.patterns.patterns import RESOURCE_KIND, Patterns
from lot_grpc.services.records.collections import FEEDBACK, PATTERNS, SORT_KEY
from lot_grpc.services.records.feedback import (
    FeedbackEntry,
    FeedbackFact,
    FeedbackStep,
    feedback_from_record,
    feedback_record,
    step_from_payload,
)
from lot_grpc.services.records.outcomes import SETTLED
from lot_grpc.services.records.patterns import (
    STATS_REVISION,
    UNSETTLED_FEEDBACK,
    feedback_payload,
    pattern_from_record,
    pattern_point,
)
from lot_grpc.services.time_slice import TimeSlice, pause_before_retry
from lot_grpc.services.time_source import TimeSource
from lot_grpc.services.tombstones import DELETED_SINCE

HISTORY = 100
"""How many entries a history shows at most, the latest."""

_METHOD = "GiveFeedback"
_TRIES = 50
_BATCH = 500


@dataclass(frozen=True, slots=True)
class FeedbackDraft:
    """A feedback to give: ``helpful``, an adjustment in [-1, 1] of the confidence, or both."""

    pattern_id: str
    helpful: bool | None = None
    confidence_adjustment: float | None = None
    text: str = ""
    request_id: str = ""

    def hash(self) -> str:
        """The same for the same request."""
        return content_hash(asdict(self))

    def check(self) -> None:
        """Raise for one that says nothing, or an adjustment out of range."""
        adjustment_of(self.helpful, self.confidence_adjustment)


@dataclass(frozen=True, slots=True)
class Given:
    """A pattern after a feedback, and that feedback. An earlier one may be gone from the log."""

    pattern: Pattern
    entry: FeedbackEntry | None


class Feedback:
    """Gives feedback, and tells it."""

    def __init__(
        self,
        store: VectorStore,
        time_source: TimeSource,
        ledger: Ledger,
        patterns: Patterns,
    ) -> None:
        self._store = store
        self._time = time_source
        self._ledger = ledger
        self._patterns = patterns

    async def give(self, namespace: str, draft: FeedbackDraft) -> Pattern:
        """Count a feedback once; return the pattern as it now stands.

        Raises PatternNotFoundError (nothing is kept then), RequestIdReusedError, ContentionError
        (the feedback is kept then, and counted by the next retry or sweep).
        """
        return (await self.give_with_entry(namespace, draft)).pattern

    async def give_with_entry(self, namespace: str, draft: FeedbackDraft) -> Given:
        """As ``give``, with the feedback as it counted."""
        draft.check()
        plan: dict[str, Any] = {"feedback_id": new_id("f")}
        ask = Ask(namespace, _METHOD, draft.request_id, draft.hash(), plan)
        entry = await self._ledger.find(ask) if draft.request_id else None
        records = await self._patterns.records(namespace, (draft.pattern_id,))
        record = records.get(draft.pattern_id)
        if record is not None and entry is None:
            plan[CREATE_TIME] = record.payload[CREATE_TIME]
            entry = await self._ledger.begin(ask) if draft.request_id else None
        if record is None or (entry is not None and not entry.is_about(record)):
            hint = DELETED_SINCE if entry is not None else ""
            raise PatternNotFoundError(namespace, draft.pattern_id, hint)
        feedback_id = (entry.plan if entry is not None else plan)["feedback_id"]
        if entry is None or entry.result is None:
            await self._count(self._fact(namespace, feedback_id, draft))
            if entry is not None:
                await self._ledger.finish(entry, {"feedback_id": feedback_id})
        pattern = await self._patterns.get(namespace, draft.pattern_id)
        return Given(pattern, await self._find(self._fact(namespace, feedback_id, draft)))

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
        """Count what was written before ``before`` and never settled; return how many."""
        counted = 0
        time_slice = TimeSlice()
        while True:
            rows = await self._store.scroll(FEEDBACK, None, [Equals(SETTLED, False)], limit=_BATCH)
            late = [row for row in rows if row.payload["create_time"] <= before]
            for row in late:
                await self._take_in(feedback_from_record(row).fact)
                await time_slice.give_way()
            counted += len(late)
            if not late or len(rows) < _BATCH:
                return counted

    # --- steps --------------------------------------------------------------------------------

    def _fact(self, namespace: str, feedback_id: str, draft: FeedbackDraft) -> FeedbackFact:
        return FeedbackFact(
            namespace,
            feedback_id,
            draft.pattern_id,
            self._time.now(),
            draft.helpful,
            draft.confidence_adjustment,
            draft.text,
        )

    async def _count(self, fact: FeedbackFact) -> None:
        record = feedback_record(fact, self._time.sort_key())
        if record.id not in await self._store.insert(FEEDBACK, [record]):
            stored = await self._find(fact)
            if stored is None:  # it went with its pattern meanwhile
                return
            fact = stored.fact
        await self._take_in(fact)

    async def _take_in(self, fact: FeedbackFact) -> None:
        """Count a fact if it is not counted, and settle it. One without a pattern is dropped."""
        point = pattern_point(fact.namespace, fact.pattern_id)
        for attempt in range(_TRIES):
            record = (await self._store.get(PATTERNS, fact.namespace, [point])).get(point)
            if record is None:
                await self._store.delete(FEEDBACK, fact.namespace, [IdIn((fact.point,))])
                return
            unsettled: dict[str, Payload] = record.payload.get(UNSETTLED_FEEDBACK, {})
            # Read after the pattern: what was dropped from there since changes its revision.
            settled = await self._settled(fact.namespace, [fact.point, *unsettled])
            if fact.point in settled:
                return
            step = (
                step_from_payload(unsettled[fact.point])
                if fact.point in unsettled
                else await self._step(record, fact, unsettled.keys() - settled)
            )
            if step is not None:
                await self._store.update(
                    FEEDBACK,
                    fact.namespace,
                    fact.point,
                    set={SETTLED: True, **step.payload()},
                )
                return
            await pause_before_retry(attempt)
        raise ContentionError(RESOURCE_KIND, fact.pattern_id)

    async def _step(
        self, record: Record, fact: FeedbackFact, unsettled: Mapping[str, Any] | set[str]
    ) -> FeedbackStep | None:
        """Move the pattern on; None if it was edited, used or moved since it was read."""
        pattern = pattern_from_record(record)
        before = pattern.content.confidence
        adjustment = adjustment_of(fact.helpful, fact.confidence_adjustment)
        counts = pattern.feedback.record(fact.helpful, fact.create_time)
        step = FeedbackStep(counts.feedback_count, before, moved(before, adjustment))
        kept = record.payload.get(UNSETTLED_FEEDBACK, {})
        revision = record.payload[STATS_REVISION]
        written = await self._store.update(
            PATTERNS,
            fact.namespace,
            record.id,
            set={
                "confidence": step.confidence_after,
                **feedback_payload(counts),
                UNSETTLED_FEEDBACK: {
                    **{one: kept[one] for one in kept if one in unsettled},
                    fact.point: step.payload(),
                },
                STATS_REVISION: revision + 1,
            },
            when=[Equals("revision", pattern.revision), Equals(STATS_REVISION, revision)],
        )
        return step if written else None

    async def _settled(self, namespace: str, points: list[str]) -> set[str]:
        """Those of the facts that are settled, or gone."""
        facts = await self._store.get(FEEDBACK, namespace, points)
        return {p for p in points if p not in facts or facts[p].payload[SETTLED]}

    async def _find(self, fact: FeedbackFact) -> FeedbackEntry | None:
        found = await self._store.get(FEEDBACK, fact.namespace, [fact.point])
        return feedback_from_record(found[fact.point]) if fact.point in found else None
