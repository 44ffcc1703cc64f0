"""Drafts and edits of error solutions, and the result of a save."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lot_grpc.domain.error_solution import ErrorSolution, ErrorSolutionContent
from lot_grpc.domain.origin import NO_EDITOR, Editor
from lot_grpc.domain.request_hash import request_hash
from lot_grpc.services.expiry import with_ttl


@dataclass(frozen=True, slots=True)
class ErrorSolutionDraft:
    """An error solution to save. Without an id, the same solution is stored only once.

    ``initial_success_rate`` None: 1.0, or 0.0 if it did not work. ``ttl``: microseconds from the
    save, instead of ``content.expire_time``.
    """

    content: ErrorSolutionContent
    error_solution_id: str = ""
    initial_success_rate: float | None = None
    request_id: str = ""
    ttl: int | None = None

    def hash(self) -> str:
        """A hash that is equal for equal requests."""
        return request_hash(self)


@dataclass(frozen=True, slots=True)
class ErrorSolutionEdit:
    """New values of the named fields of a content; ``ttl`` (microseconds) instead of an expiry.

    ``editor`` is who edits.
    """

    content: ErrorSolutionContent
    fields: frozenset[str]
    ttl: int | None = None
    editor: Editor = NO_EDITOR

    def apply(self, old: ErrorSolutionContent, now: int) -> ErrorSolutionContent:
        """The content after the edit."""
        new = replace(old, **{name: getattr(self.content, name) for name in self.fields})
        return with_ttl(new, self.ttl, now)


@dataclass(frozen=True, slots=True)
class SavedErrorSolution:
    """The result of a save. ``truncated``: the model did not read all of the message.

    ``unchanged_fields``: fields that differ in a repeated save; the stored solution keeps its own.
    """

    error_solution: ErrorSolution
    created: bool
    truncated: bool = False
    unchanged_fields: tuple[str, ...] = ()
