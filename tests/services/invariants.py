"""What must hold of a store whenever nothing is being written, whatever died before."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

from lot_grpc.domain.outcomes import Outcome, wilson_lower_bound
from lot_grpc.domain.pattern import PatternContent, dedupe_hash
from lot_grpc.ports import Record, VectorStore
from lot_grpc.services.lineage import NOTE_KIND
from lot_grpc.services.records.collections import (
    EPISODES,
    EVENTS,
    MEMORIES,
    OUTCOMES,
    PATTERNS,
    REQUESTS,
    TOMBSTONES,
)
from lot_grpc.services.records.patterns import claim_point, pattern_from_record
from tests.services.world import World, draft, rows


async def check_invariants(store: VectorStore, ns: str) -> None:
    """Nothing is half: counters equal their log, no event without episode, no open delete."""
    patterns = await rows(store, PATTERNS, ns)
    facts = await rows(store, OUTCOMES, ns)
    _check_counters(patterns, facts)
    _check_lineage(patterns)
    notes = [r.payload for r in await rows(store, REQUESTS, ns) if r.payload["kind"] == NOTE_KIND]
    assert not notes, f"what supersedes what was not followed: {notes}"
    await _check_episodes(store, ns)
    open_stones = [r.payload for r in await rows(store, TOMBSTONES, ns) if not r.payload["done"]]
    assert not open_stones, f"a delete was begun and never finished: {open_stones}"


def _check_counters(patterns: list[Record], facts: list[Record]) -> None:
    by_pattern: dict[str, list[Record]] = {}
    for fact in facts:
        assert fact.payload["settled"], f"an outcome was never taken in: {fact.payload}"
        by_pattern.setdefault(fact.payload["pattern_id"], []).append(fact)
    there = {record.payload["pattern_id"] for record in patterns}
    assert set(by_pattern) <= there, "outcomes of a pattern that is gone"
    for record in patterns:
        payload = record.payload
        log = by_pattern.get(payload["pattern_id"], [])
        kinds = Counter(fact.payload["outcome"] for fact in log)
        began: dict[str, int] = payload.get("inherited", {})
        kinds.update({kind: began.get(f"{kind}_count", 0) for kind in Outcome})
        usage = sum(kinds.values())
        told = {kind: payload[f"{kind}_count"] for kind in ("success", "failure", "partial")}
        assert told == {kind: kinds[kind] for kind in told}, f"{payload['task']}: {told} {kinds}"
        assert payload["usage_count"] == usage
        durations = began.get("duration_count", 0) + sum("duration" in f.payload for f in log)
        assert payload["duration_count"] == durations
        successes = told["success"] + 0.5 * told["partial"]
        assert math.isclose(payload["reliability"], wilson_lower_bound(successes, usage))
        assert payload["success_permille"] == round(payload["success_rate"] * 1000)
        assert set(payload["unsettled_ids"]) <= {fact.id for fact in log}


def _check_lineage(patterns: list[Record]) -> None:
    """Marks follow what supersedes what; a parent that is a group's head names its members."""
    newest: dict[str, str] = {}
    for record in sorted(patterns, key=lambda record: record.payload["sort_key"]):
        if superseded := record.payload.get("supersedes"):
            newest[superseded] = record.payload["pattern_id"]
    heads = {r.payload["pattern_id"]: r.payload for r in patterns if "group_level" in r.payload}
    for record in patterns:
        payload = record.payload
        successor = newest.get(payload["pattern_id"], "")
        assert payload.get("superseded_by", "") == successor, f"{payload['task']}: {successor!r}"
        assert payload.get("superseded", False) == bool(successor)
        if parent := heads.get(payload.get("parent_pattern_id", "")):
            assert payload["pattern_id"] in parent["source_pattern_ids"]


async def _check_episodes(store: VectorStore, ns: str) -> None:
    episodes = {r.payload["episode_id"]: r.payload for r in await rows(store, EPISODES, ns)}
    numbers: dict[str, list[int]] = {}
    for event in await rows(store, EVENTS, ns):
        numbers.setdefault(event.payload["episode_id"], []).append(event.payload["sequence"])
    assert set(numbers) <= set(episodes), "events of an episode that is not there"
    for episode_id, given in numbers.items():
        assert sorted(given) == list(range(1, len(given) + 1)), f"{episode_id}: {sorted(given)}"
    for episode_id, payload in episodes.items():
        if payload["status"] in ("succeeded", "failed"):
            assert payload["event_count"] == len(numbers.get(episode_id, []))


async def check_contents(world: World, ns: str, contents: tuple[str, ...]) -> None:
    """Saved once more, each content is one pattern: no claim blocks it, none is missing."""
    for task in contents:
        for language in ("python", ""):
            given = draft(task, language=language)
            before = await _with_content(world, ns, given.content)
            assert len(before) <= 1, f"{task} is there {len(before)} times"
            saved = await world.services.saving.save(ns, given)
            after = await _with_content(world, ns, given.content)
            assert after == [saved.pattern.pattern_id]
            assert saved.created == (not before)
            claim = claim_point(ns, given.content)
            held = (await world.store.get(REQUESTS, ns, [claim]))[claim]
            assert held.payload["pattern_id"] == saved.pattern.pattern_id
    await check_invariants(world.store, ns)


async def _with_content(world: World, ns: str, content: PatternContent) -> list[str]:
    """Patterns of a content; those that were saved by id are not looked for by content."""
    found = [pattern_from_record(record) for record in await rows(world.store, PATTERNS, ns)]
    return [
        one.pattern_id
        for one in found
        if dedupe_hash(one.content) == dedupe_hash(content)
        and one.pattern_id not in ("p2", "p3", "mine")
    ]


_RANDOM = {"pattern_id", "episode_id", "memory_id", "outcome_id"}
_HOW_IT_CAME_ABOUT = {
    "sort_key", "create_time", "update_time", "record_time", "last_used_time", "start_time",
    "end_time", "epoch", "writer_epoch", "writer_base", "writer_base_epoch", "request",
    "unsettled_ids", "stats_revision", "delete_time",
}  # fmt: skip


async def state(store: VectorStore, ns: str) -> Any:
    """All that a caller could tell, but for times and for ids that nobody chose."""
    names: dict[str, str] = {}
    told: dict[str, list[str]] = {}
    tasks = {r.payload["pattern_id"]: r.payload["task"] for r in await rows(store, PATTERNS, ns)}
    for collection in (PATTERNS, EPISODES, MEMORIES, TOMBSTONES, OUTCOMES, EVENTS):
        told[collection] = []
        for record in await rows(store, collection, ns):
            payload = dict(record.payload)
            for key in _HOW_IT_CAME_ABOUT:
                payload.pop(key, None)
            for key in _RANDOM & payload.keys():
                payload[key] = names.setdefault(payload[key], _named(payload, key))
            if successor := payload.get("superseded_by"):
                payload["superseded_by"] = tasks.get(successor, "gone")
            if "id" in payload:
                payload["id"] = names.get(payload["id"], "gone")
            told[collection].append(json.dumps(payload, sort_keys=True))
        told[collection].sort()
    return told


def _named(payload: dict[str, Any], key: str) -> str:
    if key == "outcome_id":
        return "an outcome"
    given = payload.get("task") or payload.get("content") or payload[key]
    return f"{key} of {given}"
