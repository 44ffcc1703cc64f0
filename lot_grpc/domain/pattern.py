"""Pattern: a way of doing something."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.errors import invalid
from lot_grpc.domain.feedback import NO_FEEDBACK, FeedbackCounts
from lot_grpc.domain.ids import content_hash, etag_of
from lot_grpc.domain.json_values import as_doubles
from lot_grpc.domain.origin import AGENT, Origin, Review
from lot_grpc.domain.outcomes import OutcomeStats
from lot_grpc.domain.sameness import different_fields as different
from lot_grpc.domain.search_text import SearchText, joined
from lot_grpc.domain.text_form import folded, visible

DEFAULT_MERGE_SIMILARITY: Final = 0.95
"""Paraphrases of one task reach .72 to .98 with the default model (half of them .92), tasks that
differ in one name .69 to .93, and in one number .87 to .92. A wrong merge counts a success for
another task, a missed one stores one pattern more: so the level is above what a name changes."""


class PatternKind(StrEnum):
    """The kind of a pattern."""

    TASK = "task"
    CODE = "code"
    LEARNED = "learned"
    DISTILLED = "distilled"


class CodeKind(StrEnum):
    """The kind of a piece of code."""

    FUNCTION = "function"
    METHOD = "method"
    CLASS = "class"
    ERROR_HANDLER = "error_handler"
    ALGORITHM = "algorithm"
    ASYNC = "async"
    SNIPPET = "snippet"


class PatternType(StrEnum):
    """What a pattern teaches."""

    SUCCESS = "success"
    FAILURE = "failure"
    OPTIMIZATION = "optimization"


@dataclass(frozen=True, slots=True)
class Action:
    """One step: a tool, its arguments (JSON), a note."""

    tool: str
    args: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True)
class PatternContent:
    """What callers edit. Field by field as in ``lot.v1.Pattern``; empty means not given."""

    task: str
    kind: PatternKind = PatternKind.TASK
    code_kind: CodeKind | None = None
    pattern_type: PatternType = PatternType.SUCCESS
    title: str = ""
    context: str = ""
    actions: tuple[Action, ...] = ()
    code: str = ""
    language: str = ""
    category: str = ""
    task_type: str = ""
    task_type_pattern: str = ""
    complexity: Complexity | None = None
    approach: str = ""
    success_indicators: tuple[str, ...] = ()
    failure_indicators: tuple[str, ...] = ()
    recommended_context: str = ""
    success_factors: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    pinned: bool = False
    confidence: float = 0.5
    source_episode_ids: tuple[str, ...] = ()
    source_pattern_ids: tuple[str, ...] = ()
    parent_pattern_id: str = ""
    supersedes: str = ""
    expire_time: int | None = None
    """Microseconds since 1970; None is never."""
    origin: Origin = AGENT

    def check(self) -> None:
        """Check what the contract cannot express: a task, and ``code_kind`` only for CODE."""
        if not visible(self.task):
            raise invalid("pattern.task", "required", "task must not be blank")
        if self.code_kind is not None and self.kind is not PatternKind.CODE:
            raise invalid(
                "pattern.code_kind",
                "code_kind.kind",
                "code_kind is only allowed for kind CODE; set kind to CODE or omit code_kind",
            )


@dataclass(frozen=True, slots=True)
class Pattern:
    """A stored pattern. Times in microseconds since 1970."""

    namespace: str
    pattern_id: str
    content: PatternContent
    outcomes: OutcomeStats
    revision: int
    create_time: int
    update_time: int
    feedback: FeedbackCounts = NO_FEEDBACK
    superseded_by: str = ""
    """The newest pattern that supersedes this one."""
    review: Review | None = None

    @property
    def etag(self) -> str:
        """Changes with every edit, never with an outcome or a feedback."""
        return etag_of(
            self.namespace, self.pattern_id, self.create_time, self.update_time, self.revision
        )


def search_text(content: PatternContent) -> SearchText:
    """The text by which a pattern is found: title, task and context, and its code."""
    return search_text_of(content.title, content.task, content.context, content.code)


def search_text_of(title: str, task: str, context: str, code: str) -> SearchText:
    """``search_text`` from parts of the content, so that a stored pattern need not be decoded."""
    return SearchText(joined(title, task, context), code)


def different_fields(stored: PatternContent, given: PatternContent) -> tuple[str, ...]:
    """The fields in which two contents differ; what is not given does not differ.

    A repeat may write the task in a different letter case; that is not a difference.
    """
    nothing = PatternContent(stored.task)
    return different(stored, given, nothing, besides={"task"})


def dedupe_hash(content: PatternContent) -> str:
    """Equal for the same kind, type, task, actions, code and language.

    The task's letter case and white space are folded. What to do and what not to do are different,
    so the type is included.
    """
    return content_hash(
        [
            content.kind,
            content.pattern_type,
            folded(content.task),
            [[action.tool, as_doubles(action.args)] for action in content.actions],
            content.code,
            content.language,
        ]
    )
