"""Decisions: record them and what came of them, read, list and delete them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lot_grpc.domain.decision import (
    Decision,
    DecisionContent,
    DecisionFilter,
    DecisionOutcome,
)
from lot_grpc.domain.errors import (
    ContentionError,
    DecisionIdInUseError,
    DecisionNotFoundError,
    EtagMismatchError,
)
from lot_grpc.domain.ids import content_hash
from lot_grpc.domain.json_values import fields_to_hash
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.sameness import same_values
from lot_grpc.ports import Equals, Record, VectorStore
from lot_grpc.services.ledger import CREATE_TIME, Ask, Entry, Ledger
from lot_grpc.services.once import Insertion, Once
from lot_grpc.services.paging import Fits, Page, Position, any_size, each, read_page
from lot_grpc.services.records.collections import DECISIONS, REQUESTS, SORT_KEY
from lot_grpc.services.records.decisions import (
    REVISION,
    UNSETTLED,
    decision_conditions,
    decision_from_record,
    decision_point,
    decision_record,
    result_payload,
)
from lot_grpc.services.settling import settled_among
from lot_grpc.services.time_slice import pause_before_retry
from lot_grpc.services.time_source import TimeSource
from lot_grpc.services.tombstones import DELETED_SINCE, Tombstone, Tombstones

RESOURCE_KIND = "decision"
_TRIES = 50


@dataclass(frozen=True, slots=True)
class DecisionDraft:
    """A decision to record."""

    content: DecisionContent
    decision_id: str = ""
    request_id: str = ""

    def hash(self) -> str:
        """The same for the same request."""
        return content_hash([fields_to_hash(self.content), self.decision_id])


@dataclass(frozen=True, slots=True)
class DecisionOutcomeDraft:
    """What came of a decision. ``reward`` in [-1, 1], None: not said."""

    decision_id: str
    outcome: Outcome
    reward: float | None = None
    note: str = ""
    request_id: str = ""


class Decisions:
    """The decisions of all namespaces."""

    def __init__(
        self,
        store: VectorStore,
        time_source: TimeSource,
        ledger: Ledger,
        once: Once,
        tombstones: Tombstones,
    ) -> None:
        self._store = store
        self._time = time_source
        self._ledger = ledger
        self._once = once
        self._tombstones = tombstones

    async def record(self, namespace: str, draft: DecisionDraft) -> tuple[Decision, bool]:
        """Record one; say whether it was created.

        Raises DecisionIdInUseError, RequestIdReusedError; DecisionNotFoundError where a repeat
        meets what was deleted since.
        """

        def make(id: str) -> Record:
            decision = Decision(namespace, id, draft.content, self._time.now())
            return decision_record(decision, self._time.sort_key())

        def require_same(stored: Record) -> None:
            decision = decision_from_record(stored)
            if not same_values(decision.content, draft.content):
                raise DecisionIdInUseError(namespace, decision.decision_id)

        record, created = await self._once.insert(
            Insertion(
                namespace,
                DECISIONS,
                "RecordDecision",
                "d",
                draft.hash(),
                make,
                require_same,
                draft.decision_id,
                draft.request_id,
                RESOURCE_KIND,
                DecisionNotFoundError,
            )
        )
        return decision_from_record(record), created

    async def get(self, namespace: str, decision_id: str) -> Decision:
        """One decision. Raises DecisionNotFoundError."""
        return decision_from_record(await self._record(namespace, decision_id))

    async def list_page(
        self,
        namespace: str,
        criteria: DecisionFilter,
        size: int,
        after: Position | None,
        fits: Fits[Decision] = any_size,
    ) -> Page[Decision]:
        """A page, newest first, and where the next one begins."""
        where, read = decision_conditions(criteria), each(decision_from_record)
        return await read_page(self._store, DECISIONS, namespace, where, size, after, read, fits)

    async def record_outcome(self, namespace: str, draft: DecisionOutcomeDraft) -> Decision:
        """Record what came of a decision, in place of an earlier outcome.

        A request that is sent again does not undo what was recorded after it. Raises
        DecisionNotFoundError, RequestIdReusedError, ContentionError.
        """
        record = await self._record(namespace, draft.decision_id)
        entry = await self._begin(record, draft) if draft.request_id else None
        if entry is not None and entry.result is not None:
            return await self.get(namespace, draft.decision_id)
        result = DecisionOutcome(draft.outcome, self._time.now(), draft.reward, draft.note)
        record = await self._take_outcome(namespace, draft.decision_id, result, entry)
        if entry is not None:
            await self._ledger.finish(entry, {})
        return decision_from_record(record)

    async def _begin(self, record: Record, draft: DecisionOutcomeDraft) -> Entry:
        """Enter the request. Another decision that took the id since is none of its business."""
        given = content_hash([draft.decision_id, draft.outcome, draft.reward, draft.note])
        plan = {CREATE_TIME: record.payload[CREATE_TIME]}
        ask = Ask(record.namespace, "RecordDecisionOutcome", draft.request_id, given, plan)
        entry = await self._ledger.begin(ask)
        if not entry.is_about(record):
            raise DecisionNotFoundError(record.namespace, draft.decision_id, DELETED_SINCE)
        return entry

    async def _take_outcome(
        self, namespace: str, decision_id: str, result: DecisionOutcome, entry: Entry | None
    ) -> Record:
        """Write an outcome unless its request did already; requests that are done are dropped."""
        own = [entry.point] if entry is not None else []
        for attempt in range(_TRIES):
            record = await self._record(namespace, decision_id)
            unsettled: list[str] = record.payload[UNSETTLED]
            criteria = [*own, *unsettled]
            done = await settled_among(self._store, REQUESTS, namespace, criteria, "done")
            if any(point in unsettled or point in done for point in own):
                return record
            left = [point for point in unsettled if point not in done]
            changed = {**result_payload(result), UNSETTLED: [*left, *own]}
            if written := await self._change(record, changed):
                return written
            await pause_before_retry(attempt)
        raise ContentionError(RESOURCE_KIND, decision_id)

    async def take_reward(self, namespace: str, decision_id: str, reward: float) -> None:
        """Take the reward of feedback if the decision has none; doing it again changes nothing.

        Raises DecisionNotFoundError, ContentionError.
        """
        for attempt in range(_TRIES):
            record = await self._record(namespace, decision_id)
            if decision_from_record(record).reward is not None:
                return
            if await self._change(record, {"feedback_reward": reward}) is not None:
                return
            await pause_before_retry(attempt)
        raise ContentionError(RESOURCE_KIND, decision_id)

    async def delete(self, namespace: str, decision_id: str, etag: str = "") -> None:
        """Delete the one that has ``etag`` (empty: any).

        Raises DecisionNotFoundError, EtagMismatchError, ContentionError.
        """
        for attempt in range(_TRIES):
            record = await self._record(namespace, decision_id)
            current = decision_from_record(record).etag
            if etag and etag != current:
                raise EtagMismatchError(RESOURCE_KIND, decision_id, etag, current)
            stone = await self._tombstones.begin(RESOURCE_KIND, decision_id, record, (REVISION,))
            if await self.finish_delete(stone):
                return
            await pause_before_retry(attempt)
        raise ContentionError(RESOURCE_KIND, decision_id)

    async def finish_delete(self, stone: Tombstone) -> bool:
        """Carry out a recorded delete; False if the decision has changed since."""
        point = decision_point(stone.namespace, stone.id)
        return await self._tombstones.carry_out(stone, DECISIONS, point)

    async def _change(self, record: Record, changed: Mapping[str, Any]) -> Record | None:
        """The changed record; None if it was replaced meanwhile."""
        revision = record.payload[REVISION]
        changed = {**changed, REVISION: revision + 1}
        when = [Equals(REVISION, revision), Equals(SORT_KEY, record.payload[SORT_KEY])]
        if not await self._store.update(
            DECISIONS, record.namespace, record.id, set=changed, when=when
        ):
            return None
        return Record(record.id, record.namespace, {**record.payload, **changed})

    async def _record(self, namespace: str, decision_id: str) -> Record:
        point = decision_point(namespace, decision_id)
        found = await self._store.get(DECISIONS, namespace, [point])
        if point not in found:
            raise DecisionNotFoundError(namespace, decision_id)
        return found[point]
