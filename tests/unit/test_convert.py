"""Proto and domain say the same: field by field, found by descriptor, so that none is forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given

from lot_grpc.domain.episode import Episode
from lot_grpc.domain.error_solution import ErrorSolution
from lot_grpc.domain.errors import RequestInvalidError
from lot_grpc.domain.languages import language_name
from lot_grpc.domain.memory import IndexingState, Memory, MemoryKind, Project
from lot_grpc.domain.pattern import PatternContent, PatternKind, PatternType
from lot_grpc.pb.lot.v1 import episode_pb2, error_solution_pb2, memory_pb2, pattern_pb2
from lot_grpc.pb.lot.v1 import episode_service_pb2 as episode_service
from lot_grpc.pb.lot.v1 import memory_service_pb2 as memory_service
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pattern_service
from lot_grpc.server.codec import episodes, error_solutions, memories, patterns
from lot_grpc.server.codec.values import time_to_pb
from tests.unit import made
from tests.unit.converting import OUTCOMES, PATTERN_OUTPUT_ONLY, REVIEW, as_pattern
from tests.unit.filled import filled, names, set_field

MEMORY_OUTPUT_ONLY = {
    "memory_id", "namespace", "etag", "create_time", "update_time", "indexing", "indexing_problem",
    "outcomes",
    "review",
    "superseded_by", "superseded_time",
}  # fmt: skip


ERROR_SOLUTION_OUTPUT_ONLY = {
    "error_solution_id", "signature", "outcomes", "namespace", "etag", "create_time",
    "update_time", "review",
}  # fmt: skip


EPISODE_OUTPUT_ONLY = {
    "episode_id", "event_count", "reused_count", "namespace", "etag", "create_time", "update_time",
    "outcomes",
}  # fmt: skip


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


# --- memories ---------------------------------------------------------------------------------


def as_memory(message: memory_pb2.Memory) -> Memory:
    content = memories.content_from_pb(message)
    state = IndexingState.PENDING, "the model is away"
    return Memory(
        "ns", "m-1", content, 26, 1_000_001, 2_000_002, *state,
        superseded_by="m-2", superseded_time=3_000_003, outcomes=OUTCOMES, review=REVIEW,
    )  # fmt: skip


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
    apart = {"namespace", "memory", "wait_for_index"}
    for name in set(names(memory_service.CreateMemoryRequest)) - apart:
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
        OUTCOMES,
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


# --- error solutions --------------------------------------------------------------------------


def as_error_solution(message: error_solution_pb2.ErrorSolution) -> ErrorSolution:
    content = error_solutions.content_from_pb(message)
    return ErrorSolution(
        "ns", "s-1", content, content.error.signature, OUTCOMES, 26, 1_000_001, 2_000_002,
        review=REVIEW,
    )  # fmt: skip


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
