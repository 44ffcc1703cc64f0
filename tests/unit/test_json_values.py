"""Numbers in free-form JSON: kept, hashed and printed."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.event_data import read_data
from lot_grpc.domain.json_values import (
    as_doubles,
    json_text,
    number_text,
    whole,
    with_whole_numbers,
)
from lot_grpc.domain.pattern import PatternContent, dedupe_hash
from lot_grpc.domain.sameness import same_content
from lot_grpc.pb.lot.v1 import (
    decision_pb2,
    episode_service_pb2,
    error_solution_pb2,
    learning_event_pb2,
    learning_pb2,
    memory_service_pb2,
    pattern_service_pb2,
    preference_pb2,
)
from lot_grpc.server.codec import episodes, error_solutions, learning, memories, patterns, sessions
from lot_grpc.server.codec.values import struct_from_json, struct_to_json
from lot_grpc.services.records.groups import made_hashes
from tests.unit import made

finite = st.floats(allow_nan=False, allow_infinity=False)


def bits(number: float) -> bytes:
    return struct.pack("<d", number)


@given(finite)
def test_a_number_keeps_each_bit_and_its_sign(number):
    assert bits(whole(number)) == bits(number)


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_whole_double_of_64_bits_is_an_integer(number):
    double = float(number)
    kept = whole(double)
    assert kept == double
    assert isinstance(kept, int) == (-(2.0**63) <= double < 2.0**63)


@given(made.json_objects)
def test_what_is_hashed_does_not_tell_how_a_number_was_stored(value):
    doubles = as_doubles(value)
    assert repr(as_doubles(with_whole_numbers(doubles))) == repr(doubles)


@given(made.json_objects)
def test_whole_numbers_are_read_alike_from_a_struct_and_from_its_bytes(value):
    given_struct = struct_from_json(value)
    read = read_data(given_struct.SerializeToString(deterministic=True), set(value))
    assert in_order(read) == in_order(struct_to_json(given_struct))


def in_order(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (8080.0, "8080"),
        (4, "4"),
        (1.5e18, "1500000000000000000"),
        (0.1, "0.1"),
        (-2.5, "-2.5"),
        (123456.75, "123456.75"),
        (-0.0, "-0.0"),
        (2.0**63, "9.223372036854776e+18"),
        (5e-324, "5e-324"),
    ],
)
def test_a_number_is_printed_as_people_write_it(number, text):
    assert number_text(number) == text
    assert json_text({"n": [number]}) == f'{{"n": [{text}]}}'
    assert bits(float(json.loads(text))) == bits(number)


def test_a_truth_value_is_no_number():
    assert json_text({"yes": True, "no": [False, None]}) == '{"no": [false, null], "yes": true}'
    assert as_doubles([True, False]) == [True, False]
    assert repr(as_doubles([True, 1])) == "[True, 1.0]"


def test_content_that_an_earlier_version_stored_is_the_same():
    stored = PatternContent("t", metadata={"port": 8080.0, "on": True, "id": 1.5e18})
    assert same_content(stored, PatternContent("t", metadata=with_whole_numbers(stored.metadata)))
    misread = {**stored.metadata, "id": math.nextafter(1.5e18, math.inf)}  # by an embedded store
    assert same_content(stored, PatternContent("t", metadata=with_whole_numbers(misread)))
    assert not same_content(stored, PatternContent("t", metadata={**stored.metadata, "on": 1}))
    assert not same_content(stored, PatternContent("t", metadata={**stored.metadata, "port": 81}))


# --- hashes: what was stored with them is met by the same request -------------------------------

GIVEN: dict[str, Any] = {
    "port": 8080,
    "share": 0.1,
    "id": 1.5e18,
    "deep": {"list": [1, 2.5, True, None]},
    "zero": 0,
    "minus": -0.0,
    "huge": 1e300,
}
TIME = "2030-01-01T00:00:00Z"


def draft(read: Any, kind: Any, **fields: Any) -> Any:
    return read(ParseDict(fields, kind()))


def pattern_draft() -> Any:
    return draft(
        patterns.draft_from_pb,
        pattern_service_pb2.SavePatternRequest,
        pattern={
            "task": "t",
            "actions": [{"tool": "x", "args": GIVEN}],
            "metadata": GIVEN,
            "expire_time": TIME,
            "confidence": 1,
        },
    )


def pattern_hashes() -> list[str]:
    pattern = pattern_draft()
    parts = made_hashes(pattern.content)
    return [pattern.hash(), dedupe_hash(pattern.content), parts["actions"], parts["metadata"]]


def memory_hash() -> list[str]:
    memory = {
        "content": "c",
        "metadata": GIVEN,
        "expire_time": TIME,
        "project": {"last_accessed_time": TIME},
    }
    kind = memory_service_pb2.CreateMemoryRequest
    return [draft(memories.draft_from_pb, kind, memory=memory).hash()]


def episode_hashes() -> list[str]:
    start = {"task": "t", "metadata": GIVEN, "start_time": TIME}
    end = {"status": 2, "metrics": {"a": 8080, "b": 0.5}, "end_time": TIME}
    return [
        draft(
            episodes.start_draft_from_pb, episode_service_pb2.StartEpisodeRequest, episode=start
        ).hash(),
        draft(
            episodes.record_draft_from_pb,
            episode_service_pb2.RecordEpisodeRequest,
            episode=start | end,
            events=[{"event_type": "e", "data": GIVEN}],
        ).hash(),
    ]


def learning_hashes() -> list[str]:
    state = {"task_type": "t", "features": GIVEN}
    return [
        draft(
            learning.selection_draft_from_pb,
            learning_pb2.SelectActionRequest,
            state=state,
            actions=[{"name": "a", "parameters": GIVEN}],
            seed=7,
        ).hash(),
        draft(
            learning.steps_from_pb,
            learning_pb2.RecordStepsRequest,
            steps=[{"state": state, "action": "a", "reward": 1}],
        ).hash(),
        draft(
            learning.decision_draft_from_pb,
            decision_pb2.RecordDecisionRequest,
            decision={"context": "c", "chosen_option": "o", "metadata": GIVEN},
        ).hash(),
        draft(
            learning.learning_event_draft_from_pb,
            learning_event_pb2.RecordLearningEventRequest,
            learning_event={"event_type": "x", "metadata": GIVEN},
        ).hash(),
    ]


def other_hashes() -> list[str]:
    solution = {"error_message": "m", "metadata": GIVEN, "expire_time": TIME}
    kind = error_solution_pb2.SaveErrorSolutionRequest
    return [
        draft(error_solutions.draft_from_pb, kind, error_solution=solution).hash(),
        draft(
            sessions.preference_from_pb, preference_pb2.PutPreferenceRequest, key="k", value=GIVEN
        ).hash(),
    ]


@pytest.mark.parametrize(
    ("hashes", "stored"),
    [
        (
            pattern_hashes,
            "c4634273d1c1978b8f4eb5b8cb734a98 c4cb778a46b066e1ea1d69396361619d "
            "1cb2ac999bb1d989c185642ef4c1a19b 7d145ac747c91c54d8fb1c5de08f9be8",
        ),
        (memory_hash, "e037884d756f4d156ec9300e5e2314ce"),
        (episode_hashes, "34bef47acab28dd27a29f508ea983a4b 1b848b0a9ea0f805d1d141ce8889292f"),
        (
            learning_hashes,
            "74cf79e009d876e98d737c1bb7a9a149 e3c03c752e26d4d551060708f099873c "
            "492f736470b1811b0c32a765228c2a78 86b93abf4d77ad8934e00477f87a63a3",
        ),
        (other_hashes, "c294ae603cfa66cd9aa1d0fc26256918 abdbe8dfa8811c90c0f6a320bbce8e84"),
    ],
)
def test_the_hashes_of_earlier_versions_stay_good(hashes, stored):
    assert hashes() == stored.split()
