"""Memory: knowledge that outlives a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lot_grpc.domain.search_text import SearchText, joined


class MemoryKind(StrEnum):
    """What a memory is."""

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
    details: ConversationSummary | Project | None = None
    expire_time: int | None = None
    """Microseconds since 1970; None is never."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A stored memory. Times in microseconds since 1970."""

    namespace: str
    memory_id: str
    content: MemoryContent
    revision: int
    create_time: int
    update_time: int

    @property
    def etag(self) -> str:
        """Changes with every edit."""
        return f"{self.revision:x}"


def search_text(content: MemoryContent) -> SearchText:
    """What a memory is found by: title and content."""
    return SearchText(joined(content.title, content.content))
