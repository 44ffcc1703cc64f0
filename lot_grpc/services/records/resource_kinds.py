"""Where the things of each kind lie: what to export, count and clear of a namespace.

A new collection of a namespace is entered here, with its kind or among those that have none; a test
holds this complete.
"""

from __future__ import annotations

from collections.abc import Mapping

from lot_grpc.domain.change import ResourceKind
from lot_grpc.services.records.collections import (
    ACTION_VALUES,
    DECISIONS,
    EPISODES,
    ERROR_SOLUTIONS,
    EVENTS,
    LEARNING_EVENTS,
    MEMORIES,
    META,
    OUTCOMES,
    PATTERN_LOGS,
    PATTERNS,
    POLICIES,
    PREFERENCE_REVISIONS,
    PREFERENCES,
    REPLICAS,
    REQUESTS,
    RETRIEVALS,
    SELECTIONS,
    SESSION_PARTS,
    SESSIONS,
    TOMBSTONES,
    TRAJECTORIES,
)

COLLECTIONS: Mapping[ResourceKind, tuple[str, ...]] = {
    ResourceKind.MEMORY: (MEMORIES,),
    ResourceKind.PATTERN: (PATTERNS, *PATTERN_LOGS),
    ResourceKind.OUTCOME: (OUTCOMES,),
    ResourceKind.EPISODE: (EPISODES, EVENTS),
    ResourceKind.EPISODE_EVENT: (EVENTS,),
    ResourceKind.ERROR_SOLUTION: (ERROR_SOLUTIONS,),
    ResourceKind.PREFERENCE: (PREFERENCES, PREFERENCE_REVISIONS),
    ResourceKind.SESSION: (SESSIONS, SESSION_PARTS),
    ResourceKind.LEARNING_EVENT: (LEARNING_EVENTS,),
    ResourceKind.DECISION: (DECISIONS,),
    ResourceKind.ACTION_VALUE: (ACTION_VALUES,),
    ResourceKind.POLICY: (POLICIES,),
}
"""By kind: the collection of its things first, then those of what hangs on them. A log that is a
kind of its own is named by both."""

BESIDE: tuple[str, ...] = (REQUESTS, TOMBSTONES, RETRIEVALS, SELECTIONS, TRAJECTORIES)
"""What a namespace holds beside its kinds: bookkeeping of calls, of any kind."""

OF_THE_STORE: tuple[str, ...] = (META, REPLICAS)
"""What belongs to the store as a whole, and to no namespace."""
