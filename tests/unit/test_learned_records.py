"""What is learned from comes back from the store and over the wire, and its filters narrow."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given

from lot_grpc.domain.action_values import ActionValue
from lot_grpc.domain.decision import DecisionFilter
from lot_grpc.domain.learning_event import FeedbackTarget, LearningEventFilter, TargetKind
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.preference import learned_key, task_hash
from lot_grpc.domain.selection import SelectionPolicy
from lot_grpc.pb.lot.v1 import decision_pb2, learning_event_pb2, learning_pb2
from lot_grpc.ports import Index, Missing, Not, Record
from lot_grpc.server.codec import learning as codec
from lot_grpc.server.codec.sessions import preference_to_pb
from lot_grpc.server.codec.values import EnumCodec, _value_to_json
from lot_grpc.services.records import collections as names
from lot_grpc.services.records.actions import (
    action_value_from_record,
    first_value_record,
    selection_from_record,
    selection_record,
    trajectory_from_record,
    trajectory_record,
)
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.records.decisions import (
    decision_conditions,
    decision_from_record,
    decision_record,
    result_payload,
)
from lot_grpc.services.records.learning_events import (
    learning_event_conditions,
    learning_event_from_record,
    learning_event_record,
)
from lot_grpc.services.records.preferences import (
    preference_from_record,
    preference_record,
    revision_record,
)
from lot_grpc.services.resources import REGISTRY
from tests.unit import learned
from tests.unit.filled import set_field
from tests.unit.test_records import leaves, stored

SPECS = {spec.name: spec for spec in REGISTRY.collection_specs(2)}


# --- the store --------------------------------------------------------------------------------


@given(learned.learning_events)
def test_a_learning_event_comes_back(event):
    record = stored(learning_event_record(event, 7, applied=False))
    assert learning_event_from_record(record) == event
    assert record.payload["applied"] is False


@given(learned.decisions, learned.decision_outcomes, learned.rewards)
def test_a_decision_comes_back_with_what_came_of_it(decision, result, reward):
    record = decision_record(decision, 7)
    assert decision_from_record(stored(record)) == decision
    payload = {**record.payload, **result_payload(result), "feedback_reward": reward}
    found = decision_from_record(stored(Record(record.id, record.namespace, payload)))
    assert found == replace(decision, result=result, feedback_reward=reward)
    assert found.reward == (reward if result.reward is None else result.reward)


@given(learned.selections())
def test_a_selection_comes_back_and_lapses(selection):
    record = stored(selection_record(selection))
    assert selection_from_record(record) == selection
    assert record.payload["expires"] == selection.create_time + 30 * 24 * 3600 * 1_000_000


@given(learned.trajectories)
def test_a_trajectory_comes_back(trajectory):
    record = stored(trajectory_record(trajectory))
    assert trajectory_from_record(record) == trajectory
    assert record.payload["applied"] is False


@given(learned.steps)
def test_an_action_value_comes_back(step):
    record = stored(first_value_record("n", step, 0.125, 5, 7))
    state = step.state
    expected = ActionValue(state.task_type, state.complexity, step.action, 0.125, 1, 5)
    assert action_value_from_record(record) == expected
    assert record.payload["value_order"] == 125_000_000_000


@given(learned.preferences)
def test_a_preference_comes_back_and_its_value_is_kept_as_a_former_one(preference):
    record = stored(preference_record(preference, 7))
    assert preference_from_record(record) == preference
    former = revision_record(record)
    assert json.loads(former.payload["value"]) == preference.value
    assert former.payload["revision"] == preference.revision
    again = Record(record.id, record.namespace, {**record.payload, SORT_KEY: 8})
    assert revision_record(again).id != former.id  # deleted and made again


def test_what_feedback_taught_is_found_by_its_task_whatever_its_letter_case():
    assert learned_key("A  b", "x Y") == learned_key("a B", "X  y")
    assert task_hash("A  b") == task_hash("a B") != task_hash("a")
    keys = {learned_key(*given) for given in (("a", ""), ("", "a"), ("a", "b"), ("b", "a"))}
    assert len(keys) == 4


# --- filters ----------------------------------------------------------------------------------

FULL_EVENT_FILTER = LearningEventFilter(
    event_types=("x",),
    outcomes=(Outcome.PARTIAL,),
    min_reward=0.0,
    max_reward=0.0,
    agent_roles=("r",),
    tags_any=("t",),
    labels={"team": "core"},
    target=FeedbackTarget(TargetKind.MEMORY, "m"),
    created_after=1,
    created_before=9,
)
FULL_DECISION_FILTER = DecisionFilter(
    agent_roles=("r",),
    chosen_options=("o",),
    outcomes=(Outcome.PARTIAL,),
    pending=False,
    categories=("c",),
    episode_ids=("e",),
    task_ids=("t",),
    tags_any=("t",),
    labels={"team": "core"},
    created_after=1,
    created_before=9,
)
FILTERS: list[Any] = [
    (names.LEARNING_EVENTS, FULL_EVENT_FILTER, learning_event_conditions),
    (names.DECISIONS, FULL_DECISION_FILTER, decision_conditions),
]
TYPES = {Index.KEYWORD: (str,), Index.INTEGER: (int,), Index.FLOAT: (float, int)}


@pytest.mark.parametrize(("collection", "asked", "conditions"), FILTERS)
def test_every_field_of_a_filter_narrows_by_an_indexed_key(collection, asked, conditions):
    assert conditions(type(asked)()) == []
    for field in fields(asked):
        value = getattr(asked, field.name)
        assert conditions(type(asked)(**{field.name: value})), f"{field.name} is ignored"
    for key, value in leaves(conditions(asked)):
        index = SPECS[collection].indexes.get(key)
        assert index is not None, f"{collection}.{key} has no index"
        assert value is None or isinstance(value, TYPES[index])
    assert SPECS[collection].indexes[SORT_KEY] is Index.INTEGER


def test_what_is_pending_has_no_outcome():
    assert decision_conditions(DecisionFilter(pending=True)) == [Missing("outcome")]
    assert decision_conditions(DecisionFilter(pending=False)) == [Not(Missing("outcome"))]


@pytest.mark.parametrize(
    ("collection", "key", "index"),
    [
        (names.LEARNING_EVENTS, "applied", Index.BOOL),
        (names.TRAJECTORIES, "applied", Index.BOOL),
        (names.ACTION_VALUES, "state", Index.KEYWORD),
        (names.ACTION_VALUES, "value_order", Index.INTEGER),
        (names.ACTION_VALUES, SORT_KEY, Index.INTEGER),
    ],
)
def test_what_sweeps_and_learning_ask_for_is_indexed(collection, key, index):
    assert SPECS[collection].indexes[key] is index


@pytest.mark.parametrize(
    ("message_type", "read", "domain_type"),
    [
        (
            learning_event_pb2.LearningEventFilter,
            codec.learning_event_filter_from_pb,
            LearningEventFilter,
        ),
        (decision_pb2.DecisionFilter, codec.decision_filter_from_pb, DecisionFilter),
    ],
)
def test_each_field_of_a_filter_is_read(message_type, read, domain_type):
    names_of = {field.name for field in message_type.DESCRIPTOR.fields}
    assert names_of == {field.name for field in fields(domain_type)}
    for name in names_of:
        message = message_type()
        set_field(message, name)
        changed = read(message)
        assert [f.name for f in fields(changed) if getattr(changed, f.name)] == [name]


# --- the wire ---------------------------------------------------------------------------------


@given(learned.learning_events)
def test_a_learning_event_survives_the_wire(event):
    sent = codec.learning_event_to_pb(event).SerializeToString()
    message = learning_event_pb2.LearningEvent.FromString(sent)
    request = learning_event_pb2.RecordLearningEventRequest(
        learning_event=message, learning_event_id=event.learning_event_id
    )
    happened = event.content.event_time
    expected = replace(
        event.content, event_time=event.create_time if happened is None else happened
    )
    assert codec.learning_event_draft_from_pb(request).content == expected


@given(learned.decisions)
def test_a_decision_survives_the_wire(decision):
    sent = codec.decision_to_pb(decision).SerializeToString()
    message = decision_pb2.Decision.FromString(sent)
    request = decision_pb2.RecordDecisionRequest(decision=message, decision_id=decision.decision_id)
    decided = decision.content.decision_time
    expected = replace(
        decision.content, decision_time=decision.create_time if decided is None else decided
    )
    assert codec.decision_draft_from_pb(request).content == expected


@given(learned.preferences)
def test_a_preference_is_given_back_with_any_value(preference):
    message = preference_to_pb(preference)
    assert _value_to_json(message.value) == preference.value
    assert (message.key, message.category) == (preference.key, preference.category)
    assert (message.revision, message.etag) == (preference.revision, preference.etag)


def test_each_kind_of_target_is_mapped_both_ways():
    told = learning_event_pb2.FeedbackTarget.DESCRIPTOR.fields
    assert {field.name for field in told} == {f"{kind.value}_id" for kind in TargetKind}
    for kind in TargetKind:
        target = FeedbackTarget(kind, "x")
        assert codec.target_from_pb(codec.target_to_pb(target)) == target
    assert codec.target_from_pb(learning_event_pb2.FeedbackTarget()) is None


def test_what_a_selection_leaves_out_has_the_documented_default():
    message = learning_pb2.SelectActionRequest()
    draft = codec.selection_draft_from_pb(message)
    assert (draft.policy, draft.seed, draft.exploration_rate) == (
        SelectionPolicy.EPSILON_GREEDY, None, 0.2,
    )  # fmt: skip
    message.exploration_rate = 0.0
    message.seed = 0
    draft = codec.selection_draft_from_pb(message)
    assert (draft.seed, draft.exploration_rate) == (0, 0.0)
    policies = EnumCodec(learning_pb2.SelectionPolicy.DESCRIPTOR, SelectionPolicy)
    for policy in SelectionPolicy:
        assert policies.from_pb(policies.to_pb(policy)) is policy
