"""What must hold of a store whenever nothing is being written, whatever died before."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.error_solution import same_solution_id
from lot_grpc.domain.feedback import adjustment_of, moved
from lot_grpc.domain.ids import ResourceRef
from lot_grpc.domain.outcomes import Outcome, wilson_lower_bound
from lot_grpc.domain.passages import passages_of
from lot_grpc.domain.pattern import PatternContent, dedupe_hash
from lot_grpc.domain.preference import HISTORY
from lot_grpc.ports import MultiVector, Record, VectorStore
from lot_grpc.services.lineage.lineage import note_kind
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
    PASSAGE_VECTORS,
    PATTERNS,
    PREFERENCE_REVISIONS,
    PREFERENCES,
    REQUESTS,
    SESSION_PARTS,
    SESSIONS,
    TOMBSTONES,
    TRAJECTORIES,
)
from lot_grpc.services.records.counters import outcomes_from_payload
from lot_grpc.services.records.error_solutions import (
    error_solution_from_record,
    error_solution_point,
)
from lot_grpc.services.records.origin import held_back
from lot_grpc.services.records.outcomes import outcome_from_record
from lot_grpc.services.records.patterns import claim_point, pattern_from_record
from lot_grpc.services.resources import REGISTRY
from tests.services.world import World, draft, rows

NOTES = {note_kind(kind) for kind in (ResourceKind.PATTERN, ResourceKind.MEMORY)}


async def check_invariants(store: VectorStore, ns: str) -> None:
    """Nothing is half: counters equal their log, no event without episode, no open delete."""
    patterns = await rows(store, PATTERNS, ns)
    recorded_outcomes = await rows(store, OUTCOMES, ns)
    await _check_counters(store, ns, recorded_outcomes)
    _check_context_stats(await rows(store, CONTEXT_STATS, ns), recorded_outcomes)
    _check_feedback(patterns, await rows(store, FEEDBACK, ns))
    _check_marks(patterns, "pattern_id")
    _check_groups(patterns)
    notes = [r.payload for r in await rows(store, REQUESTS, ns) if r.payload["kind"] in NOTES]
    assert not notes, f"what supersedes what was not followed: {notes}"
    await _check_episodes(store, ns)
    await _check_learning(store, ns)
    solutions = await rows(store, ERROR_SOLUTIONS, ns)
    _check_error_solutions(solutions)
    memories = await store.scroll(MEMORIES, ns, [], limit=100_000, vectors=True)
    _check_memories(memories)
    _check_marks(memories, "memory_id")
    open_stones = [r.payload for r in await rows(store, TOMBSTONES, ns) if not r.payload["done"]]
    assert not open_stones, f"a delete was begun and never finished: {open_stones}"
    await _check_stamps(store, ns)


async def _check_stamps(store: VectorStore, ns: str) -> None:
    """Each watched record names a change of its own, unless an older version wrote it."""
    records = [
        record for collection in REGISTRY.tracked for record in await rows(store, collection, ns)
    ]
    numbers = Counter(
        (one.payload["writer_id"], one.payload["change_seq"])
        for one in records
        if "writer_id" in one.payload
    )
    assert all(count == 1 for count in numbers.values()), f"two changes have one number: {numbers}"


def _check_memories(memories: list[Record]) -> None:
    """Each has as many vectors of passages as its content has passages, and none while pending."""
    for record in memories:
        spans = passages_of(record.payload["content"]).spans
        several = record.vectors.get(PASSAGE_VECTORS)
        have = len(several.vectors) if isinstance(several, MultiVector) else 0
        whole = len(spans) > 1 and "indexing" not in record.payload
        assert have == (len(spans) if whole else 0), record.payload["memory_id"]


async def _check_counters(store: VectorStore, ns: str, recorded_outcomes: list[Record]) -> None:
    """The counters of every resource are what its log comes to."""
    by_resource: dict[str, list[Record]] = {}
    for recorded in recorded_outcomes:
        payload = recorded.payload
        assert payload["applied"], f"an outcome was never taken in: {payload}"
        ref = ResourceRef(payload["resource_kind"], payload["resource_id"])
        assert payload["resource"] == ref.point(ns)
        if ref.kind == "retrieval":
            assert payload["retrieval_id"] == ref.id
        else:
            by_resource.setdefault(payload["resource"], []).append(recorded)
    for spec in REGISTRY.counted.values():
        for record in await rows(store, spec.collection.name, ns):
            _check_counted(record, by_resource.pop(record.id, []))
    assert not by_resource, f"outcomes of what is gone: {by_resource}"


def _check_counted(record: Record, log: list[Record]) -> None:
    payload = record.payload
    assert set(payload["pending_ids"]) <= {recorded.id for recorded in log}
    assert "stats_revision" in payload
    kinds = Counter(recorded.payload.get("outcome") for recorded in log)
    kinds.subtract(recorded.payload.get("undone") for recorded in log)
    began: dict[str, int] = payload.get("inherited", {})
    kinds.update({kind: began.get(f"{kind}_count", 0) for kind in Outcome})
    counted = outcomes_from_payload(payload)
    told = {kind: getattr(counted, f"{kind}_count") for kind in Outcome}
    assert told == {kind: kinds[kind] for kind in Outcome}, f"{payload}: {told} {kinds}"
    undone = {f.payload["root"] for f in log if _puts_nothing_instead(f)}
    durations = began.get("duration_count", 0) + sum(
        "duration" in f.payload and f.payload["outcome_id"] not in undone for f in log
    )
    assert counted.duration_count == durations
    if "usage_count" in payload:
        assert payload["usage_count"] == counted.usage_count
        reliability = wilson_lower_bound(counted.weighted_successes, counted.usage_count)
        assert math.isclose(payload["reliability"], reliability)
        assert payload["success_permille"] == round(payload["success_rate"] * 1000)


def _puts_nothing_instead(recorded: Record) -> bool:
    return "corrects_outcome_id" in recorded.payload and "outcome" not in recorded.payload


def _check_context_stats(stats: list[Record], recorded_outcomes: list[Record]) -> None:
    """Each outcome on a query counts in one record of stats of its resource, and in no more."""
    counts: Counter[str] = Counter()
    by_point = {one.id: one for one in stats}
    for one in stats:
        assert not one.payload.get("merging"), "stats were to be merged and are not"
        if "merged_into" in one.payload:
            assert one.payload["count"] == 0, "merged stats count"
            into = by_point[one.payload["merged_into"]]
            assert into.payload["resource"] == one.payload["resource"]
        assert 0 <= one.payload["successes"] <= one.payload["trials"] + 1e-9
        assert one.payload["trials"] <= one.payload["count"] + 1e-9
        counts[one.payload["resource"]] += one.payload["count"]
    logged: Counter[str] = Counter()
    for recorded in recorded_outcomes:
        if outcome_from_record(recorded).in_context:
            now, before = "outcome" in recorded.payload, "undone" in recorded.payload
            logged[recorded.payload["resource"]] += now - before
    assert counts == +logged, "stats and the log differ"


def _check_feedback(patterns: list[Record], recorded_outcomes: list[Record]) -> None:
    """The confidence is what its log comes to, step by step; edits come in between only."""
    by_pattern: dict[str, list[Record]] = {}
    for recorded in recorded_outcomes:
        assert recorded.payload["applied"], f"a feedback was never taken in: {recorded.payload}"
        by_pattern.setdefault(recorded.payload["pattern_id"], []).append(recorded)
    assert set(by_pattern) <= {r.payload["pattern_id"] for r in patterns}, "feedback of nothing"
    for record in patterns:
        pattern = pattern_from_record(record)
        log = sorted(by_pattern.get(pattern.pattern_id, []), key=lambda f: f.payload["sequence"])
        assert [recorded.payload["sequence"] for recorded in log] == list(range(1, len(log) + 1))
        said = Counter(recorded.payload.get("helpful") for recorded in log)
        counts = pattern.feedback
        assert counts.feedback_count == len(log)
        assert (counts.helpful_count, counts.unhelpful_count) == (said[True], said[False])
        assert counts.last_feedback_time == max((f.payload["create_time"] for f in log), default=0)
        confidence = log[0].payload["confidence_before"] if log else pattern.content.confidence
        for payload in (recorded.payload for recorded in log):
            if pattern.revision == 1:
                assert payload["confidence_before"] == confidence
            given = payload.get("confidence_adjustment")
            step = adjustment_of(payload.get("helpful"), given)
            confidence = moved(payload["confidence_before"], step)
            assert payload["confidence_after"] == confidence
        if pattern.revision == 1:
            assert pattern.content.confidence == confidence
        assert record.payload.get("pending_feedback", {}).keys() <= {
            recorded.id for recorded in log
        }


def _check_error_solutions(solutions: list[Record]) -> None:
    """Each says which error it is; of the same solution nobody named there is one."""
    unnamed = []
    for record in solutions:
        solution = error_solution_from_record(record)
        assert record.id == error_solution_point(record.namespace, solution.error_solution_id)
        assert solution.signature == solution.content.error.signature
        assert record.payload["worked"] is solution.content.worked
        if solution.error_solution_id.startswith("s-"):
            unnamed.append(same_solution_id(solution.content))
            assert solution.error_solution_id == unnamed[-1]
    assert len(set(unnamed)) == len(unnamed), "one solution is there twice"


def _check_marks(records: list[Record], id_key: str) -> None:
    """Marks follow what supersedes what: by the newest, for memories from when the first begins."""
    newest: dict[str, str] = {}
    begins: dict[str, int] = {}
    for record in sorted(records, key=lambda record: record.payload["sort_key"]):
        if (superseded := record.payload.get("supersedes")) and not held_back(record.payload):
            newest[superseded] = record.payload[id_key]
            own: Any = record.payload
            begin: int = own.get("valid_from", own["create_time"])
            begins[superseded] = min(begin, begins.get(superseded, begin))
    for record in records:
        payload = record.payload
        successor = newest.get(payload[id_key], "")
        assert payload.get("superseded_by", "") == successor, f"{payload[id_key]}: {successor!r}"
        assert payload.get("superseded", False) == bool(successor)
        if id_key == "memory_id":
            assert payload.get("superseded_time") == begins.get(payload[id_key])


def _check_groups(patterns: list[Record]) -> None:
    """A parent that is a group's head names its members."""
    heads = {r.payload["pattern_id"]: r.payload for r in patterns if "group_level" in r.payload}
    for record in patterns:
        if parent := heads.get(record.payload.get("parent_pattern_id", "")):
            assert record.payload["pattern_id"] in parent["source_pattern_ids"]


