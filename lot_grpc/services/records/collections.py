"""The names of collections, of vectors, and of keys that many records have."""

from __future__ import annotations

from lot_grpc.kernel.idempotency import REQUESTS as REQUESTS
from lot_grpc.kernel.intents import SORT_KEY as SORT_KEY
from lot_grpc.kernel.tombstones import TOMBSTONES as TOMBSTONES

SCHEMA_VERSION = 9
"""Increased whenever the stored form changes: a store with another version is refused."""

META = "meta"
PATTERNS = "patterns"
OUTCOMES = "outcomes"
CONTEXT_STATS = "context_stats"
FEEDBACK = "feedback"
RETRIEVALS = "retrievals"
EPISODES = "episodes"
EVENTS = "events"
MEMORIES = "memories"
POLICIES = "policies"
REPLICAS = "replicas"
"""The processes that write, and up to which change each is settled."""

PATTERN_LOGS = (OUTCOMES, CONTEXT_STATS, FEEDBACK)
"""What belongs to a pattern, by ``pattern_id`` and sort key, and is deleted with it."""
LEARNING_EVENTS = "learning_events"
DECISIONS = "decisions"
SELECTIONS = "selections"
TRAJECTORIES = "trajectories"
ACTION_VALUES = "action_values"
PREFERENCES = "preferences"
PREFERENCE_REVISIONS = "preference_revisions"
ERROR_SOLUTIONS = "error_solutions"
SESSIONS = "sessions"
SESSION_PARTS = "session_parts"
"""The values and messages of sessions."""

WRITER_ID, CHANGE_SEQ = "writer_id", "change_seq"
"""The process that last wrote a watched record, and the number it gave that change."""

END_TIME = "end_time"
"""On ended episodes; on abandoned ones the time of their last activity."""

TEXT_VECTOR = "text"
CODE_VECTOR = "code"
"""On records with code."""
SOLVED_VECTOR = "solved"
"""On an error solution: the error together with its fix, for queries in other words. On an ended
episode: its summary, if it has one in addition to its task."""
PASSAGE_VECTORS = "passages"
"""On texts with several passages: one vector each, in order."""
SPARSE_VECTOR = "bm25"
QUERY_VECTOR = "query"
"""On context stats: the query that their outcomes answered."""
