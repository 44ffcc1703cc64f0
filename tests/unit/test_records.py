"""What goes into the store comes out of it, and what filters name is indexed."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given

from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.episode import EpisodeStatus
from lot_grpc.domain.error_solution import ErrorSolutionFilter
from lot_grpc.domain.ids import ResourceRef
from lot_grpc.domain.memory import MemoryKind
from lot_grpc.domain.origin import OriginKind, ReviewState
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import CodeKind, PatternKind, PatternType, search_text
from lot_grpc.domain.query import EpisodeFilter, MemoryFilter, PatternFilter
from lot_grpc.domain.recorded_outcome import RecordedOutcome
from lot_grpc.kernel.idempotency import IdempotencyKey, _payload
from lot_grpc.ports import (
    AllOf,
    AnyOf,
    Condition,
    Equals,
    IdIn,
    Index,
    Missing,
    Not,
    OneOf,
    Range,
    Record,
)
from lot_grpc.services.patterns.spec import PATTERN
from lot_grpc.services.records import collections as names
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.records.episodes import (
    EVENT,
    episode_conditions,
    episode_from_record,
    episode_record,
    event_content,
    event_from_record,
    event_hash,
    event_record,
)
from lot_grpc.services.records.error_solutions import (
    error_solution_conditions,
    error_solution_from_record,
    error_solution_record,
)
from lot_grpc.services.records.feedback import (
    FeedbackEntry,
    FeedbackStep,
    feedback_from_record,
    feedback_record,
)
from lot_grpc.services.records.memories import (
    memory_conditions,
    memory_from_record,
    memory_record,
)
from lot_grpc.services.records.outcomes import outcome_from_record, outcome_record
from lot_grpc.services.records.patterns import (
    pattern_conditions,
    pattern_from_record,
    pattern_record,
)
from lot_grpc.services.records.retrievals import retrieval_from_record, retrieval_record
from lot_grpc.services.resources import REGISTRY
from tests.unit import made

VECTORS = {"text": [1.0, 0.0]}
SPECS = {spec.name: spec for spec in REGISTRY.collection_specs(2)}


def stored(record: Record) -> Record:
    """As a store gives it back: through JSON, without anything that JSON does not keep."""
    text = json.dumps(record.payload, allow_nan=False)
    return Record(record.id, record.namespace, json.loads(text))


@given(made.patterns)
def test_a_pattern_comes_back(pattern):
    assert pattern_from_record(stored(pattern_record(pattern, 7, VECTORS))) == pattern


@given(made.patterns)
def test_the_text_of_a_pattern_is_read_from_its_record(pattern):
    record = pattern_record(pattern, 1, {})
    text = PATTERN.collection.search_fields.text_of(record)
    assert text == search_text(pattern_from_record(record).content)


@given(made.facts)
def test_an_outcome_comes_back(recorded):
    assert outcome_from_record(stored(outcome_record(recorded, 7))) == recorded


@given(made.facts, made.ids)
def test_outcomes_of_two_kinds_with_one_id_are_two(recorded, one_id):
    first = replace(recorded, resource=ResourceRef("memory", one_id))
    second = replace(recorded, resource=ResourceRef("episode", one_id))
    assert first.point != second.point
    assert first.resource_point != second.resource_point


@pytest.mark.parametrize("spec", REGISTRY.counted.values(), ids=lambda spec: spec.kind)
def test_a_reference_has_the_point_of_its_resource(spec):
    assert ResourceRef(spec.kind, "x").point("ns") == spec.point_of("ns", "x")


@given(made.feedback_facts)
def test_a_feedback_comes_back_before_and_after_it_counted(recorded):
    record = feedback_record(recorded, 7)
    assert feedback_from_record(stored(record)) == FeedbackEntry(recorded, None)
    step = FeedbackStep(3, 0.5, 0.6)
    record.payload.update({"applied": True, **step.payload()})
    assert feedback_from_record(stored(record)) == FeedbackEntry(recorded, step)


@given(made.retrievals)
def test_a_retrieval_comes_back(retrieval):
    found = retrieval_from_record(stored(retrieval_record(retrieval)))
    assert found == retrieval


@given(made.episodes())
def test_an_episode_comes_back_running_or_ended(episode):
    assert episode_from_record(stored(episode_record(episode, 7, VECTORS))) == episode


@given(made.ids, made.ids, made.events)
def test_an_event_comes_back(namespace, episode_id, event):
    found = stored(event_record(namespace, episode_id, event, epoch=3))
    assert event_from_record(found) == event
    assert found.payload[EVENT] == event_content(event)


@given(made.error_solutions)
def test_an_error_solution_comes_back(solution):
    solution = replace(solution, signature=solution.content.error.signature)
    record = error_solution_record(solution, 7, VECTORS)
    assert error_solution_from_record(stored(record)) == solution


@given(made.memories)
def test_a_memory_comes_back_with_its_details(memory):
    assert memory_from_record(stored(memory_record(memory, 7, VECTORS))) == memory


def test_an_event_without_a_time_of_its_own_is_dated_by_its_recording():
    from lot_grpc.domain.episode import EpisodeEvent

    event = EpisodeEvent(1, "tool_call", record_time=99)
    found = event_from_record(stored(event_record("n", "e", event, epoch=0)))
    assert found.event_time == 99


def test_the_time_of_recording_does_not_make_an_event_another():
    from lot_grpc.domain.episode import EpisodeEvent

    event = EpisodeEvent(1, "tool_call", "coder", b"x", 5)
    assert event_hash(event) == event_hash(EpisodeEvent(9, "tool_call", "coder", b"x", 5, 77))
    for other in (
        EpisodeEvent(1, "tool_cal", "lcoder", b"x", 5),
        EpisodeEvent(1, "tool_call", "coder", b"y", 5),
        EpisodeEvent(1, "tool_call", "coder", b"x", 6),
        EpisodeEvent(1, "tool_call", "coder", b"x"),
        EpisodeEvent(1, "tool_call", "", b"x", 5),
    ):
        assert event_hash(other) != event_hash(event)


# --- filters ----------------------------------------------------------------------------------

FULL_PATTERN_FILTER = PatternFilter(
    languages=("py",),
    kinds=(PatternKind.CODE,),
    code_kinds=(CodeKind.CLASS,),
    pattern_types=(PatternType.FAILURE,),
    task_types=("t",),
    categories=("c",),
    complexities=(Complexity.HIGH,),
    tools=("tool",),
    approaches=("a",),
    tags_any=("x", "y"),
    tags_all=("z",),
    labels={"team": "core"},
    min_success_rate=0.5,
    min_reliability=0.5,
    min_usage_count=3,
    created_after=1,
    created_before=9,
    pinned=False,
    superseded=False,
    origins=(OriginKind.AGENT, OriginKind.MODEL),
    reviews=(ReviewState.PENDING,),
)
FULL_EPISODE_FILTER = EpisodeFilter(
    statuses=(EpisodeStatus.FAILED,),
    categories=("c",),
    task_types=("t",),
    task_ids=("id",),
    complexities=(Complexity.LOW,),
    approaches=("a",),
    agent_roles=("r",),
    tools_any=("tool",),
    tags_any=("x",),
    tags_all=("y", "z"),
    labels={"team": "core"},
    started_after=1,
    started_before=9,
    error_types=("TimeoutError",),
    ended_after=1,
    ended_before=9,
)
FULL_MEMORY_FILTER = MemoryFilter(
    kinds=(MemoryKind.PROJECT,),
    languages=("js",),
    tags_any=("x",),
    tags_all=("y",),
    labels={"team": "core"},
    source_uris=("https://x",),
    project_statuses=("active",),
    tech_stack=("go",),
    min_importance=0.2,
    max_importance=0.9,
    created_after=1,
    created_before=9,
    pinned=True,
    superseded=True,
    origins=(OriginKind.AGENT, OriginKind.MODEL),
    reviews=(ReviewState.PENDING,),
)
FULL_ERROR_SOLUTION_FILTER = ErrorSolutionFilter(
    error_types=("KeyError",),
    languages=("py",),
    categories=("io",),
    signatures=("KeyError",),
    worked=False,
    tags_any=("x",),
    labels={"team": "core"},
    min_success_rate=0.5,
    min_usage_count=3,
    created_after=1,
    created_before=9,
    pinned=False,
    origins=(OriginKind.AGENT, OriginKind.MODEL),
    reviews=(ReviewState.PENDING,),
)
FILTERS = [
    (names.PATTERNS, FULL_PATTERN_FILTER, pattern_conditions),
    (names.EPISODES, FULL_EPISODE_FILTER, episode_conditions),
    (names.MEMORIES, FULL_MEMORY_FILTER, memory_conditions),
    (names.ERROR_SOLUTIONS, FULL_ERROR_SOLUTION_FILTER, error_solution_conditions),
]
RESOURCE_KINDS = [name for name, _, _ in FILTERS]


def leaves(conditions: Any) -> list[tuple[str, Any]]:
    """(key, one value) of every condition."""
    found: list[tuple[str, Any]] = []
    for condition in conditions:
        match condition:
            case Equals(key, value):
                found.append((key, value))
            case AnyOf(key, values):
                found += [(key, value) for value in values]
            case Range(key):
                bounds = (condition.gt, condition.gte, condition.lt, condition.lte)
                found += [(key, bound) for bound in bounds if bound is not None]
            case Missing(key):
                found.append((key, None))
            case Not(inner):
                found += leaves([inner])
            case AllOf(inner) | OneOf(inner):
                found += leaves(inner)
            case IdIn():
                pass
    return found


@pytest.mark.parametrize(("collection", "asked", "conditions"), FILTERS, ids=RESOURCE_KINDS)
def test_every_field_of_a_filter_narrows(collection, asked, conditions):
    """A field that the filter has and no condition names would be ignored without a word."""
    default = type(asked)()
    assert conditions(default) == []
    for field in fields(asked):
        given = getattr(asked, field.name)
        assert given != getattr(default, field.name), f"{field.name} is not filled in this test"
        alone = type(asked)(**{field.name: given})
        assert conditions(alone), f"{field.name} is ignored"


@pytest.mark.parametrize(("collection", "asked", "conditions"), FILTERS, ids=RESOURCE_KINDS)
def test_every_key_that_a_filter_names_is_indexed_with_its_type(collection, asked, conditions):
    types = {
        Index.KEYWORD: (str,),
        Index.INTEGER: (int,),
        Index.FACETED_INTEGER: (int,),
        Index.FLOAT: (float, int),
        Index.BOOL: (bool,),
    }
    for key, value in leaves(conditions(asked)):
        index = SPECS[collection].indexes.get(key)
        assert index is not None, f"{collection}.{key} has no index"
        if value is None:  # that the key is missing
            continue
        assert isinstance(value, types[index]), f"{collection}.{key} is {index}, not {value!r}"
        assert (index is Index.BOOL) == isinstance(value, bool)


@pytest.mark.parametrize("collection", RESOURCE_KINDS)
def test_lists_are_ordered_by_an_indexed_integer(collection):
    assert SPECS[collection].indexes[SORT_KEY] is Index.INTEGER


@pytest.mark.parametrize(
    ("collection", "key", "index"),
    [
        (names.PATTERNS, "success_permille", Index.FACETED_INTEGER),
        (names.PATTERNS, "usage_count", Index.FACETED_INTEGER),
        (names.PATTERNS, "language", Index.KEYWORD),
        (names.PATTERNS, "category", Index.KEYWORD),
        (names.PATTERNS, "kind", Index.KEYWORD),
        (names.OUTCOMES, "applied", Index.BOOL),
        (names.FEEDBACK, "applied", Index.BOOL),
        (names.FEEDBACK, "pattern_id", Index.KEYWORD),
        (names.FEEDBACK, SORT_KEY, Index.INTEGER),
        (names.OUTCOMES, "resource", Index.KEYWORD),
        (names.OUTCOMES, "resource_kind", Index.KEYWORD),
        (names.OUTCOMES, "retrieval_id", Index.KEYWORD),
        (names.CONTEXT_STATS, "resource", Index.KEYWORD),
        (names.CONTEXT_STATS, "resource_kind", Index.KEYWORD),
        (names.REQUESTS, "kind", Index.KEYWORD),
        (names.REQUESTS, "done", Index.BOOL),
        (names.REQUESTS, "pattern_id", Index.KEYWORD),
        (names.TOMBSTONES, "done", Index.BOOL),
    ],
)
def test_what_sums_and_sweeps_ask_for_is_indexed(collection, key, index):
    assert SPECS[collection].indexes[key] is index


@given(made.patterns)
def test_a_pattern_meets_a_filter_made_of_its_own_values(pattern):
    from lot_grpc.storage.conditions import matches

    content = pattern.content
    asked = PatternFilter(
        kinds=(content.kind,),
        pattern_types=(content.pattern_type,),
        categories=(content.category,) if content.category else (),
        tags_all=content.tags,
        labels=content.labels,
        min_success_rate=pattern.outcomes.success_rate,
        min_usage_count=pattern.outcomes.usage_count,
        created_after=pattern.create_time - 1,
        created_before=pattern.create_time + 1,
        pinned=content.pinned,
    )
    record = stored(pattern_record(pattern, 7, VECTORS))
    assert matches(pattern_conditions(asked), record.id, record.payload)
    other: list[Condition] = pattern_conditions(PatternFilter(pinned=not content.pinned))
    assert not matches(other, record.id, record.payload)


@given(made.episodes())
def test_an_ended_episode_is_filtered_by_the_approach_really_taken(episode):
    from lot_grpc.storage.conditions import matches

    record = stored(episode_record(episode, 7, VECTORS))
    if episode.approach:
        asked = episode_conditions(EpisodeFilter(approaches=(episode.approach,)))
        assert matches(asked, record.id, record.payload)


def test_an_pending_fact_and_an_open_request_are_what_the_sweep_looks_for():
    recorded = RecordedOutcome("n", "o", ResourceRef("pattern", "p"), Outcome.SUCCESS, 5)
    assert outcome_record(recorded, 7).payload["applied"] is False
    row = _payload(IdempotencyKey("n", "SavePattern", "r", "hash", {"pattern_id": "p"}), now=5)
    assert (row["kind"], row["done"], row["create_time"]) == ("request", False, 5)
    assert row["expires"] == 5 + 24 * 3600 * 1_000_000
