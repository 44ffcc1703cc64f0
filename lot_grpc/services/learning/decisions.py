"""Decisions: recording them and their outcomes, reading, listing, deleting."""

from __future__ import annotations

from dataclasses import dataclass

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.decision import (
    Decision,
    DecisionContent,
    DecisionFilter,
    DecisionOutcome,
)
from lot_grpc.domain.errors import (
    DecisionIdInUseError,
    DecisionNotFoundError,
)
from lot_grpc.domain.ids import new_id
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.request_hash import request_hash
from lot_grpc.domain.sameness import same_values
from lot_grpc.kernel.apply_once import Target, apply_once
from lot_grpc.kernel.compare_and_set import compare_and_set, update_as_read
from lot_grpc.kernel.create import Creation
from lot_grpc.kernel.idempotency import (
    DONE,
    IdempotencyKey,
)
from lot_grpc.kernel.intents import Journal, Mark
from lot_grpc.kernel.tombstones import DELETED_SINCE
from lot_grpc.ports import Record
from lot_grpc.services.learning.spec import DECISION
from lot_grpc.services.operations import Resources
from lot_grpc.services.records.collections import DECISIONS, REQUESTS
from lot_grpc.services.records.decisions import (
    PENDING,
    REVISION,
    decision_from_record,
    decision_point,
    decision_record,
    result_payload,
)
from lot_grpc.services.runtime import Runtime


@dataclass(frozen=True, slots=True)
class DecisionDraft:
    """A decision to record."""

    content: DecisionContent
    decision_id: str = ""
    request_id: str = ""

    def hash(self) -> str:
        """Equal for equal requests."""
        return request_hash(self)


@dataclass(frozen=True, slots=True)
class DecisionOutcomeDraft:
    """The outcome of a decision. ``reward`` in [-1, 1]; None if not given."""

    decision_id: str
    outcome: Outcome
    reward: float | None = None
    note: str = ""
    request_id: str = ""

    def hash(self) -> str:
        """Equal for equal requests."""
        return request_hash(self)


class Decisions(Resources[Decision, DecisionFilter]):
    """The decisions of all namespaces."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(DECISION, runtime)
        self._requests = Journal(runtime.store, REQUESTS, Mark(DONE))

    async def record(self, namespace: str, draft: DecisionDraft) -> tuple[Decision, bool]:
        """Record a decision; return whether it was created.

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

        creation = Creation(
            namespace=namespace,
            id=draft.decision_id or new_id("d"),
            request_id=draft.request_id,
            content_hash=draft.hash(),
        )
        record, created = await self._create.insert(DECISION.creation, creation, make, require_same)
        return decision_from_record(record), created

    async def record_outcome(self, namespace: str, draft: DecisionOutcomeDraft) -> Decision:
        """Record the outcome of a decision, replacing any earlier one.

        A request that is sent again does not undo what was recorded after it. Raises
        DecisionNotFoundError, RequestIdReusedError, ContentionError.
        """
        record = await self.read_record(namespace, draft.decision_id)
        key = IdempotencyKey(namespace, "RecordDecisionOutcome", draft.request_id, draft.hash(), {})
        entry = await self._idempotency.begin_about(key, record, None)
        if entry is None:
            raise DecisionNotFoundError(namespace, draft.decision_id, DELETED_SINCE)
        if entry.result is not None:
            return await self.get(namespace, draft.decision_id)
        result = DecisionOutcome(draft.outcome, self._time.now(), draft.reward, draft.note)
        record = await self._take_outcome(namespace, draft.decision_id, result, entry.point or None)
        await self._idempotency.finish(entry, {})
        return decision_from_record(record)

    async def _take_outcome(
        self,
        namespace: str,
        decision_id: str,
        result: DecisionOutcome,
        request: str | None,
    ) -> Record:
        """Write an outcome unless its request already did."""

        async def write(record: Record | None, pending: list[str]) -> Record | None:
            if record is None:
                return None
            changed = {**result_payload(result), PENDING: pending}
            return await update_as_read(self._store, DECISIONS, record, changed, REVISION)

        point = decision_point(namespace, decision_id)
        target = Target(ResourceKind.DECISION, decision_id, namespace, DECISIONS, point, PENDING)
        record = await apply_once(self._store, self._requests, request, target, write)
        if record is None:
            raise DecisionNotFoundError(namespace, decision_id)
        return record

    async def take_reward(self, namespace: str, decision_id: str, reward: float) -> None:
        """Set the reward of feedback if the decision has none. Idempotent.

        Raises DecisionNotFoundError, ContentionError.
        """

        async def attempt() -> None:
            record = await self.read_record(namespace, decision_id)
            if decision_from_record(record).reward is None:
                changed = {"feedback_reward": reward}
                await update_as_read(self._store, DECISIONS, record, changed, REVISION)

        await compare_and_set(ResourceKind.DECISION, decision_id, attempt)
