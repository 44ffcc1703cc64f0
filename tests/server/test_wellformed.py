"""The check beyond the proto's rules: complete, with paths, and its quick looks never miss."""

from __future__ import annotations

import math
from typing import Any

import pytest
from google.protobuf import struct_pb2
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.pb.lot.v1 import episode_service_pb2, pattern_service_pb2
from lot_grpc.server.structural_checks import MAX_FOUND, WellFormed

SAVE = pattern_service_pb2.SavePatternRequest
EVENTS = episode_service_pb2.RecordEventsRequest
OF_SAVE = WellFormed(SAVE)
OF_EVENTS = WellFormed(EVENTS)


def rules(checker: WellFormed, message: Any) -> dict[str, str]:
    raw = message.SerializeToString()
    found = checker.check(type(message).FromString(raw), raw)
    assert len({v.field for v in found}) == len(found), "a field is named once"
    return {violation.field: violation.rule for violation in found}


def nested(depth: int, lists: bool = False) -> struct_pb2.Struct:
    """A Struct with ``depth`` Structs and lists inside one another, itself included."""
    top = struct_pb2.Struct()
    value = top.fields["d"]
    for _ in range(depth - 1):
        value = value.list_value.values.add() if lists else value.struct_value.fields["d"]
    value.bool_value = True
    return top


def test_a_good_request_has_nothing_wrong():
    request = SAVE(pattern_id="p-1", initial_success_rate=0.5)
    request.pattern.task = "héllo"
    request.pattern.metadata.update({"a": [1, {"b": None}], "c": "", "d": 0.5, "e": False})
    request.pattern.ttl.seconds = 60
    assert rules(OF_SAVE, request) == {}


def test_nul_is_found_in_every_kind_of_text():
    request = SAVE(namespace="\0")
    pattern = request.pattern
    pattern.task = "a\0b"
    pattern.tags.extend(["ok", "\0"])
    pattern.labels["key"] = "v\0"
    pattern.labels["k\0"] = "v"
    pattern.actions.add(tool="t")
    pattern.actions.add(note="\0").args.update({"x": "\0"})
    pattern.metadata.update({"a": [1, "x\0"], "b": {"c\0": 1}, "odd key": "\0"})
    assert set(rules(OF_SAVE, request)) == {
        "namespace",
        "pattern.task",
        "pattern.tags[1]",
        'pattern.labels["key"]',
        'pattern.labels["k\\u0000"]',
        "pattern.actions[1].note",
        "pattern.actions[1].args.x",
        "pattern.metadata.a[1]",
        'pattern.metadata.b["c\\u0000"]',
        'pattern.metadata["odd key"]',
    }
    assert set(rules(OF_SAVE, request).values()) == {"text.nul"}


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none_are_found_everywhere(number):
    request = episode_service_pb2.EndEpisodeRequest(episode_id="e", reward=number)
    request.metrics["speed"] = number
    assert rules(WellFormed(type(request)), request) == {
        "reward": "number.finite",
        'metrics["speed"]': "number.finite",
    }
    events = EVENTS()
    events.events.add(event_type="t")
    events.events.add(event_type="t").data.update({"a": {"b": [1, number]}, "c": number})
    assert rules(OF_EVENTS, events) == {
        "events[1].data.a.b[1]": "number.finite",
        "events[1].data.c": "number.finite",
    }


def test_a_nan_without_a_zero_byte_is_found_too():
    whole = SAVE(initial_success_rate=0.3).SerializeToString()
    raw = whole[:1] + b"\x01\x02\x03\x04\x05\x06\xf8\x7f"
    assert len(raw) == len(whole)
    assert b"\0" not in raw
    (violation,) = OF_SAVE.check(SAVE.FromString(raw), raw)
    assert (violation.field, violation.rule) == ("initial_success_rate", "number.finite")


@pytest.mark.parametrize("lists", [False, True])
def test_sixteen_levels_are_allowed_and_seventeen_are_not(lists):
    events = EVENTS()
    events.events.add(event_type="t").data.CopyFrom(nested(16, lists))
    assert rules(OF_EVENTS, events) == {}
    events.events.add(event_type="t").data.CopyFrom(nested(17, lists))
    ((path, rule),) = rules(OF_EVENTS, events).items()
    assert rule == "struct.depth"
    assert path == "events[1].data.d" + ("[0]" * 15 if lists else ".d" * 15)


def test_times_that_do_not_exist_are_found():
    events = EVENTS()
    events.events.add(event_type="t").event_time.seconds = 253402300799
    events.events.add(event_type="t").event_time.seconds = 253402300800
    events.events.add(event_type="t").event_time.nanos = -1
    assert rules(OF_EVENTS, events) == {
        "events[1].event_time": "timestamp.range",
        "events[2].event_time": "timestamp.range",
    }
    request = SAVE()
    request.pattern.ttl.seconds = 1
    request.pattern.ttl.nanos = -1
    assert rules(OF_SAVE, request) == {"pattern.ttl": "duration.range"}


def test_a_hostile_request_does_not_get_a_list_without_end():
    request = SAVE()
    request.pattern.source_episode_ids.extend(["\0"] * 5000)
    for _ in range(5000):
        request.pattern.actions.add(note="\0")
    raw = request.SerializeToString()
    assert len(OF_SAVE.check(request, raw)) == MAX_FOUND


def test_a_type_that_contains_itself_has_a_plan():
    response = pattern_service_pb2.DistillPatternsResponse()
    response.groups.add().groups.add().groups.add().member_pattern_ids.append("\0")
    assert rules(WellFormed(type(response)), response) == {
        "groups[0].groups[0].groups[0].member_pattern_ids[0]": "text.nul"
    }


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.sampled_from([0.0, math.nan, math.inf, 1e308, 5e-324])
    | st.text(st.sampled_from("ab\0é*2"), max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.sampled_from("xy\0"), max_size=2), inner, max_size=3)
    ),
    max_leaves=12,
)


def wrong(value: Any) -> bool:
    """The same rules, written plainly."""
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, list):
        return any(map(wrong, value))
    if isinstance(value, dict):
        return any("\0" in key or wrong(item) for key, item in value.items())
    return False


@given(st.dictionaries(st.text(st.sampled_from("xy\0"), max_size=2), VALUES, max_size=4))
def test_whatever_a_struct_holds_it_is_refused_just_when_something_in_it_is_wrong(data):
    events = EVENTS()
    events.events.add(event_type="t").data.update(data)
    raw = events.SerializeToString()
    assert bool(OF_EVENTS.check(EVENTS.FromString(raw), raw)) == wrong(data)
