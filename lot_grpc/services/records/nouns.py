"""Where the things of each noun lie: what to export, count and clear of a namespace.

A new collection of a namespace is entered here, with its noun or among those that have none; a test
holds this complete.
"""

from __future__ import annotations

from collections.abc import Mapping

from lot_grpc.domain.change import Noun
from lot_grpc.services.records.collections import (
    ACTION_VALUES,
    CHANGE_WRITERS,
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
    REQUESTS,
    RETRIEVALS,
    SELECTIONS,
    SESSION_PARTS,
    SESSIONS,
    TOMBSTONES,
    TRAJECTORIES,
)

COLLECTIONS: Mapping[Noun, tuple[str, ...]] = {
    Noun.MEMORY: (MEMORIES,),
    Noun.PATTERN: (PATTERNS, *PATTERN_LOGS),
    Noun.OUTCOME: (OUTCOMES,),
    Noun.EPISODE: (EPISODES, EVENTS),
    Noun.EPISODE_EVENT: (EVENTS,),
    Noun.ERROR_SOLUTION: (ERROR_SOLUTIONS,),
    Noun.PREFERENCE: (PREFERENCES, PREFERENCE_REVISIONS),
    Noun.SESSION: (SESSIONS, SESSION_PARTS),
    Noun.LEARNING_EVENT: (LEARNING_EVENTS,),
    Noun.DECISION: (DECISIONS,),
    Noun.ACTION_VALUE: (ACTION_VALUES,),
    Noun.POLICY: (POLICIES,),
}
"""By noun: the collection of its things first, then those of what hangs on them. A log that is a
noun of its own is named by both."""

BESIDE: tuple[str, ...] = (REQUESTS, TOMBSTONES, RETRIEVALS, SELECTIONS, TRAJECTORIES)
"""What a namespace holds beside its nouns: bookkeeping of calls, of any noun."""

OF_THE_STORE: tuple[str, ...] = (META, CHANGE_WRITERS)
"""What belongs to the store as a whole, and to no namespace."""
