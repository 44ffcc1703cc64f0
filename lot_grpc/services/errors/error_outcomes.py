"""Records whether a solution helped: a log entry that its counters apply exactly once."""

from __future__ import annotations

from dataclasses import dataclass

from lot_grpc.domain.error_solution import ErrorSolution
from lot_grpc.domain.errors import ErrorSolutionNotFoundError, RetrievalNotFoundError
from lot_grpc.domain.ids import new_id
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.request_hash import request_hash
from lot_grpc.kernel.idempotency import IdempotencyKey, IdempotencyStore
from lot_grpc.kernel.tombstones import DELETED_SINCE
from lot_grpc.services.errors.error_solutions import ErrorSolutions
from lot_grpc.services.outcomes.counting import OutcomeCounter
from lot_grpc.services.records.error_solutions import error_solution_from_record
from lot_grpc.services.records.outcomes import RecordedOutcome
from lot_grpc.services.retrievals.retrievals import Retrievals
from lot_grpc.services.time_source import TimeSource

_METHOD = "RecordErrorSolutionOutcome"


@dataclass(frozen=True, slots=True)
class ErrorOutcomeDraft:
    """An outcome to record. ``duration`` in seconds, ``reward`` in [-1, 1].

    ``error_message``: the error it was tried on; "": the query of the retrieval, if one is named.
    """

    error_solution_id: str
    outcome: Outcome
    retrieval_id: str = ""
    error_message: str = ""
    reward: float | None = None
    duration: float | None = None
    note: str = ""
    request_id: str = ""

    def hash(self) -> str:
        """A hash that is equal for equal requests."""
        return request_hash(self)


class ErrorOutcomeRecorder:
    """Records outcomes of error solutions."""

    def __init__(
        self,
        time_source: TimeSource,
        idempotency: IdempotencyStore,
        counting: OutcomeCounter,
        error_solutions: ErrorSolutions,
        retrievals: Retrievals,
    ) -> None:
        self._time = time_source
        self._idempotency = idempotency
        self._counting = counting
        self._error_solutions = error_solutions
        self._retrievals = retrievals

    async def record(self, namespace: str, draft: ErrorOutcomeDraft) -> ErrorSolution:
        """Count an outcome; return the updated solution.

        Raises RequestIdReusedError; ErrorSolutionNotFoundError and RetrievalNotFoundError, and then
        nothing is counted; ContentionError, after which a retry or the sweep counts it.
        """
        solution_id = draft.error_solution_id
        plan = {"outcome_id": new_id("o")}
        key = IdempotencyKey(namespace, _METHOD, draft.request_id, draft.hash(), plan)
        earlier = await self._idempotency.find(key)
        tried_on = await self._tried_on(namespace, draft, required=earlier is None)
        record = await self._error_solutions.read_record(namespace, solution_id)
        entry = await self._idempotency.begin_about(key, record, earlier)
        if entry is None:
            raise ErrorSolutionNotFoundError(namespace, solution_id, DELETED_SINCE)
        if entry.result is not None:
            return error_solution_from_record(record)
        recorded = RecordedOutcome(
            namespace,
            entry.plan["outcome_id"],
            "",
            draft.outcome,
            self._time.now(),
            reward=draft.reward,
            duration=draft.duration,
            query=tried_on,
            retrieval_id=draft.retrieval_id,
            note=draft.note,
            error_solution_id=solution_id,
        )
        known = {solution_id: record} if entry.first else {}
        counted = await self._counting.count([recorded], known)
        await self._idempotency.finish(entry, {"error_solution_id": solution_id})
        if solution_id not in counted:
            raise ErrorSolutionNotFoundError(
                namespace, solution_id, "it was deleted in the meantime"
            )
        return error_solution_from_record(counted[solution_id])

    async def _tried_on(self, namespace: str, draft: ErrorOutcomeDraft, *, required: bool) -> str:
        """The message it was tried on. A retry tolerates an unknown retrieval."""
        if draft.error_message or not draft.retrieval_id:
            return draft.error_message
        retrieval = await self._retrievals.find(namespace, draft.retrieval_id)
        if retrieval is None and required:
            raise RetrievalNotFoundError(
                namespace, draft.retrieval_id, "send error_message as well, or instead"
            )
        return retrieval.query if retrieval else ""