async def _check_episodes(store: VectorStore, ns: str) -> None:
    episodes = {r.payload["episode_id"]: r.payload for r in await rows(store, EPISODES, ns)}
    numbers: dict[str, list[int]] = {}
    for event in await rows(store, EVENTS, ns):
        numbers.setdefault(event.payload["episode_id"], []).append(event.payload["sequence"])
    assert set(numbers) <= set(episodes), "events of an episode that is not there"
    for episode_id, given in numbers.items():
        assert sorted(given) == list(range(1, len(given) + 1)), f"{episode_id}: {sorted(given)}"
    _check_reuse(episodes, await rows(store, TOMBSTONES, ns))
    for episode_id, payload in episodes.items():
        if payload["status"] in ("succeeded", "failed"):
            assert payload["event_count"] == len(numbers.get(episode_id, []))


def _check_reuse(episodes: dict[str, dict[str, Any]], stones: list[Record]) -> None:
    """Each episode counts the ends that name it; of those deleted since there is no log."""
    named: Counter[str] = Counter()
    for payload in episodes.values():
        assert payload.get("reuse") != "requested", f"a use was not counted: {payload}"
        named.update(payload.get("used_episode_ids", ()))
    exact = not any(stone.payload["resource_kind"] == "episode" for stone in stones)
    for episode_id, payload in episodes.items():
        count = payload.get("reused_count", 0)
        assert count == named[episode_id] if exact else count >= named[episode_id]
        assert count == payload.get("reuse_revision", 0)


