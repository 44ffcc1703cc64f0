"""Filters and rankings of queries, as in the contract. Empty means no restriction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.episode import EpisodeStatus
from lot_grpc.domain.memory import MemoryKind
from lot_grpc.domain.origin import OriginKind, ReviewState
from lot_grpc.domain.pattern import CodeKind, PatternKind, PatternType


class Ranking(StrEnum):
    """The order of hits."""

    BALANCED = "balanced"
    RELEVANCE = "relevance"
    SIMILARITY = "similarity"
    RELIABLE = "reliable"
    EXPLORE = "explore"


class Legs(StrEnum):
    """The legs of a search. Recall uses both; the others are for measuring them separately."""

    HYBRID = "hybrid"
    DENSE = "dense"
    BM25 = "bm25"


class EmbeddingUse(StrEnum):
    """What a text is embedded for."""

    DOCUMENT = "document"
    QUERY = "query"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class PatternFilter:
    """Narrows patterns; see ``lot.v1.PatternFilter``."""

    languages: tuple[str, ...] = ()
    kinds: tuple[PatternKind, ...] = ()
    code_kinds: tuple[CodeKind, ...] = ()
    pattern_types: tuple[PatternType, ...] = ()
    task_types: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    complexities: tuple[Complexity, ...] = ()
    tools: tuple[str, ...] = ()
    approaches: tuple[str, ...] = ()
    tags_any: tuple[str, ...] = ()
    tags_all: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    min_success_rate: float = 0.0
    min_reliability: float = 0.0
    min_usage_count: int = 0
    created_after: int | None = None
    created_before: int | None = None
    pinned: bool | None = None
    superseded: bool | None = None
    """None: recall and distillation leave superseded ones out, all else takes both."""
    origins: tuple[OriginKind, ...] = ()
    reviews: tuple[ReviewState, ...] = ()
    """Empty: recalls omit what is held back, lists include it; for memories too."""


@dataclass(frozen=True, slots=True)
class EpisodeFilter:
    """Narrows episodes; see ``lot.v1.EpisodeFilter``."""

    statuses: tuple[EpisodeStatus, ...] = ()
    categories: tuple[str, ...] = ()
    task_types: tuple[str, ...] = ()
    task_ids: tuple[str, ...] = ()
    complexities: tuple[Complexity, ...] = ()
    approaches: tuple[str, ...] = ()
    agent_roles: tuple[str, ...] = ()
    tools_any: tuple[str, ...] = ()
    tags_any: tuple[str, ...] = ()
    tags_all: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    started_after: int | None = None
    started_before: int | None = None
    error_types: tuple[str, ...] = ()
    ended_after: int | None = None
    ended_before: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryFilter:
    """Narrows memories; see ``lot.v1.MemoryFilter``."""

    kinds: tuple[MemoryKind, ...] = ()
    languages: tuple[str, ...] = ()
    tags_any: tuple[str, ...] = ()
    tags_all: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    source_uris: tuple[str, ...] = ()
    project_statuses: tuple[str, ...] = ()
    tech_stack: tuple[str, ...] = ()
    min_importance: float = 0.0
    max_importance: float | None = None
    created_after: int | None = None
    created_before: int | None = None
    pinned: bool | None = None
    superseded: bool | None = None
    """None: recalls omit those superseded at their time, all else includes both."""
    origins: tuple[OriginKind, ...] = ()
    reviews: tuple[ReviewState, ...] = ()
