"""Memory: knowledge that outlives a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from lot_grpc.domain.errors import invalid
from lot_grpc.domain.ids import content_hash, etag_of
from lot_grpc.domain.languages import is_code
from lot_grpc.domain.origin import AGENT, Origin, Review
from lot_grpc.domain.outcomes import NO_OUTCOMES, OutcomeStats
from lot_grpc.domain.sameness import different_fields as different
from lot_grpc.domain.search_text import SearchText, joined
from lot_grpc.domain.text_form import visible


class MemoryKind(StrEnum):
    """The kind of a memory."""

    FACT = "fact"
    SOLUTION = "solution"
    BEST_PRACTICE = "best_practice"
    DOCUMENT = "document"
    CODE_SNIPPET = "code_snippet"
    CONVERSATION_SUMMARY = "conversation_summary"
    PROJECT = "project"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """Details of a CONVERSATION_SUMMARY."""

    key_decisions: tuple[str, ...] = ()
    user_feedback: str = ""


@dataclass(frozen=True, slots=True)
class Project:
    """Details of a PROJECT. ``last_accessed_time`` in microseconds since 1970."""

    path: str = ""
    tech_stack: tuple[str, ...] = ()
    status: str = "active"
    last_accessed_time: int | None = None


class IndexingState(StrEnum):
    """Whether all passages of a memory have vectors (COMPLETE) or only the first one (PENDING)."""

    PENDING = "pending"
    COMPLETE = "complete"


Details: TypeAlias = ConversationSummary | Project

_KIND_OF = {
    ConversationSummary: MemoryKind.CONVERSATION_SUMMARY,
    Project: MemoryKind.PROJECT,
}


@dataclass(frozen=True, slots=True)
class MemoryContent:
    """What callers edit. Field by field as in ``lot.v1.Memory``; empty means not given."""

    content: str
    kind: MemoryKind = MemoryKind.NOTE
    title: str = ""
    language: str = ""
    tags: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    importance: float = 0.5
    pinned: bool = False
    source_uri: str = ""
    details: Details | None = None
    expire_time: int | None = None
    """Microseconds since 1970; None is never."""
    supersedes: str = ""
    valid_from: int | None = None
    """Microseconds since 1970; None: from its creation."""
    valid_until: int | None = None
    """Microseconds since 1970, exclusive; None: no end."""
    origin: Origin = AGENT

    def check(self, create_time: int | None = None) -> None:
        """Check what the contract cannot express: content, times, and details that fit the kind.

        ``create_time`` None: it is not created yet.
        """
        if not visible(self.content):
            raise invalid("memory.content", "required", "content must not be blank")
        self.check_validity(create_time)
        if self.details is not None and self.kind is not _KIND_OF[type(self.details)]:
            raise invalid(
                "memory.kind",
                "memory.details.kind",
                "details must match the kind, but the memory has those of a "
                f"{_KIND_OF[type(self.details)].name}; set kind and details together, or name "
                "details in the mask to clear them",
            )

    def check_validity(self, create_time: int | None) -> None:
        """Refuse an end that is not after the start. Raises RequestInvalidError."""
        begin = create_time if self.valid_from is None else self.valid_from
        if self.valid_until is not None and begin is not None and self.valid_until <= begin:
            raise invalid(
                "memory.valid_until",
                "memory.valid_until.order",
                "valid_until must be later than valid_from, or than create_time if that is unset; "
                "for what was true in the past, set both",
            )


@dataclass(frozen=True, slots=True)
class Memory:
    """A stored memory. Times in microseconds since 1970.

    ``indexing_problem``: why the last attempt to index it failed; empty if none has failed.
    ``superseded_by`` is the newest that supersedes it, ``superseded_time`` when that begins.
    """

    namespace: str
    memory_id: str
    content: MemoryContent
    revision: int
    create_time: int
    update_time: int
    indexing: IndexingState = IndexingState.COMPLETE
    indexing_problem: str = ""
    superseded_by: str = ""
    superseded_time: int | None = None
    outcomes: OutcomeStats = NO_OUTCOMES
    review: Review | None = None

    @property
    def etag(self) -> str:
        """Changes with every edit, never with an outcome."""
        return etag_of(
            self.namespace, self.memory_id, self.create_time, self.update_time, self.revision
        )

    @property
    def begin(self) -> int:
        """When it becomes true."""
        return self.create_time if self.content.valid_from is None else self.content.valid_from

    @property
    def end(self) -> int | None:
        """When it ends or becomes superseded, whichever is first; None: neither is known."""
        ends = (self.content.valid_until, self.superseded_time)
        return min((one for one in ends if one is not None), default=None)

    def covers(self, given: MemoryContent, now: int) -> bool:
        """Whether the same content adds nothing: this is true from then on, and not over."""
        given_from = now if given.valid_from is None else max(now, given.valid_from)
        return self.begin <= given_from and (self.end is None or self.end > now)


def same_memory_id(content: MemoryContent, number: int = 0) -> str:
    """The id of a unique memory: equal for the same kind, title and content.

    White space is folded, but for code. ``number`` counts the ids of one content: the next is
    tried where a memory that has the first was edited to say something else.
    """
    body = content.content if _is_code(content) else " ".join(content.content.split())
    parts = [content.kind.value, " ".join(content.title.split()), body, content.language]
    return f"m-{content_hash([*parts, number] if number else parts)[:20]}"


def different_fields(stored: MemoryContent, given: MemoryContent) -> tuple[str, ...]:
    """The fields in which two memories of one content differ; what is not given does not."""
    nothing = MemoryContent(stored.content, given.kind)
    return different(stored, given, nothing, besides={"content", "title"})


def search_text(content: MemoryContent) -> SearchText:
    """The text by which a memory is found: title and content, and the content by passages."""
    code = content.content if _is_code(content) else ""
    return SearchText(
        joined(content.title, content.content),
        code,
        code_in_text=bool(code),
        long=content.content,
        title=content.title,
    )


def _is_code(content: MemoryContent) -> bool:
    return content.kind is MemoryKind.CODE_SNIPPET or is_code(content.language)
