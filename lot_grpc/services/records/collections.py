"""The collections and what of them is indexed."""

from __future__ import annotations

from lot_grpc.kernel.idempotency import REQUESTS as REQUESTS
from lot_grpc.kernel.intents import SORT_KEY as SORT_KEY
from lot_grpc.kernel.tombstones import TOMBSTONES as TOMBSTONES
from lot_grpc.ports import CollectionSpec, Index

SCHEMA_VERSION = 6
"""Raised whenever what is stored changes its form: a store of another version is refused."""

META = "meta"
PATTERNS = "patterns"
OUTCOMES = "outcomes"
CELLS = "cells"
FEEDBACK = "feedback"
RETRIEVALS = "retrievals"
EPISODES = "episodes"
EVENTS = "events"
MEMORIES = "memories"
POLICIES = "policies"
REPLICAS = "change_writers"
"""The processes that write, and up to which change each has settled."""

PATTERN_LOGS = (OUTCOMES, CELLS, FEEDBACK)
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

_K, _I, _F, _B = Index.KEYWORD, Index.INTEGER, Index.FLOAT, Index.BOOL
_COMMON = {"tags": _K, "label_pairs": _K, "create_time": _I, SORT_KEY: _I}
_STAMP = {WRITER_ID: _K, CHANGE_SEQ: _I}


def collection_specs(dimensions: int) -> list[CollectionSpec]:
    """Every collection, for an embedding model of so many dimensions."""
    return [
        CollectionSpec(META, indexes={"turn": _I, "clearing": _B}),
        CollectionSpec(REQUESTS, indexes={"kind": _K, "pattern_id": _K, "done": _B}),
        CollectionSpec(TOMBSTONES, indexes={"done": _B, **_STAMP}),
        CollectionSpec(REPLICAS),
        CollectionSpec(
            PATTERNS,
            dense={TEXT_VECTOR: dimensions, CODE_VECTOR: dimensions},
            sparse=(SPARSE_VECTOR,),
            indexes={
                **_COMMON,
                **_STAMP,
                "kind": _K,
                "code_kind": _K,
                "pattern_type": _K,
                "language": _K,
                "category": _K,
                "task_type": _K,
                "task_type_pattern": _K,
                "complexity": _K,
                "approach": _K,
                "tools": _K,
                "pinned": _B,
                "success_rate": _F,
                "success_permille": _I,
                "reliability": _F,
                "usage_count": _I,
                "success_count": _I,
                "failure_count": _I,
                "last_used_time": _I,
                "update_time": _I,
                "supersedes": _K,
                "superseded": _B,
                "parent_pattern_id": _K,
                "group_level": _I,
            },
        ),
        CollectionSpec(
            OUTCOMES,
            indexes={
                "pattern_id": _K,
                "error_solution_id": _K,
                "outcome_id": _K,
                "settled": _B,
                SORT_KEY: _I,
            },
        ),
        CollectionSpec(
            CELLS,
            dense={QUERY_VECTOR: dimensions},
            indexes={"pattern_id": _K, "unsettled_ids": _K, "merging_into": _K, SORT_KEY: _I},
        ),
        CollectionSpec(FEEDBACK, indexes={"pattern_id": _K, "settled": _B, SORT_KEY: _I}),
        CollectionSpec(RETRIEVALS),
        CollectionSpec(
            EPISODES,
            dense={TEXT_VECTOR: dimensions, SOLVED_VECTOR: dimensions},
            sparse=(SPARSE_VECTOR,),
            indexes={
                **_COMMON,
                **_STAMP,
                "status": _K,
                "task_id": _K,
                "category": _K,
                "task_type": _K,
                "complexity": _K,
                "approach": _K,
                "agent_role": _K,
                "tools_used": _K,
                "error_type": _K,
                "success_factors": _K,
                "extraction": _K,
                "reuse": _K,
                "active_time": _I,
                "start_time": _I,
                END_TIME: _I,
            },
        ),
        CollectionSpec(EVENTS),
        CollectionSpec(
            MEMORIES,
            dense={TEXT_VECTOR: dimensions, CODE_VECTOR: dimensions},
            multi={PASSAGE_VECTORS: dimensions},
            sparse=(SPARSE_VECTOR,),
            indexes={
                **_COMMON,
                **_STAMP,
                "kind": _K,
                "language": _K,
                "source_uri": _K,
                "project_status": _K,
                "tech_stack": _K,
                "importance": _F,
                "pinned": _B,
                "update_time": _I,
            },
        ),
        CollectionSpec(POLICIES, indexes={SORT_KEY: _I}),
        CollectionSpec(
            LEARNING_EVENTS,
            indexes={
                **_COMMON,
                **_STAMP,
                "event_type": _K,
                "outcome": _K,
                "reward": _F,
                "agent_role": _K,
                "target_key": _K,
                "settled": _B,
            },
        ),
        CollectionSpec(
            DECISIONS,
            indexes={
                **_COMMON,
                **_STAMP,
                "agent_role": _K,
                "chosen_option": _K,
                "outcome": _K,
                "category": _K,
                "episode_id": _K,
                "task_id": _K,
            },
        ),
        CollectionSpec(SELECTIONS),
        CollectionSpec(TRAJECTORIES, indexes={"settled": _B}),
        CollectionSpec(ACTION_VALUES, indexes={"state": _K, "value_order": _I, SORT_KEY: _I}),
        CollectionSpec(
            PREFERENCES, indexes={"category": _K, "task_hash": _K, SORT_KEY: _I, **_STAMP}
        ),
        CollectionSpec(PREFERENCE_REVISIONS, indexes={"key": _K, "revision": _I, SORT_KEY: _I}),
        CollectionSpec(SESSIONS, indexes={"former_generations": _I, SORT_KEY: _I, **_STAMP}),
        CollectionSpec(
            SESSION_PARTS,
            indexes={
                "session_id": _K,
                "generation": _I,
                "part": _K,
                "sequence": _I,
                "importance": _F,
            },
        ),
        CollectionSpec(
            ERROR_SOLUTIONS,
            dense={TEXT_VECTOR: dimensions, SOLVED_VECTOR: dimensions},
            sparse=(SPARSE_VECTOR,),
            indexes={
                **_COMMON,
                **_STAMP,
                "signature": _K,
                "signatures": _K,
                "error_type": _K,
                "language": _K,
                "categories": _K,
                "worked": _B,
                "pinned": _B,
                "success_rate": _F,
                "usage_count": _I,
                "last_used_time": _I,
                "update_time": _I,
            },
        ),
    ]
