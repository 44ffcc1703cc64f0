"""The kinds that can be recalled, and their requests."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lot_grpc.domain.episode import Episode, EpisodeStatus
from lot_grpc.domain.memory import Memory
from lot_grpc.domain.pattern import Pattern
from lot_grpc.domain.query import EpisodeFilter, Legs, MemoryFilter, PatternFilter, Ranking
from lot_grpc.services.changes.watcher import ChangeWatcher
from lot_grpc.services.episodes.episodes import Episodes
from lot_grpc.services.episodes.spec import EPISODE
from lot_grpc.services.memories.memories import Memories
from lot_grpc.services.memories.passages import PassageMatcher
from lot_grpc.services.memories.spec import MEMORY
from lot_grpc.services.outcomes.evidence import OutcomesOnQueries
from lot_grpc.services.patterns.spec import PATTERN
from lot_grpc.services.recall.learned_tasks import LearnedTasks
from lot_grpc.services.recall.recall import RecallRequest
from lot_grpc.services.recall.search_target import SearchTarget
from lot_grpc.services.records.episodes import (
    episode_conditions,
    episode_filters,
    episode_from_record,
)
from lot_grpc.services.records.fields import Filters
from lot_grpc.services.records.memories import memory_filters, memory_from_record
from lot_grpc.services.records.patterns import pattern_filters, pattern_from_record
from lot_grpc.services.runtime import Runtime


def pattern_target(
    runtime: Runtime, tasks: LearnedTasks, change_watcher: ChangeWatcher
) -> SearchTarget[Pattern]:
    """Patterns, ranked by outcomes on similar queries; LEARNED ones by their tasks too."""
    return SearchTarget(
        PATTERN.collection.search_fields,
        PATTERN.kind,
        PATTERN.id_key,
        pattern_from_record,
        learned=OutcomesOnQueries(runtime, PATTERN.kind),
        tasks=tasks,
        on_recall=change_watcher.matched,
        of_tasks=True,
    )


def episode_target(runtime: Runtime, episodes: Episodes) -> SearchTarget[Episode]:
    """Episodes, ranked by outcomes of using them on similar queries."""
    return SearchTarget(
        EPISODE.collection.search_fields,
        EPISODE.kind,
        EPISODE.id_key,
        episode_from_record,
        episodes.read,
        learned=OutcomesOnQueries(runtime, EPISODE.kind),
        of_tasks=True,
    )


def memory_target(
    runtime: Runtime, memories: Memories, passages: PassageMatcher
) -> SearchTarget[Memory]:
    """Memories, ranked by outcomes on similar queries and by importance."""
    return SearchTarget(
        MEMORY.collection.search_fields,
        MEMORY.kind,
        MEMORY.id_key,
        memory_from_record,
        memories.read,
        learned=OutcomesOnQueries(runtime, MEMORY.kind),
        importance=lambda record: float(record.payload["importance"]),
        excerpts=passages.excerpts,
    )


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """Options of every recall. ``min_similarity`` 0: no bound; ``seed`` None: random (EXPLORE)."""

    query: str
    limit: int
    min_similarity: float = 0.0
    ranking: Ranking = Ranking.BALANCED
    rerank: bool = False
    explain: bool = False
    legs: Legs = Legs.HYBRID
    seed: int | None = None


def pattern_request(options: RecallOptions, criteria: PatternFilter) -> RecallRequest:
    """A recall request for patterns."""
    superseded = criteria.superseded or False  # left out by default
    return _request(options, pattern_filters(replace(criteria, superseded=superseded)))


def episode_request(
    options: RecallOptions, criteria: EpisodeFilter, *, success_only: bool
) -> RecallRequest:
    """A recall request for episodes; ``success_only`` further narrows the requested statuses."""
    filters = episode_filters(criteria)
    if success_only:
        succeeded = EpisodeFilter(statuses=(EpisodeStatus.SUCCEEDED,))
        filters["success_only"] = episode_conditions(succeeded)
    return _request(options, filters)


def memory_request(options: RecallOptions, criteria: MemoryFilter) -> RecallRequest:
    """A recall request for memories."""
    return _request(options, memory_filters(criteria))


def _request(options: RecallOptions, filters: Filters) -> RecallRequest:
    return RecallRequest(
        options.query,
        {name: conditions for name, conditions in filters.items() if conditions},
        options.limit,
        options.min_similarity,
        options.ranking,
        options.seed,
        options.rerank,
        options.explain,
        options.legs,
    )
