"""Errors and their solutions: saving, finding, and recording outcomes."""

from __future__ import annotations

from lot_grpc.services.errors.error_finder import ErrorSolutionFinder
from lot_grpc.services.errors.error_outcomes import ErrorOutcomeRecorder
from lot_grpc.services.errors.error_solutions import ErrorSolutions
from lot_grpc.services.outcomes.module import OutcomesModule
from lot_grpc.services.runtime import Runtime


class ErrorsModule:
    """The services for error solutions."""

    def __init__(self, runtime: Runtime, counting: OutcomesModule) -> None:
        store, time = runtime.store, runtime.time
        self.solutions = solutions = ErrorSolutions(runtime)
        self.finder = ErrorSolutionFinder(store, runtime.model, runtime.retrievals)
        self.outcomes = ErrorOutcomeRecorder(
            time, runtime.idempotency, counting.counter, solutions, runtime.retrievals
        )
