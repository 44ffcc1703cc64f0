"""The names of collections, of vectors, and of keys that many records have."""

from __future__ import annotations

from lot_grpc.kernel.idempotency import REQUESTS as REQUESTS
from lot_grpc.kernel.intents import SORT_KEY as SORT_KEY
from lot_grpc.kernel.tombstones import TOMBSTONES as TOMBSTONES

SCHEMA_VERSION = 7
"""Raised whenever what is stored changes its form: a store of another version is refused."""

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
"""The processes that write, and up to which change each has settled."""

PATTERN_LOGS = (OUTCOMES, CONTEXT_STATS, FEEDBACK)
"""What hangs on a pattern, by ``pattern_id`` and sort key, and goes with it."""
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
"""The process that wrote a watched record last, and the number it gave that change."""

END_TIME = "end_time"
"""Of an ended episode, and of an abandoned one its last activity."""

TEXT_VECTOR = "text"
CODE_VECTOR = "code"
"""Of what has code."""
SOLVED_VECTOR = "solved"
"""Of an error solution: the error together with its fix, for who asks in words of their own. Of an
ended episode: its summary, where it has one beside its task."""
PASSAGE_VECTORS = "passages"
"""Of a text that has several passages: a vector of each, in order."""
SPARSE_VECTOR = "bm25"
QUERY_VECTOR = "query"
"""Of a cell: the query that its outcomes answered."""
