"""An error solution to save or to edit, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lot_grpc.domain.error_solution import ErrorSolution, ErrorSolutionContent
from lot_grpc.domain.request_hash import request_hash
from lot_grpc.services.expiry import with_ttl


@dataclass(frozen=True, slots=True)
class ErrorSolutionDraft:
    """An error solution to save. Without an id the same one is stored once.

    ``initial_success_rate`` None: 1.0, or 0.0 where it did not work. ``ttl`` in microseconds from
    the save, instead of ``content.expire_time``.
    """

    content: ErrorSolutionContent
    error_solution_id: str = ""
    initial_success_rate: float | None = None
    request_id: str = ""
    ttl: int | None = None

    def hash(self) -> str:
        """The same for the same request."""
        return request_hash(self)


@dataclass(frozen=True, slots=True)
class ErrorSolutionEdit:
    """New values of the named fields of a content; ``ttl`` (microseconds) instead of an expiry."""

    content: ErrorSolutionContent
    fields: frozenset[str]
    ttl: int | None = None

    def apply(self, old: ErrorSolutionContent, now: int) -> ErrorSolutionContent:
        """The content after the edit."""
        new = replace(old, **{name: getattr(self.content, name) for name in self.fields})
        return with_ttl(new, self.ttl, now)


@dataclass(frozen=True, slots=True)
class SavedErrorSolution:
    """What became of a draft. ``truncated``: the model did not read all of its message.

    ``unchanged_fields``: fields of the stored solution that a repeat gave otherwise, and that stay.
    """

    error_solution: ErrorSolution
    created: bool
    truncated: bool = False
    unchanged_fields: tuple[str, ...] = ()