async def _check_learning(store: VectorStore, ns: str) -> None:
    """Visits equal the steps, judgements moved what they are about, no former value is lost."""
    trajectories = await rows(store, TRAJECTORIES, ns)
    assert all(one.payload["applied"] for one in trajectories), "steps were never taken in"
    steps = [step for one in trajectories for step in one.payload["steps"]]
    told = Counter(
        (step["state"]["task_type"], step["state"].get("complexity"), step["action"])
        for step in steps
    )
    values = [one.payload for one in await rows(store, ACTION_VALUES, ns)]
    assert told == {
        (one["task_type"], one.get("complexity"), one["action"]): one["visit_count"]
        for one in values
    }
    points = {one.id for one in trajectories}
    assert all(set(one["pending_steps"]) <= points for one in values)
    for event in await rows(store, LEARNING_EVENTS, ns):
        assert event.payload["applied"], f"a judgement moved nothing: {event.payload}"
        await _check_moved(store, ns, event.payload)
    _check_preferences(
        await rows(store, PREFERENCES, ns), await rows(store, PREFERENCE_REVISIONS, ns)
    )
    await _check_sessions(store, ns)


def _check_preferences(preferences: list[Record], former: list[Record]) -> None:
    """The history is every value that was put before, and of nothing else."""
    theirs: dict[tuple[str, int], dict[int, Any]] = {}
    for row in former:
        place = (row.payload["key"], row.payload["sort_key"])
        theirs.setdefault(place, {})[row.payload["revision"]] = row.payload["value"]
    for one in preferences:
        payload = one.payload
        values = theirs.pop((payload["key"], payload["sort_key"]), {})
        present = payload["revision"]
        # What a process left that died before it put the next value is the present one.
        assert values.pop(present, payload["value"]) == payload["value"]
        assert set(values) == set(range(max(1, present - HISTORY), present)), "a value was lost"
    assert not theirs, f"former values of what is gone: {theirs}"


