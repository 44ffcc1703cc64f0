"""Errors and their solutions: saving and finding."""

from __future__ import annotations

from lot_grpc.services.errors.error_finder import ErrorSolutionFinder
from lot_grpc.services.errors.error_solutions import ErrorSolutions
from lot_grpc.services.runtime import Runtime


class ErrorsModule:
    """The services for error solutions."""

    def __init__(self, runtime: Runtime) -> None:
        self.solutions = ErrorSolutions(runtime)
        self.finder = ErrorSolutionFinder(runtime.store, runtime.model, runtime.retrievals)
