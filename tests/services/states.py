"""The state of a store that a test compares, whatever way it came about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lot_grpc.ports import Record, VectorStore
from lot_grpc.services.records.collections import (
    ACTION_VALUES,
    CONTEXT_STATS,
    DECISIONS,
    EPISODES,
    ERROR_SOLUTIONS,
    EVENTS,
    FEEDBACK,
    LEARNING_EVENTS,
    MEMORIES,
    OUTCOMES,
    PATTERNS,
    POLICIES,
    PREFERENCE_REVISIONS,
    PREFERENCES,
    SELECTIONS,
    SESSION_PARTS,
    SESSIONS,
    TOMBSTONES,
    TRAJECTORIES,
)
from tests.services.world import rows

_RANDOM = {
    "pattern_id", "episode_id", "memory_id", "resource_id", "outcome_id", "corrects_outcome_id",
    "root",
    "feedback_id", "learning_event_id", "decision_id", "selection_id", "trajectory_id",
}  # fmt: skip
_HOW_IT_CAME_ABOUT = {
    "sort_key", "create_time", "update_time", "record_time", "last_used_time", "start_time",
    "active_time", "abandoning", "reuse_revision", "pending_reuses",
    "end_time", "epoch", "writer_epoch", "writer_base", "writer_base_epoch", "request",
    "pending_ids", "stats_revision", "superseded_time", "delete_time", "undone_time", "resource",
    "review_time",
    "pending_feedback", "last_feedback_time",
    "pending_steps", "pending_events",
    "pending_requests", "expires", "result_revision", "time", "target_key", "extracted_pattern_ids",
    "writer_id", "change_seq", "stored_by", "stored_seq",
    "generation", "former_generations", "values_put", "bytes_put", "message_time", "created_by",
}  # fmt: skip


async def state(store: VectorStore, ns: str) -> Any:
    """All that a caller could tell, but for times and for ids that nobody chose."""
    names: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    texts = {r.payload["pattern_id"]: r.payload["task"] for r in await rows(store, PATTERNS, ns)}
    texts |= {r.payload["memory_id"]: r.payload["content"] for r in await rows(store, MEMORIES, ns)}
    for collection in (
        PATTERNS, EPISODES, MEMORIES, ERROR_SOLUTIONS, TOMBSTONES, OUTCOMES, FEEDBACK, EVENTS,
        POLICIES, LEARNING_EVENTS, DECISIONS, SELECTIONS, TRAJECTORIES, ACTION_VALUES,
        PREFERENCES, PREFERENCE_REVISIONS, SESSIONS, SESSION_PARTS,
    ):  # fmt: skip
        found[collection] = []
        for record in await rows(store, collection, ns):
            payload = _without_times(record.payload)
            if collection == SESSIONS:
                del payload["revision"]  # each renewal of the life is one
            for key in sorted(_RANDOM & payload.keys()):
                payload[key] = names.setdefault(payload[key], _named(payload, key))
            if successor := payload.get("superseded_by"):
                payload["superseded_by"] = texts.get(successor, "gone")
            if "id" in payload:
                payload["id"] = names.get(payload["id"], "gone")
            found[collection].append(json.dumps(payload, sort_keys=True).replace(ns, "here"))
        found[collection].sort()
    found[CONTEXT_STATS] = _summed(await rows(store, CONTEXT_STATS, ns), names)
    return found


def _summed(stats: list[Record], names: dict[str, str]) -> list[str]:
    """What is known of each resource: which stats it is in depends on when they were merged."""
    sums: dict[str, list[float]] = {}
    for one in stats:
        resource_id = str(one.payload["resource_id"])
        total = sums.setdefault(names.get(resource_id, resource_id), [0.0, 0.0, 0.0])
        for place, key in enumerate(("count", "successes", "trials")):
            total[place] += one.payload[key]
    return sorted(f"{name}: {[round(value, 3) for value in total]}" for name, total in sums.items())


def _without_times(value: Any) -> Any:
    """A payload without what tells how it came about, at any depth."""
    if isinstance(value, list):
        return [_without_times(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    if value.get("kind") == "selection":  # a target whose id nobody chose
        value = {**value, "id": "a selection"}
    return {k: _without_times(v) for k, v in value.items() if k not in _HOW_IT_CAME_ABOUT}


def _named(payload: dict[str, Any], key: str) -> str:
    if key in ("outcome_id", "corrects_outcome_id", "root"):
        return "an outcome"
    if key == "feedback_id":
        return "a feedback"
    if key in ("selection_id", "trajectory_id", "learning_event_id", "decision_id"):
        return f"a {key}"
    given = payload.get("task") or payload.get("content") or payload[key]
    return f"{key} of {given}"