async def _check_sessions(store: VectorStore, ns: str) -> None:
    """Messages are there once and without gaps; parts are of a session, or of one to be swept."""
    there = {one.payload["sort_key"]: one.payload for one in await rows(store, SESSIONS, ns)}
    lapsed = {one.payload["sort_key"] for one in await store.expired(SESSIONS, limit=1000)}
    former = {one for payload in there.values() for one in payload["former_generations"]}
    numbers: dict[int, list[int]] = {}
    said: dict[int, list[str]] = {}
    for part in await rows(store, SESSION_PARTS, ns):
        generation = part.payload["generation"]
        assert generation in lapsed | former | there.keys(), "a part of what is gone"
        if part.payload["part"] != "message" or generation not in there:
            continue
        if part.payload["sequence"] > there[generation]["gone_sequence"]:
            numbers.setdefault(generation, []).append(part.payload["sequence"])
            said.setdefault(generation, []).append(part.payload["content"])
    for generation, payload in there.items():
        last, gone = payload["last_sequence"], payload["gone_sequence"]
        older = {one for one in numbers.get(generation, []) if one < last}
        assert older == set(range(gone + 1, last)), "a message was lost"
        assert payload["latest"].get("sequence", gone) == last
        texts = [one for one in said.get(generation, []) if one != payload["latest"].get("content")]
        assert len(set(texts)) == len(texts), "a message is there twice"


async def _check_moved(store: VectorStore, ns: str, event: Any) -> None:
    target = event.get("target", {"kind": ""})
    if event["event_type"] != "user_feedback" or not event["reward"]:
        return
    if target["kind"] == "selection":
        learned = [one.payload["trajectory_id"] for one in await rows(store, TRAJECTORIES, ns)]
        assert learned.count(event["learning_event_id"]) == 1
    if target["kind"] == "decision":
        decisions = {r.payload["decision_id"]: r.payload for r in await rows(store, DECISIONS, ns)}
        decision = decisions[target["id"]]
        assert "feedback_reward" in decision or "reward" in decision.get("result", {})


async def check_contents(world: World, ns: str, contents: tuple[str, ...]) -> None:
    """Saved once more, each content is one pattern: no claim blocks it, none is missing."""
    for task in contents:
        for language in ("python", ""):
            given = draft(task, language=language)
            before = await _with_content(world, ns, given.content)
            assert len(before) <= 1, f"{task} is there {len(before)} times"
            saved = await world.services.patterns.writer.save(ns, given)
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
