"""Keyword arguments of the clients' methods, with the names and meanings of `proto/lot/v1`.

All are optional. Enum values are written without their prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, Required, TypeAlias, TypedDict

from lot_client.pb.lot.v1.admin_service_pb2 import EmbeddingUse, EmbedItem
from lot_client.pb.lot.v1.change_pb2 import ChangeType
from lot_client.pb.lot.v1.episode_pb2 import (
    EpisodeError,
    EpisodeEvent,
    EpisodeFilter,
    EpisodeStatus,
)
from lot_client.pb.lot.v1.episode_service_pb2 import TakeoverPolicy
from lot_client.pb.lot.v1.memory_pb2 import (
    ConversationSummaryDetails,
    MemoryFilter,
    MemoryKind,
    ProjectDetails,
)
from lot_client.pb.lot.v1.origin_pb2 import Origin, OriginKind, ReviewState
from lot_client.pb.lot.v1.outcome_pb2 import Complexity, Outcome, Ranking
from lot_client.pb.lot.v1.pattern_pb2 import (
    Action,
    CodeKind,
    PatternFilter,
    PatternKind,
    PatternType,
)
from lot_client.pb.lot.v1.pattern_service_pb2 import Dedupe, SavePatternItem
from lot_client.pb.lot.v1.resource_kind_pb2 import ResourceKind

OutcomeLike: TypeAlias = "Literal['SUCCESS', 'FAILURE', 'PARTIAL'] | Outcome.ValueType"
ComplexityLike: TypeAlias = "Literal['LOW', 'MEDIUM', 'HIGH'] | Complexity.ValueType"
RankingLike: TypeAlias = (
    "Literal['BALANCED', 'RELEVANCE', 'SIMILARITY', 'RELIABLE', 'EXPLORE'] | Ranking.ValueType"
)
EmbeddingUseLike: TypeAlias = "Literal['DOCUMENT', 'QUERY', 'CODE'] | EmbeddingUse.ValueType"
DedupeLike: TypeAlias = "Literal['EXACT', 'NONE', 'SEMANTIC'] | Dedupe.ValueType"
PatternKindLike: TypeAlias = (
    "Literal['TASK', 'CODE', 'LEARNED', 'DISTILLED'] | PatternKind.ValueType"
)
PatternTypeLike: TypeAlias = "Literal['SUCCESS', 'FAILURE', 'OPTIMIZATION'] | PatternType.ValueType"
CodeKindLike: TypeAlias = (
    "Literal['FUNCTION', 'METHOD', 'CLASS', 'ERROR_HANDLER', 'ALGORITHM', 'ASYNC', 'SNIPPET']"
    " | CodeKind.ValueType"
)
MemoryKindLike: TypeAlias = (
    "Literal['FACT', 'SOLUTION', 'BEST_PRACTICE', 'DOCUMENT', 'CODE_SNIPPET',"
    " 'CONVERSATION_SUMMARY', 'PROJECT', 'NOTE'] | MemoryKind.ValueType"
)
EpisodeStatusLike: TypeAlias = (
    "Literal['RUNNING', 'SUCCEEDED', 'FAILED', 'ABANDONED'] | EpisodeStatus.ValueType"
)
ResourceKindLike: TypeAlias = (
    "Literal['MEMORY', 'PATTERN', 'OUTCOME', 'EPISODE', 'EPISODE_EVENT', 'ERROR_SOLUTION',"
    " 'PREFERENCE', 'SESSION', 'LEARNING_EVENT', 'DECISION', 'ACTION_VALUE', 'POLICY']"
    " | ResourceKind.ValueType"
)
OriginKindLike: TypeAlias = (
    "Literal['PERSON', 'TOOL', 'AGENT', 'EXTRACTION', 'MODEL', 'IMPORT'] | OriginKind.ValueType"
)
ReviewStateLike: TypeAlias = "Literal['PENDING', 'APPROVED', 'REJECTED'] | ReviewState.ValueType"
ChangeTypeLike: TypeAlias = (
    "Literal['STORED', 'UPDATED', 'DELETED', 'CLEARED', 'PATTERN_LEARNED', 'PATTERN_MATCHED',"
    " 'CONTEXT_SUGGESTED'] | ChangeType.ValueType"
)
TakeoverPolicyLike: TypeAlias = "Literal['REPLACE', 'REFUSE'] | TakeoverPolicy.ValueType"


class _Annotated(TypedDict, total=False):
    """Fields of most records."""

    tags: Sequence[str]
    labels: Mapping[str, str]
    metadata: Mapping[str, Any]


class OriginFields(TypedDict, total=False):
    """Who wrote a text, or who edits it."""

    kind: OriginKindLike
    name: str


class _Lasting(_Annotated, total=False):
    """`ttl` (a timedelta, or seconds from now) or `expire_time`, not both; None means never."""

    pinned: bool
    origin: Origin | OriginFields
    expire_time: datetime | None
    ttl: timedelta | float | None


class ActionFields(TypedDict, total=False):
    """One step of a pattern."""

    tool: Required[str]
    args: Mapping[str, Any]
    note: str


class PatternFields(_Lasting, total=False):
    """Fields of a pattern besides its task."""

    kind: PatternKindLike
    code_kind: CodeKindLike
    pattern_type: PatternTypeLike
    title: str
    context: str
    actions: Sequence[Action | ActionFields]
    code: str
    language: str
    category: str
    task_type: str
    task_type_pattern: str
    complexity: ComplexityLike
    approach: str
    success_indicators: Sequence[str]
    failure_indicators: Sequence[str]
    recommended_context: str
    success_factors: Sequence[str]
    tools: Sequence[str]
    confidence: float
    source_episode_ids: Sequence[str]
    source_pattern_ids: Sequence[str]
    parent_pattern_id: str
    supersedes: str


class PatternEdits(PatternFields, total=False):
    """What `update_pattern` can set."""

    task: str


class NewPattern(PatternFields, total=False):
    """A pattern with its task, as an item of a batch."""

    task: Required[str]


class SavePatternItemFields(TypedDict, total=False):
    """One item of `batch_save_patterns`."""

    pattern: Required[NewPattern]
    pattern_id: str
    initial_success_rate: float
    request_id: str
    dedupe: DedupeLike


class EmbedItemFields(TypedDict, total=False):
    """One item of `embed`."""

    text: Required[str]
    use: EmbeddingUseLike


class _FilterFields(TypedDict, total=False):
    """What selects patterns, episodes and memories alike."""

    tags_any: Sequence[str]
    tags_all: Sequence[str]
    labels: Mapping[str, str]


class PatternFilterFields(_FilterFields, total=False):
    """Selects patterns."""

    languages: Sequence[str]
    kinds: Sequence[PatternKindLike]
    code_kinds: Sequence[CodeKindLike]
    pattern_types: Sequence[PatternTypeLike]
    task_types: Sequence[str]
    categories: Sequence[str]
    min_success_rate: float
    min_usage_count: int
    created_after: datetime
    created_before: datetime
    complexities: Sequence[ComplexityLike]
    tools: Sequence[str]
    approaches: Sequence[str]
    pinned: bool
    min_reliability: float
    origins: Sequence[OriginKindLike]
    reviews: Sequence[ReviewStateLike]


class EpisodeFields(_Annotated, total=False):
    """Fields of an episode when it starts, besides its task."""

    task_id: str
    category: str
    task_type: str
    complexity: ComplexityLike
    dependencies: Sequence[str]
    effort: float
    approach: str
    agent_role: str
    context: str
    start_time: datetime


class EpisodeErrorFields(TypedDict, total=False):
    """The error that ended a failed episode."""

    type: str
    message: str


class EpisodeEndDetails(TypedDict, total=False):
    """Fields of an episode when it ends, besides its summary and error."""

    error_patterns: Sequence[str]
    success_factors: Sequence[str]
    tools_used: Sequence[str]
    metrics: Mapping[str, float]
    reward: float
    used_pattern_ids: Sequence[str]
    used_episode_ids: Sequence[str]
    end_time: datetime
    approach: str


class EpisodeEndFields(EpisodeEndDetails, total=False):
    """Fields of an episode when it ends."""

    summary: str
    error: EpisodeError | EpisodeErrorFields


class WholeEpisodeFields(EpisodeFields, EpisodeEndFields, total=False):
    """Fields of a finished episode."""


class EventFields(TypedDict, total=False):
    """One event of an episode."""

    event_type: Required[str]
    agent_role: str
    data: Mapping[str, Any]
    event_time: datetime


class EpisodeFilterFields(_FilterFields, total=False):
    """Selects episodes."""

    statuses: Sequence[EpisodeStatusLike]
    categories: Sequence[str]
    task_types: Sequence[str]
    task_ids: Sequence[str]
    complexities: Sequence[ComplexityLike]
    approaches: Sequence[str]
    agent_roles: Sequence[str]
    tools_any: Sequence[str]
    started_after: datetime
    started_before: datetime
    error_types: Sequence[str]
    ended_after: datetime
    ended_before: datetime


class ConversationSummaryFields(TypedDict, total=False):
    """Details of a CONVERSATION_SUMMARY."""

    key_decisions: Sequence[str]
    user_feedback: str


class ProjectFields(TypedDict, total=False):
    """Details of a PROJECT."""

    path: str
    tech_stack: Sequence[str]
    status: str
    last_accessed_time: datetime


class MemoryFields(_Lasting, total=False):
    """Fields of a memory besides its content."""

    kind: MemoryKindLike
    title: str
    language: str
    importance: float
    source_uri: str
    conversation_summary: ConversationSummaryDetails | ConversationSummaryFields
    project: ProjectDetails | ProjectFields
    supersedes: str
    valid_from: datetime
    valid_until: datetime


class MemoryFilterFields(_FilterFields, total=False):
    """Selects memories."""

    kinds: Sequence[MemoryKindLike]
    languages: Sequence[str]
    min_importance: float
    max_importance: float
    pinned: bool
    source_uris: Sequence[str]
    project_statuses: Sequence[str]
    tech_stack: Sequence[str]
    created_after: datetime
    created_before: datetime
    superseded: bool
    origins: Sequence[OriginKindLike]
    reviews: Sequence[ReviewStateLike]


PatternFilterLike: TypeAlias = PatternFilter | PatternFilterFields
EpisodeFilterLike: TypeAlias = EpisodeFilter | EpisodeFilterFields
MemoryFilterLike: TypeAlias = MemoryFilter | MemoryFilterFields
EmbedItemLike: TypeAlias = EmbedItem | EmbedItemFields
SavePatternItemLike: TypeAlias = SavePatternItem | SavePatternItemFields
EventLike: TypeAlias = EpisodeEvent | EventFields
Events: TypeAlias = EventLike | Iterable[EventLike]
