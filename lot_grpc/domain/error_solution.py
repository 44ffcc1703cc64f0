"""ErrorSolution: an error with what fixed it, or with what was tried in vain."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from lot_grpc.domain.error_text.identity import distinct_text
from lot_grpc.domain.error_text.signature import VERSION, ErrorRead, read_error
from lot_grpc.domain.errors import invalid
from lot_grpc.domain.ids import content_hash, etag_of
from lot_grpc.domain.origin import AGENT, Origin, OriginKind, Review, ReviewState
from lot_grpc.domain.outcomes import OutcomeStats
from lot_grpc.domain.sameness import different_fields as different
from lot_grpc.domain.search_text import SearchText, joined
from lot_grpc.domain.text_form import visible

_FENCED: Final = re.compile(r"^[ \t]*```.*?^[ \t]*```[^\n]*$", re.DOTALL | re.MULTILINE)
"""A block of code as Markdown has it."""


@dataclass(frozen=True, slots=True)
class ErrorSolutionContent:
    """What callers give. Field by field as in ``lot.v1.ErrorSolution``; empty means not given."""

    error_message: str
    error_type: str = ""
    context: str = ""
    language: str = ""
    resolution: str = ""
    steps: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    worked: bool = True
    tags: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    source_episode_ids: tuple[str, ...] = ()
    pinned: bool = False
    expire_time: int | None = None
    """Microseconds since 1970; None is never."""
    origin: Origin = AGENT

    @property
    def error(self) -> ErrorRead:
        """The parsed error (``domain.error_text``)."""
        return read_error(self.error_type, self.error_message)

    @property
    def first_success_rate(self) -> float:
        """The initial success rate if the caller gives none."""
        return 1.0 if self.worked else 0.0

    def check(self) -> None:
        """Raise RequestInvalidError if a required part is missing."""
        if not visible(self.error_message):
            raise invalid(
                "error_solution.error_message", "required", "error_message must not be blank"
            )
        if self.worked and not any(map(visible, (self.resolution, *self.steps))):
            raise invalid(
                "error_solution",
                "error_solution.resolution.required",
                "error_solution needs a resolution or steps, unless worked is false",
            )


@dataclass(frozen=True, slots=True)
class ErrorSolution:
    """A stored error solution. Times in microseconds since 1970.

    ``signature`` is the one that was stored, made by version ``signed_by`` of the rules.
    """

    namespace: str
    error_solution_id: str
    content: ErrorSolutionContent
    signature: str
    outcomes: OutcomeStats
    revision: int
    create_time: int
    update_time: int
    signed_by: int = VERSION
    review: Review | None = None

    @property
    def etag(self) -> str:
        """Changes with every edit, never with an outcome."""
        return etag_of(
            self.namespace,
            self.error_solution_id,
            self.create_time,
            self.update_time,
            self.revision,
        )


@dataclass(frozen=True, slots=True)
class ErrorSolutionFilter:
    """Narrows error solutions; see ``lot.v1.ErrorSolutionFilter``."""

    error_types: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()
    worked: bool | None = None
    tags_any: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    min_success_rate: float = 0.0
    min_usage_count: int = 0
    created_after: int | None = None
    created_before: int | None = None
    pinned: bool | None = None
    origins: tuple[OriginKind, ...] = ()
    reviews: tuple[ReviewState, ...] = ()


def search_text(content: ErrorSolutionContent) -> SearchText:
    """The text by which an error solution is found.

    Meaning is compared on the error as raised and, for queries in other words, on the line that
    says what went wrong together with the fix. Fenced code in a fix says little about the error, so
    it counts by its words only, as does the situation in which the error occurred.
    """
    error = joined(content.error_type, content.error_message)
    advice = (_FENCED.sub("", text).strip() for text in (content.resolution, *content.steps))
    line = content.error.line
    return SearchText(
        error,
        more=joined(content.context, content.resolution, *content.steps),
        solved=joined(line or error, *advice),
    )


def same_solution_id(content: ErrorSolutionContent) -> str:
    """The generated id of a solution: equal for the same solution of the same error.

    The same error is the same text but for times, places and ids. A signature leaves out names, so
    of two errors that differ in a name the second would be lost.
    """
    parts = [
        f"2:{content.error_type}",
        distinct_text(content.error_message),
        content.language,
        " ".join(content.resolution.split()),
        [" ".join(step.split()) for step in content.steps],
        content.worked,
    ]
    return f"s-{content_hash(parts)[:20]}"


def id_after(error_solution_id: str) -> str:
    """The id to take where that one is held by a solution that was edited into another."""
    return f"s-{content_hash([error_solution_id])[:20]}"


def different_fields(stored: ErrorSolutionContent, given: ErrorSolutionContent) -> tuple[str, ...]:
    """The fields in which two solutions of one error differ; what is not given does not differ."""
    nothing = ErrorSolutionContent(stored.error_message)
    return different(stored, given, nothing, besides={"resolution", "steps"})
