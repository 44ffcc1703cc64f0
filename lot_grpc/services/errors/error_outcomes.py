"""Records whether an error solution helped: an outcome that names only it."""

from __future__ import annotations

from dataclasses import dataclass

from lot_grpc.domain.error_solution import ErrorSolution
from lot_grpc.domain.errors import ErrorSolutionNotFoundError, RetrievalNotFoundError
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.kernel.tombstones import DELETED_SINCE
from lot_grpc.services.outcomes.outcomes import OutcomeDraft, OutcomeRecorder

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


class ErrorOutcomeRecorder:
    """Records outcomes of error solutions."""

    def __init__(self, recorder: OutcomeRecorder) -> None:
        self._recorder = recorder

    async def record(self, namespace: str, draft: ErrorOutcomeDraft) -> ErrorSolution:
        """Count an outcome; return the updated solution.

        Raises what ``OutcomeRecorder.record`` raises; ErrorSolutionNotFoundError also if the
        solution was deleted since the first try.
        """
        given = OutcomeDraft(
            (),
            draft.outcome,
            draft.retrieval_id,
            draft.error_message,
            draft.reward,
            draft.duration,
            draft.note,
            draft.request_id,
            error_solution_ids=(draft.error_solution_id,),
        )
        try:
            recorded = await self._recorder.record(namespace, given, _METHOD)
        except RetrievalNotFoundError as error:
            hint = "send error_message as well, or instead"
            raise RetrievalNotFoundError(namespace, draft.retrieval_id, hint) from error
        if not recorded.error_solutions:
            raise ErrorSolutionNotFoundError(namespace, draft.error_solution_id, DELETED_SINCE)
        [solution] = recorded.error_solutions
        return solution
