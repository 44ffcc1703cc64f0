"""Masks, filters, enums and values as they are converted."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import example, given
from hypothesis import strategies as st

from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.episode import EpisodeStatus
from lot_grpc.domain.errors import RequestInvalidError
from lot_grpc.domain.feedback import FeedbackCounts
from lot_grpc.domain.memory import MemoryKind
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import CodeKind, PatternContent, PatternKind, PatternType
from lot_grpc.domain.query import EpisodeFilter, MemoryFilter, PatternFilter, Ranking
from lot_grpc.pb.lot.v1 import episode_pb2, memory_pb2, outcome_pb2, pattern_pb2
from lot_grpc.pb.lot.v1 import episode_service_pb2 as episode_service
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pattern_service
from lot_grpc.server.codec import episodes, memories, outcomes, patterns
from lot_grpc.server.codec.values import (
    EnumCodec,
    duration_to_pb,
    micros_of_time,
    seconds_of_duration,
    struct_from_json,
    struct_to_json,
    time_to_pb,
    ttl_of,
)
from lot_grpc.services.episodes.event_recorder import TakeoverPolicy
from lot_grpc.services.patterns.drafts import Dedupe
from lot_grpc.services.records.episodes import episode_conditions
from lot_grpc.services.records.memories import memory_conditions
from lot_grpc.services.records.patterns import pattern_conditions
from tests.unit import made
from tests.unit.converting import PATTERN_OUTPUT_ONLY, as_pattern
from tests.unit.filled import filled, names, set_field

# --- masks ------------------------------------------------------------------------------------


def edit(message: pattern_pb2.Pattern, *paths: str) -> Any:
    return patterns.edit_from_pb(message, FieldMask(paths=paths))


OLD = PatternContent("old", title="old", tags=("old",), pinned=True, expire_time=99)


def test_a_mask_names_what_is_set_and_what_is_cleared():
    new = edit(pattern_pb2.Pattern(task="new", title="ignored"), "task", "tags").apply(OLD, 0)
    assert new == replace(OLD, task="new", tags=())


def test_without_a_mask_what_is_set_is_edited():
    new = edit(pattern_pb2.Pattern(title="new", pattern_id="p", etag="9")).apply(OLD, 0)
    assert new == replace(OLD, title="new")


def test_a_star_replaces_all():
    new = edit(pattern_pb2.Pattern(task="new"), "*").apply(OLD, 0)
    assert new == PatternContent("new")


@pytest.mark.parametrize(
    ("paths", "unchanged_fields"),
    [([], ("confidence",)), (["*"], ("confidence",)), (["*", "confidence"], ()), (["task"], ())],
)
def test_a_confidence_that_feedback_moved_is_set_only_where_the_mask_names_it(
    paths, unchanged_fields
):
    message = pattern_pb2.Pattern(task="new", confidence=0.9)
    assert edit(message, *paths).unchanged_fields(as_pattern(OLD)) == unchanged_fields
    assert (
        edit(message, *paths).unchanged_fields(replace(as_pattern(OLD), feedback=FeedbackCounts()))
        == ()
    )
    assert edit(message, *paths).unchanged_fields(as_pattern(replace(OLD, confidence=0.9))) == ()


@pytest.mark.parametrize("path", ["expiration", "expire_time", "ttl"])
def test_naming_an_expiry_that_is_not_set_removes_it(path):
    assert edit(pattern_pb2.Pattern(), path).apply(OLD, 0).expire_time is None


def test_a_ttl_counts_from_the_edit():
    message = pattern_pb2.Pattern(ttl=Duration(seconds=2))
    assert edit(message).apply(OLD, 1_000_000).expire_time == 3_000_000
    assert edit(message, "title").apply(OLD, 1_000_000).expire_time == 99


def test_every_editable_field_may_be_named_alone():
    message = filled(pattern_pb2.Pattern)
    wanted = patterns.content_from_pb(message)
    for name in set(names(pattern_pb2.Pattern)) - PATTERN_OUTPUT_ONLY - {"ttl", "origin"}:
        new = edit(message, name).apply(OLD, 0)
        assert new == replace(OLD, **{name: getattr(wanted, name)}), name


def test_all_that_is_wrong_with_a_mask_is_told():
    with pytest.raises(RequestInvalidError) as caught:
        edit(pattern_pb2.Pattern(), "outcomes", "nonsense", "task", "metadata.key")
    told = [violation.description for violation in caught.value.violations]
    first, known = told[0].split("; ")
    assert [first, *told[1:]] == [
        "'outcomes' is output only",
        "'nonsense' is not a path of Pattern",
        "'metadata.key' is not a path of Pattern",
    ]
    assert known.startswith("valid paths of Pattern: *, kind, code_kind, ")


# --- filters ----------------------------------------------------------------------------------


FILTERS = [
    (pattern_pb2.PatternFilter, patterns.filter_from_pb, PatternFilter, pattern_conditions),
    (episode_pb2.EpisodeFilter, episodes.filter_from_pb, EpisodeFilter, episode_conditions),
    (memory_pb2.MemoryFilter, memories.filter_from_pb, MemoryFilter, memory_conditions),
]


@pytest.mark.parametrize(
    ("message_type", "read", "domain_type", "conditions", "name"),
    [(*row, name) for row in FILTERS for name in names(row[0])],
)
def test_each_field_of_a_filter_narrows(message_type, read, domain_type, conditions, name):
    assert read(message_type()) == domain_type()
    message = message_type()
    set_field(message, name, 1)
    asked = read(message)
    assert asked != domain_type()
    assert conditions(asked), f"{name} is read, but narrows nothing"


# --- enums ------------------------------------------------------------------------------------


ENUMS = [
    (pattern_pb2.PatternKind.DESCRIPTOR, PatternKind),
    (pattern_pb2.CodeKind.DESCRIPTOR, CodeKind),
    (pattern_pb2.PatternType.DESCRIPTOR, PatternType),
    (pattern_service.Dedupe.DESCRIPTOR, Dedupe),
    (memory_pb2.MemoryKind.DESCRIPTOR, MemoryKind),
    (episode_pb2.EpisodeStatus.DESCRIPTOR, EpisodeStatus),
    (episode_service.TakeoverPolicy.DESCRIPTOR, TakeoverPolicy),
    (outcome_pb2.Outcome.DESCRIPTOR, Outcome),
    (outcome_pb2.Complexity.DESCRIPTOR, Complexity),
    (outcome_pb2.Ranking.DESCRIPTOR, Ranking),
]


@pytest.mark.parametrize(("descriptor", "members"), ENUMS, ids=lambda one: getattr(one, "name", ""))
def test_enums_are_mapped_both_ways_and_none_is_left_out(descriptor, members):
    codec = EnumCodec(descriptor, members)
    for member in members:
        assert codec.from_pb(codec.to_pb(member)) is member
    assert codec.from_pb(0) is None
    assert codec.to_pb(None) == 0
    assert sorted(codec.members) == list(range(1, len(members) + 1))
    for value in descriptor.values:
        assert (codec.from_pb(value.number) is None) == (value.number == 0), value.name


def test_names_stay_with_their_numbers():
    ranking = EnumCodec(outcome_pb2.Ranking.DESCRIPTOR, Ranking)
    assert ranking.from_pb(outcome_pb2.RANKING_EXPLORE) is Ranking.EXPLORE
    status = EnumCodec(episode_pb2.EpisodeStatus.DESCRIPTOR, EpisodeStatus)
    assert status.to_pb(EpisodeStatus.ABANDONED) == episode_pb2.EPISODE_STATUS_ABANDONED


# --- values -----------------------------------------------------------------------------------


@given(made.times)
def test_an_instant_comes_back_to_the_microsecond(micros):
    assert micros_of_time(time_to_pb(micros), "create_time") == micros


def test_finer_than_a_microsecond_is_cut():
    assert micros_of_time(Timestamp(seconds=1, nanos=1_999), "create_time") == 1_000_001


@pytest.mark.parametrize(
    "bad",
    [
        Timestamp(seconds=-1),
        Timestamp(seconds=253_402_300_800),
        Timestamp(seconds=1, nanos=-1),
        Timestamp(seconds=1, nanos=1_000_000_000),
        Timestamp(seconds=-(2**63)),
        Timestamp(seconds=2**63 - 1),
    ],
)
def test_an_instant_outside_the_calendar_is_refused_by_its_path(bad):
    message = pattern_pb2.Pattern(task="t", expire_time=bad)
    with pytest.raises(RequestInvalidError) as caught:
        patterns.content_from_pb(message)
    (violation,) = caught.value.violations
    assert (violation.field, violation.rule) == ("pattern.expire_time", "timestamp.range")
    assert "1970" in violation.description


def test_the_first_and_the_last_instant_are_taken():
    for seconds in (0, 253_402_300_799):
        message = pattern_pb2.Pattern(expire_time=Timestamp(seconds=seconds))
        assert patterns.content_from_pb(message).expire_time == seconds * 1_000_000


def test_a_time_to_live_lasts_at_least_a_microsecond_and_at_most_four_thousand_years():
    short = pattern_pb2.Pattern(ttl=Duration(nanos=1))
    assert ttl_of(short, "pattern") == 1
    long = pattern_pb2.Pattern(ttl=Duration(seconds=2**62))
    with pytest.raises(RequestInvalidError, match="at most 4,000 years"):
        ttl_of(long, "pattern")


def test_an_absurd_duration_is_refused():
    message = pattern_service.RecordOutcomeRequest(duration=Duration(seconds=2**62))
    with pytest.raises(RequestInvalidError, match="10,000 years"):
        outcomes.outcome_draft_from_pb(message)
    assert seconds_of_duration(Duration(nanos=500_000_000), "duration") == 0.5


@given(made.json_objects)
def test_json_comes_back_from_a_struct(value):
    assert struct_to_json(struct_from_json(value)) == value


def test_numbers_in_structs_are_doubles_and_whole_ones_are_read_as_integers():
    read = struct_to_json(struct_from_json({"n": 2**53 + 1, "port": 8080.0, "share": 0.5}))
    assert [repr(read[key]) for key in ("n", "port", "share")] == [
        "9007199254740992",
        "8080",
        "0.5",
    ]


@given(made.outcomes)
def test_counters_are_given_back_as_they_are(given_outcomes):
    message = outcomes.outcomes_to_pb(given_outcomes)
    assert message.usage_count == given_outcomes.usage_count
    assert message.success_count == given_outcomes.success_count
    assert message.failure_count == given_outcomes.failure_count
    assert message.partial_count == given_outcomes.partial_count
    assert message.success_rate == given_outcomes.success_rate
    assert message.reliability == given_outcomes.reliability
    assert message.HasField("last_used_time") == bool(given_outcomes.last_used_time)
    average = given_outcomes.average_duration
    assert message.HasField("average_duration") == (average is not None)
    if average is not None:
        told = message.average_duration.seconds + message.average_duration.nanos / 1e9
        assert math.isclose(told, average, abs_tol=1e-6)


@given(st.floats(0, 1e6))
@example(1.9999999998835847)
def test_a_duration_is_always_a_valid_one(seconds):
    made_duration = duration_to_pb(seconds)
    assert 0 <= made_duration.nanos < 1_000_000_000
