"""The nouns that are recalled, and their questions."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lot_grpc.domain.episode import Episode, EpisodeStatus
from lot_grpc.domain.memory import Memory
from lot_grpc.domain.pattern import Pattern
from lot_grpc.domain.query import EpisodeFilter, Legs, MemoryFilter, PatternFilter, Ranking
from lot_grpc.services.changes.watching import Watching
from lot_grpc.services.episodes.episodes import Episodes
from lot_grpc.services.memories.memories import Memories
from lot_grpc.services.memories.passages import MatchingPassages
from lot_grpc.services.outcomes.evidence import PatternEvidence
from lot_grpc.services.patterns.patterns import Patterns
from lot_grpc.services.recall.learned_tasks import LearnedTasks
from lot_grpc.services.recall.recall import Noun, Question
from lot_grpc.services.recall.searched import (
    SEARCHED_EPISODES,
    SEARCHED_MEMORIES,
    SEARCHED_PATTERNS,
)
from lot_grpc.services.records.episodes import episode_conditions, episode_filters
from lot_grpc.services.records.fields import Filters
from lot_grpc.services.records.memories import memory_filters
from lot_grpc.services.records.patterns import pattern_filters


def pattern_noun(
    patterns: Patterns,
    evidence: PatternEvidence,
    tasks: LearnedTasks,
    watching: Watching,
) -> Noun[Pattern]:
    """Patterns, ranked by their outcomes on like queries; LEARNED ones by their tasks too."""
    return Noun(
        SEARCHED_PATTERNS,
        patterns.read,
        lambda p: p.pattern_id,
        evidence,
        tasks,
        watching.matched,
        of_tasks=True,
    )


def episode_noun(episodes: Episodes) -> Noun[Episode]:
    """Episodes."""
    return Noun(SEARCHED_EPISODES, episodes.read, lambda e: e.episode_id, of_tasks=True)


def memory_noun(memories: Memories, passages: MatchingPassages) -> Noun[Memory]:
    """Memories; of near-ties the more important ones come first."""
    return Noun(
        SEARCHED_MEMORIES,
        memories.read,
        lambda m: m.memory_id,
        importance=lambda record: float(record.payload["importance"]),
        excerpts=passages.excerpts,
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """What every recall asks. ``min_similarity`` 0: no bound. ``seed`` of EXPLORE, None: any."""

    query: str
    limit: int
    min_similarity: float = 0.0
    ranking: Ranking = Ranking.BALANCED
    rerank: bool = False
    explain: bool = False
    legs: Legs = Legs.HYBRID
    seed: int | None = None


def pattern_question(asked: Asked, narrowed: PatternFilter) -> Question:
    """A question for patterns."""
    superseded = narrowed.superseded or False  # left out unless asked for
    return _question(asked, pattern_filters(replace(narrowed, superseded=superseded)))


def episode_question(asked: Asked, narrowed: EpisodeFilter, *, success_only: bool) -> Question:
    """A question for episodes; ``success_only`` narrows whatever statuses are asked for."""
    filters = episode_filters(narrowed)
    if success_only:
        succeeded = EpisodeFilter(statuses=(EpisodeStatus.SUCCEEDED,))
        filters["success_only"] = episode_conditions(succeeded)
    return _question(asked, filters)


def memory_question(asked: Asked, narrowed: MemoryFilter) -> Question:
    """A question for memories."""
    return _question(asked, memory_filters(narrowed))


def _question(asked: Asked, filters: Filters) -> Question:
    return Question(
        asked.query,
        {name: conditions for name, conditions in filters.items() if conditions},
        asked.limit,
        asked.min_similarity,
        asked.ranking,
        asked.seed,
        asked.rerank,
        asked.explain,
        asked.legs,
    )
