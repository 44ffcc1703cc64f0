"""Proto and domain say the same: field by field, found by descriptor, so that none is forgotten."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import example, given
from hypothesis import strategies as st

from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.episode import Episode, EpisodeStatus
from lot_grpc.domain.error_solution import ErrorSolution
from lot_grpc.domain.errors import RequestInvalidError
from lot_grpc.domain.feedback import FeedbackCounts
from lot_grpc.domain.languages import language_name
from lot_grpc.domain.memory import Memory, MemoryKind, Project
from lot_grpc.domain.outcomes import Outcome, OutcomeStats
from lot_grpc.domain.pattern import CodeKind, Pattern, PatternContent, PatternKind, PatternType
from lot_grpc.domain.query import EpisodeFilter, MemoryFilter, PatternFilter, Ranking
from lot_grpc.pb.lot.v1 import episode_pb2, error_solution_pb2, memory_pb2, outcome_pb2, pattern_pb2
from lot_grpc.pb.lot.v1 import episode_service_pb2 as episode_service
from lot_grpc.pb.lot.v1 import memory_service_pb2 as memory_service
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pattern_service
from lot_grpc.server.codec import episodes, error_solutions, memories, outcomes, patterns
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
from tests.unit.filled import filled, names, set_field

PATTERN_OUTPUT_ONLY = {
    "pattern_id", "outcomes", "namespace", "etag", "create_time", "update_time", "feedback",
    "superseded_by",
}  # fmt: skip
MEMORY_OUTPUT_ONLY = {"memory_id", "namespace", "etag", "create_time", "update_time"}
ERROR_SOLUTION_OUTPUT_ONLY = {
    "error_solution_id", "signature", "outcomes", "namespace", "etag", "create_time",
    "update_time",
}  # fmt: skip
EPISODE_OUTPUT_ONLY = {
    "episode_id", "event_count", "reused_count", "namespace", "etag", "create_time", "update_time",
}  # fmt: skip
OUTCOMES = OutcomeStats(
    0.7, 5, 2, 1, duration_count=2, duration_total=3.0, last_used_time=9_000_001
)

FEEDBACK = FeedbackCounts(3, 1, 2, last_feedback_time=8_000_001)


def as_pattern(content: PatternContent) -> Pattern:
    return Pattern(
        "ns", "p-1", content, OUTCOMES, 26, 1_000_001, 2_000_002,
        feedback=FEEDBACK, superseded_by="p-2",
    )  # fmt: skip


# --- patterns ---------------------------------------------------------------------------------


def test_every_field_of_a_pattern_is_read_and_given_back():
    given = filled(pattern_pb2.Pattern)
    back = patterns.pattern_to_pb(as_pattern(patterns.content_from_pb(given)))
    for name in set(names(pattern_pb2.Pattern)) - PATTERN_OUTPUT_ONLY - {"ttl"}:
        assert getattr(back, name) == getattr(given, name), name
    for name in PATTERN_OUTPUT_ONLY:
        assert getattr(back, name) != getattr(pattern_pb2.Pattern(), name), f"{name} is left out"


@pytest.mark.parametrize("name", sorted(set(names(pattern_pb2.Pattern)) - PATTERN_OUTPUT_ONLY))
def test_each_field_of_a_pattern_changes_the_content(name):
    message = pattern_pb2.Pattern(task="t")
    plain = patterns.draft_from_pb(pattern_service.SavePatternRequest(pattern=message))
    set_field(message, name, 1)
    changed = patterns.draft_from_pb(pattern_service.SavePatternRequest(pattern=message))
    assert changed != plain


def test_output_only_fields_of_a_pattern_are_not_read():
    message = filled(pattern_pb2.Pattern)
    bare = pattern_pb2.Pattern()
    bare.CopyFrom(message)
    for name in PATTERN_OUTPUT_ONLY:
        bare.ClearField(name)  # type: ignore[arg-type]
    assert patterns.content_from_pb(message) == patterns.content_from_pb(bare)


@given(made.patterns)
def test_a_pattern_survives_the_wire(pattern):
    sent = patterns.pattern_to_pb(pattern).SerializeToString()
    content = patterns.content_from_pb(pattern_pb2.Pattern.FromString(sent))
    expected = replace(pattern.content, language=language_name(pattern.content.language))
    assert content == expected


def test_what_a_pattern_leaves_out_has_the_documented_default():
    content = patterns.content_from_pb(pattern_pb2.Pattern(task="t"))
    assert content == PatternContent("t")
    assert (content.kind, content.pattern_type) == (PatternKind.TASK, PatternType.SUCCESS)
    assert content.confidence == 0.5
    assert patterns.content_from_pb(pattern_pb2.Pattern(task="t", confidence=0.0)).confidence == 0
    draft = patterns.draft_from_pb(pattern_service.SavePatternRequest())
    assert draft.initial_success_rate == 1.0
    zero = pattern_service.SavePatternRequest(initial_success_rate=0.0)
    assert patterns.draft_from_pb(zero).initial_success_rate == 0.0


@pytest.mark.parametrize(
    "request_type", [pattern_service.SavePatternRequest, pattern_service.SavePatternItem]
)
def test_every_field_of_a_save_is_read(request_type):
    plain = patterns.draft_from_pb(request_type(pattern=pattern_pb2.Pattern(task="t")))
    for name in set(names(request_type)) - {"namespace", "pattern"}:
        message = request_type(pattern=pattern_pb2.Pattern(task="t"))
        set_field(message, name)
        assert patterns.draft_from_pb(message) != plain, f"{name} is ignored"


def test_an_id_inside_must_be_the_one_beside():
    for message, draft in [
        (
            pattern_service.SavePatternRequest(pattern=pattern_pb2.Pattern(pattern_id="a")),
            patterns.draft_from_pb,
        ),
        (
            memory_service.CreateMemoryRequest(memory=memory_pb2.Memory(memory_id="a")),
            memories.draft_from_pb,
        ),
        (
            episode_service.StartEpisodeRequest(episode=episode_pb2.Episode(episode_id="a")),
            episodes.start_draft_from_pb,
        ),
    ]:
        with pytest.raises(RequestInvalidError, match="must be empty or the same"):
            draft(message)  # type: ignore[operator]
    same = pattern_service.SavePatternRequest(
        pattern_id="a", pattern=pattern_pb2.Pattern(pattern_id="a")
    )
    assert patterns.draft_from_pb(same).pattern_id == "a"


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
    for name in set(names(pattern_pb2.Pattern)) - PATTERN_OUTPUT_ONLY - {"ttl"}:
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


# --- memories ---------------------------------------------------------------------------------


def as_memory(message: memory_pb2.Memory) -> Memory:
    draft = memories.draft_from_pb(memory_service.CreateMemoryRequest(memory=message))
    return Memory("ns", "m-1", draft.content, 26, 1_000_001, 2_000_002)


@pytest.mark.parametrize("details", ["conversation_summary", "project"])
def test_every_field_of_a_memory_is_read_and_given_back(details):
    given = filled(memory_pb2.Memory, details=details)
    given.ClearField("memory_id")
    back = memories.memory_to_pb(as_memory(given))
    other = {"conversation_summary", "project"} - {details}
    for name in set(names(memory_pb2.Memory)) - MEMORY_OUTPUT_ONLY - {"ttl"} - other:
        assert getattr(back, name) == getattr(given, name), name
    for name in MEMORY_OUTPUT_ONLY:
        assert getattr(back, name) != getattr(memory_pb2.Memory(), name), f"{name} is left out"


@pytest.mark.parametrize("name", sorted(set(names(memory_pb2.Memory)) - MEMORY_OUTPUT_ONLY))
def test_each_field_of_a_memory_changes_the_draft(name):
    message = memory_pb2.Memory(content="c")
    plain = memories.draft_from_pb(memory_service.CreateMemoryRequest(memory=message))
    set_field(message, name, 1)
    assert memories.draft_from_pb(memory_service.CreateMemoryRequest(memory=message)) != plain


@given(made.memories)
def test_a_memory_survives_the_wire(memory):
    sent = memories.memory_to_pb(memory).SerializeToString()
    message = memory_pb2.Memory.FromString(sent)
    message.ClearField("memory_id")
    content = as_memory(message).content
    assert content == replace(memory.content, language=language_name(memory.content.language))


def test_details_tell_the_kind_and_the_defaults_are_the_documented_ones():
    plain = as_memory(memory_pb2.Memory(content="c")).content
    assert (plain.kind, plain.importance) == (MemoryKind.NOTE, 0.5)
    assert as_memory(memory_pb2.Memory(content="c", importance=0.0)).content.importance == 0
    project = as_memory(memory_pb2.Memory(project=memory_pb2.ProjectDetails())).content
    assert (project.kind, project.details) == (MemoryKind.PROJECT, Project(status="active"))
    summary = memory_pb2.Memory(conversation_summary=memory_pb2.ConversationSummaryDetails())
    assert as_memory(summary).content.kind is MemoryKind.CONVERSATION_SUMMARY


def test_every_field_of_a_create_is_read():
    plain = memories.draft_from_pb(memory_service.CreateMemoryRequest())
    for name in set(names(memory_service.CreateMemoryRequest)) - {"namespace", "memory"}:
        message = memory_service.CreateMemoryRequest()
        set_field(message, name)
        assert memories.draft_from_pb(message) != plain, f"{name} is ignored"


# --- episodes ---------------------------------------------------------------------------------


def as_episode(message: episode_pb2.Episode) -> Episode:
    request = episode_service.RecordEpisodeRequest(episode=message)
    draft = episodes.record_draft_from_pb(request)
    assert draft.end is not None
    return Episode(
        "ns", "e-1", draft.start, draft.end.status, draft.end,
        draft.start.start_time or 0, draft.end.end_time, 3, 4, 0, 26, 1_000_001, 2_000_002,
    )  # fmt: skip


def test_every_field_of_an_episode_is_read_and_given_back():
    given = filled(episode_pb2.Episode)
    given.ClearField("episode_id")
    given.status = episode_pb2.EPISODE_STATUS_FAILED
    back = episodes.episode_to_pb(as_episode(given))
    for name in set(names(episode_pb2.Episode)) - EPISODE_OUTPUT_ONLY:
        assert getattr(back, name) == getattr(given, name), name
    for name in EPISODE_OUTPUT_ONLY:
        assert getattr(back, name) != getattr(episode_pb2.Episode(), name), f"{name} is left out"


@pytest.mark.parametrize("name", sorted(set(names(episode_pb2.Episode)) - EPISODE_OUTPUT_ONLY))
def test_each_field_of_an_episode_changes_what_is_recorded(name):
    plain = episode_pb2.Episode(task="t", status=episode_pb2.EPISODE_STATUS_SUCCEEDED)
    message = episode_pb2.Episode()
    message.CopyFrom(plain)
    set_field(message, name, 2)
    assert as_episode(message) != as_episode(plain)


@given(made.episodes())
def test_an_episode_survives_the_wire(episode):
    sent = episodes.episode_to_pb(episode).SerializeToString()
    message = episode_pb2.Episode.FromString(sent)
    start = episodes.start_from_pb(message)
    assert start == replace(episode.start, approach=episode.approach, start_time=episode.start_time)
    if episode.end is not None:
        end = episodes.recorded_end_from_pb(message)
        assert replace(end, approach=episode.end.approach) == episode.end


def test_every_field_of_an_end_is_read():
    ok = episode_pb2.EPISODE_STATUS_FAILED
    plain = episodes.end_from_pb(episode_service.EndEpisodeRequest(status=ok))
    elsewhere = {"namespace", "episode_id", "request_id", "extract_knowledge", "status"}
    for name in set(names(episode_service.EndEpisodeRequest)) - elsewhere:
        message = episode_service.EndEpisodeRequest(status=ok)
        set_field(message, name)
        assert episodes.end_from_pb(message) != plain, f"{name} is ignored"


def test_every_field_of_an_event_is_read_and_given_back():
    given = filled(episode_pb2.EpisodeEvent)
    event = replace(episodes.event_from_pb(given, "event"), record_time=5_000_005)
    back = episodes.event_to_pb(event)
    for name in set(names(episode_pb2.EpisodeEvent)) - {"record_time"}:
        assert getattr(back, name) == getattr(given, name), name
    assert back.record_time == time_to_pb(5_000_005)


def test_structs_that_are_equal_make_equal_events():
    one, other = Struct(), Struct()
    one.update({"a": 1, "b": {"x": 1, "y": 2}})
    other.update({"b": {"y": 2, "x": 1}})
    other.update({"a": 1})
    first, second = (
        episodes.event_from_pb(episode_pb2.EpisodeEvent(event_type="t", data=data), "event")
        for data in (one, other)
    )
    assert first == second


def test_wrong_times_of_events_are_told_with_their_place():
    bad = Timestamp(seconds=-1)
    good = episode_pb2.EpisodeEvent(event_type="t")
    with pytest.raises(RequestInvalidError) as caught:
        episodes.events_from_pb([good, episode_pb2.EpisodeEvent(event_type="t", event_time=bad)])
    assert caught.value.violations[0].field == "events[1].event_time"


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


# --- error solutions --------------------------------------------------------------------------


def as_error_solution(message: error_solution_pb2.ErrorSolution) -> ErrorSolution:
    request = error_solution_pb2.SaveErrorSolutionRequest(error_solution=message)
    content = error_solutions.draft_from_pb(request).content
    return ErrorSolution(
        "ns", "s-1", content, content.error.signature, OUTCOMES, 26, 1_000_001, 2_000_002
    )


def test_every_field_of_an_error_solution_is_read_and_given_back():
    given = filled(error_solution_pb2.ErrorSolution)
    given.ClearField("error_solution_id")
    back = error_solutions.error_solution_to_pb(as_error_solution(given))
    known = set(names(error_solution_pb2.ErrorSolution))
    for name in known - ERROR_SOLUTION_OUTPUT_ONLY - {"ttl"}:
        assert getattr(back, name) == getattr(given, name), name
    for name in ERROR_SOLUTION_OUTPUT_ONLY:
        nothing = getattr(error_solution_pb2.ErrorSolution(), name)
        assert getattr(back, name) != nothing, f"{name} is left out"


@pytest.mark.parametrize(
    "name", sorted(set(names(error_solution_pb2.ErrorSolution)) - ERROR_SOLUTION_OUTPUT_ONLY)
)
def test_each_field_of_an_error_solution_changes_the_draft(name):
    message = error_solution_pb2.ErrorSolution(error_message="e")
    request = error_solution_pb2.SaveErrorSolutionRequest(error_solution=message)
    plain = error_solutions.draft_from_pb(request)
    set_field(request.error_solution, name, 1)
    if name == "worked":  # absent is true
        request.error_solution.worked = False
    assert error_solutions.draft_from_pb(request) != plain
    assert error_solutions.draft_from_pb(request).hash() != plain.hash()


@given(made.error_solutions)
def test_an_error_solution_survives_the_wire(solution):
    sent = error_solutions.error_solution_to_pb(solution).SerializeToString()
    message = error_solution_pb2.ErrorSolution.FromString(sent)
    message.ClearField("error_solution_id")
    content = as_error_solution(message).content
    assert content == replace(solution.content, language=language_name(solution.content.language))


def test_every_field_of_an_error_solution_filter_is_read():
    plain = error_solutions.filter_from_pb(error_solution_pb2.ErrorSolutionFilter())
    for name in names(error_solution_pb2.ErrorSolutionFilter):
        message = error_solution_pb2.ErrorSolutionFilter()
        set_field(message, name, 1)
        assert error_solutions.filter_from_pb(message) != plain, name
