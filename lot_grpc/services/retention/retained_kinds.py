"""What policies bound, one entry a kind."""

from __future__ import annotations

from collections.abc import Callable

from lot_grpc.domain.episode import EpisodeStatus
from lot_grpc.ports import AnyOf, Condition, Payload, Range
from lot_grpc.services.episodes import episode_deleter as episode_deleter
from lot_grpc.services.memories import error_solutions, memories
from lot_grpc.services.patterns import patterns
from lot_grpc.services.patterns.pruner import NOT_PINNED, RANK_KEYS, pattern_rank
from lot_grpc.services.records.collections import (
    EPISODES,
    ERROR_SOLUTIONS,
    MEMORIES,
    PATTERNS,
    SORT_KEY,
)
from lot_grpc.services.retention.sweep import Bound, RetainedKind

_NOT_RUNNING = AnyOf("status", tuple(s.value for s in EpisodeStatus if s != EpisodeStatus.RUNNING))


def retained_kinds(
    of_patterns: patterns.Patterns,
    of_memories: memories.Memories,
    of_episodes: episode_deleter.EpisodeDeleter,
    of_error_solutions: error_solutions.ErrorSolutions,
) -> list[RetainedKind]:
    """The table that ``RetentionSweep`` sweeps by."""
    return [
        RetainedKind(
            resource_kind="PATTERN",
            collection=PATTERNS,
            touched=[NOT_PINNED],
            older_than=_all_before("update_time", "last_used_time"),
            keys=(*patterns.SEEN_KEYS, *RANK_KEYS),
            rank=pattern_rank,
            bound=lambda policy: Bound(policy.max_patterns, policy.max_pattern_age),
            delete=of_patterns.delete_as_seen,
        ),
        RetainedKind(
            resource_kind="MEMORY",
            collection=MEMORIES,
            touched=[NOT_PINNED],
            older_than=_all_before("update_time"),
            keys=(*memories.SEEN_KEYS, "importance"),
            rank=_importance,
            bound=lambda policy: Bound(policy.max_memories, policy.max_memory_age),
            delete=of_memories.delete_as_seen,
        ),
        RetainedKind(
            resource_kind="EPISODE",
            collection=EPISODES,
            touched=[_NOT_RUNNING],
            older_than=_all_before("end_time"),
            keys=episode_deleter.SEEN_KEYS,
            rank=None,
            bound=lambda policy: Bound(policy.max_episodes, policy.max_episode_age),
            delete=of_episodes.delete_as_seen,
        ),
        RetainedKind(
            resource_kind="ERROR_SOLUTION",
            collection=ERROR_SOLUTIONS,
            touched=[NOT_PINNED],
            older_than=_all_before("update_time", "last_used_time"),
            keys=(*error_solutions.SEEN_KEYS, *RANK_KEYS),
            rank=_solution_rank,
            bound=lambda policy: Bound(policy.max_error_solutions, policy.max_error_solution_age),
            delete=of_error_solutions.delete_as_seen,
        ),
    ]


def _all_before(*keys: str) -> Callable[[int], list[Condition]]:
    """The times at all of these keys lie before one."""
    return lambda time: [Range(key, lt=time) for key in keys]


def _solution_rank(payload: Payload) -> tuple[float, ...]:
    """As patterns; the bound of nothing but failures is 0, but for the rounding of doubles."""
    reliability, *rest = pattern_rank(payload)
    return (round(reliability, 9), *rest)


def _importance(payload: Payload) -> tuple[float, int]:
    """Which memory is better: the more important, then the newer."""
    return payload["importance"], payload[SORT_KEY]
