"""The nouns that are recalled, and their questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lot_grpc.domain.episode import Episode, EpisodeStatus
from lot_grpc.domain.errors import UnimplementedError
from lot_grpc.domain.memory import Memory
from lot_grpc.domain.pattern import Pattern
from lot_grpc.domain.query import EpisodeFilter, Legs, MemoryFilter, PatternFilter, Ranking
from lot_grpc.ports import Condition
from lot_grpc.services.episodes import Episodes
from lot_grpc.services.memories import Memories
from lot_grpc.services.patterns import Patterns
from lot_grpc.services.recall import Noun, Question
from lot_grpc.services.records.episodes import episode_conditions
from lot_grpc.services.records.memories import memory_conditions
from lot_grpc.services.records.patterns import pattern_conditions
from lot_grpc.services.searched import (
    SEARCHED_EPISODES,
    SEARCHED_MEMORIES,
    SEARCHED_PATTERNS,
)

CARRIED_OUT = (Ranking.BALANCED, Ranking.SIMILARITY)


def _learned(payload: Mapping[str, Any]) -> tuple[float, int]:
    return payload["success_count"] + 0.5 * payload["partial_count"], payload["usage_count"]


def pattern_noun(patterns: Patterns) -> Noun[Pattern]:
    """Patterns, ranked by their outcomes."""
    return Noun(SEARCHED_PATTERNS, patterns.read, lambda p: p.pattern_id, _learned)


def episode_noun(episodes: Episodes) -> Noun[Episode]:
    """Episodes."""
    return Noun(SEARCHED_EPISODES, episodes.read, lambda e: e.episode_id)


def memory_noun(memories: Memories) -> Noun[Memory]:
    """Memories."""
    return Noun(SEARCHED_MEMORIES, memories.read, lambda m: m.memory_id)


@dataclass(frozen=True, slots=True)
class Asked:
    """What every recall asks. ``min_similarity`` 0: no bound."""

    query: str
    limit: int
    min_similarity: float = 0.0
    ranking: Ranking = Ranking.BALANCED
    rerank: bool = False
    explain: bool = False
    legs: Legs = Legs.HYBRID

    def check(self) -> None:
        """Raise for what this version does not carry out."""
        if self.ranking not in CARRIED_OUT:
            raise UnimplementedError(
                f"ranking {self.ranking.name} is not carried out by this version; "
                "use BALANCED or SIMILARITY",
                what=f"ranking {self.ranking.name}",
            )


def pattern_question(asked: Asked, narrowed: PatternFilter) -> Question:
    """A question for patterns."""
    superseded = narrowed.superseded or False  # left out unless asked for
    return _question(asked, pattern_conditions(replace(narrowed, superseded=superseded)))


def episode_question(asked: Asked, narrowed: EpisodeFilter, *, success_only: bool) -> Question:
    """A question for episodes; ``success_only`` narrows whatever statuses are asked for."""
    where = episode_conditions(narrowed)
    if success_only:
        where += episode_conditions(EpisodeFilter(statuses=(EpisodeStatus.SUCCEEDED,)))
    return _question(asked, where)


def memory_question(asked: Asked, narrowed: MemoryFilter) -> Question:
    """A question for memories."""
    return _question(asked, memory_conditions(narrowed))


def _question(asked: Asked, where: list[Condition]) -> Question:
    asked.check()
    return Question(
        asked.query,
        where,
        asked.limit,
        asked.min_similarity,
        asked.ranking,
        asked.rerank,
        asked.explain,
        asked.legs,
    )
