"""EpisodeService on the wire, but for the stream of events (test_episodes_stream)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import episode_pb2, outcome_pb2
from tests.server.service import Lot, output_only
from tests.server.wire import failure

P: Any = episode_pb2
RUNNING, SUCCEEDED, FAILED = (
    P.EPISODE_STATUS_RUNNING,
    P.EPISODE_STATUS_SUCCEEDED,
    P.EPISODE_STATUS_FAILED,
)
GIVEN_BY_SERVER = (
    "episode_id",
    "event_count",
    "reused_count",
    "namespace",
    "etag",
    "create_time",
    "update_time",
)
START = datetime(2024, 5, 1, 12, tzinfo=UTC)
END: dict[str, Any] = {
    "summary": "done at last",
    "error": {"type": "TimeoutError", "message": "after 30 s"},
    "error_patterns": ["timeout .*"],
    "success_factors": ["retry"],
    "tools_used": ["curl", "jq"],
    "metrics": {"tokens": 1200.5, "naïve": 0.0},
    "reward": -0.5,
    "used_pattern_ids": ["p-1"],
    "used_episode_ids": ["e-1"],
    "end_time": START + timedelta(minutes=3),
    "approach": "incremental",
}


def whole_start() -> dict[str, Any]:
    """Every field that the start of an episode has."""
    return {
        "task_id": "T-1",
        "task": "migrate the database",
        "category": "database",
        "task_type": "backend",
        "complexity": outcome_pb2.COMPLEXITY_LOW,
        "dependencies": ["postgres", "alembic"],
        "effort": 2.5,
        "agent_role": "builder",
        "context": "in production",
        "start_time": START,
        "tags": ["sql"],
        "labels": {"team.x": "core"},
        "metadata": {"a.b": [1, {"c": None}]},
    }


async def started(lot: Lot, task: str = "build it", **fields: Any) -> Any:
    beside = {n: fields.pop(n) for n in ("episode_id", "request_id") if n in fields}
    answer = await lot.episodes.StartEpisode(episode={"task": task, **fields}, **beside)
    return answer.episode


async def listed(lot: Lot, **requested: Any) -> list[str]:
    answer = await lot.episodes.ListEpisodes(page_size=1000, **requested)
    return [episode.episode_id for episode in answer.episodes]


async def recalled(lot: Lot, query: str, **requested: Any) -> list[str]:
    answer = await lot.episodes.RecallEpisodes(query=query, limit=100, **requested)
    return [hit.episode.episode_id for hit in answer.hits]


async def events_of(lot: Lot, episode_id: str, **requested: Any) -> list[Any]:
    answer = await lot.episodes.ListEpisodeEvents(
        episode_id=episode_id, page_size=1000, **requested
    )
    return list(answer.events)


# --- starting ---------------------------------------------------------------------------------


async def test_a_started_episode_comes_back_as_it_was_given(lot):
    given = P.Episode(**whole_start(), approach="standard")
    answer = await lot.episodes.StartEpisode(episode=given)
    assert answer.created
    for again in (
        answer.episode,
        (await lot.episodes.GetEpisode(episode_id=answer.episode.episode_id)).episode,
        (await lot.episodes.ListEpisodes()).episodes[0],
        (await lot.episodes.RecallEpisodes(query=given.task)).hits[0].episode,
    ):
        assert output_only(again, *GIVEN_BY_SERVER, "status") == given
        assert again.status == RUNNING
        assert again.namespace == lot.namespace
        assert again.etag
        assert again.create_time.seconds > 0


async def test_what_the_server_or_the_end_gives_is_ignored_at_the_start(lot):
    episode = await started(
        lot,
        status=SUCCEEDED,
        summary="s",
        error={"type": "E"},
        tools_used=["x"],
        metrics={"m": 1},
        reward=1,
        end_time=START,
        event_count=9,
        reused_count=9,
        namespace="elsewhere",
        etag="made-up",
        create_time=START,
    )
    given = {
        "task",
        "complexity",
        "status",
        "start_time",
        "episode_id",
        "namespace",
        "etag",
        "create_time",
        "update_time",
    }
    assert {f.name for f, _ in episode.ListFields()} == given
    assert (episode.status, episode.namespace) == (RUNNING, lot.namespace)
    assert episode.etag != "made-up"
    assert episode.create_time.ToDatetime(UTC) != START


async def test_a_complexity_that_is_not_given_is_assessed(lot):
    assert (await started(lot)).complexity == outcome_pb2.COMPLEXITY_LOW
    hard = await started(
        lot,
        "x" * 300,
        dependencies=["a", "b", "c", "d", "e", "f"],
        effort=9,
        category="database",
    )
    assert hard.complexity == outcome_pb2.COMPLEXITY_HIGH
    assert (
        await started(lot, "x" * 300, complexity=outcome_pb2.COMPLEXITY_MEDIUM)
    ).complexity == outcome_pb2.COMPLEXITY_MEDIUM


async def test_an_id_inside_must_be_the_one_beside(lot):
    episode = {"task": "t", "episode_id": "e-1", "status": SUCCEEDED}
    for call in (lot.episodes.StartEpisode, lot.episodes.RecordEpisode):
        failed = await failure(call(episode=episode, episode_id="e-2"))
        assert failed.fields == {"episode.episode_id": "episode_id.beside"}
    answer = await lot.episodes.StartEpisode(episode=episode, episode_id="e-1")
    assert answer.episode.episode_id == "e-1"


async def test_the_same_start_again_is_answered_and_another_refused(lot):
    first = await lot.episodes.StartEpisode(episode={"task": "t"}, episode_id="e")
    again = await lot.episodes.StartEpisode(episode={"task": "t"}, episode_id="e")
    assert (first.created, again.created) == (True, False)
    assert again.episode == first.episode
    failed = await failure(lot.episodes.StartEpisode(episode={"task": "u"}, episode_id="e"))
    assert (failed.code, failed.reason) == ("ALREADY_EXISTS", "EPISODE_ID_IN_USE")
    assert failed.metadata == {"namespace": lot.namespace, "id": "e"}
    assert failed.details["ResourceInfo"].resource_type == "lot.v1.Episode"


async def test_a_request_id_makes_a_repeated_start_safe(lot):
    first = await lot.episodes.StartEpisode(episode={"task": "t"}, request_id="r")
    again = await lot.episodes.StartEpisode(episode={"task": "t"}, request_id="r")
    assert again == first
    failed = await failure(lot.episodes.StartEpisode(episode={"task": "u"}, request_id="r"))
    assert (failed.code, failed.reason) == ("ALREADY_EXISTS", "REQUEST_ID_REUSED")
    assert failed.metadata == {"request_id": "r", "method": "StartEpisode"}
    assert await listed(lot) == [first.episode.episode_id]


async def test_a_long_task_is_stored_whole_and_its_unread_tail_is_told(lot):
    task = "word " * 9000
    answer = await lot.episodes.StartEpisode(episode={"task": task})
    assert answer.episode.task == task
    assert [n.field for n in answer.notices] == ["episode.task"]
    recorded = await lot.episodes.RecordEpisode(episode={"task": task, "status": FAILED})
    assert [n.code for n in recorded.notices] == [outcome_pb2.NOTICE_CODE_TEXT_TRUNCATED]
    found = await lot.episodes.RecallEpisodes(query=task)
    assert [n.field for n in found.notices] == ["query"]


# --- one event a call -------------------------------------------------------------------------


async def test_events_are_numbered_by_the_server_and_come_back_in_order(lot):
    await started(lot, episode_id="e")
    at = datetime(2024, 1, 1, tzinfo=UTC)
    first = await lot.episodes.RecordEvent(
        episode_id="e",
        event={
            "event_type": "tool_call",
            "agent_role": "builder",
            "data": {"a.b": [1, None, {"": "x"}], "n": 1e300},
            "event_time": at,
            "record_time": at,
        },
    )
    second = await lot.episodes.RecordEvent(episode_id="e", event={"event_type": "note"})
    assert [first.event.sequence, second.event.sequence] == [1, 2]
    assert first.event.event_time.ToDatetime(UTC) == at
    assert first.event.record_time.ToDatetime(UTC) != at
    assert second.event.event_time == second.event.record_time
    assert not second.event.HasField("data")
    assert await events_of(lot, "e") == [first.event, second.event]
    assert (await lot.episodes.GetEpisode(episode_id="e")).episode.event_count == 2


async def test_a_repeated_event_is_stored_once(lot):
    await started(lot, episode_id="e")
    ask = {"episode_id": "e", "event": {"event_type": "x"}, "request_id": "r"}
    first = await lot.episodes.RecordEvent(**ask)
    await lot.episodes.RecordEvent(episode_id="e", event={"event_type": "between"})
    assert await lot.episodes.RecordEvent(**ask) == first
    ask["event"] = {"event_type": "y"}
    failed = await failure(lot.episodes.RecordEvent(**ask))
    assert (failed.reason, failed.metadata) == (
        "REQUEST_ID_REUSED",
        {"request_id": "r", "method": "RecordEvent"},
    )
    assert [event.event_type for event in await events_of(lot, "e")] == ["x", "between"]


async def test_events_of_many_callers_get_numbers_of_their_own(lot):
    await started(lot, episode_id="e")
    answers = await asyncio.gather(
        *(
            lot.episodes.RecordEvent(episode_id="e", event={"event_type": f"t{n}"})
            for n in range(20)
        )
    )
    assert sorted(answer.event.sequence for answer in answers) == list(range(1, 21))
    assert [event.sequence for event in await events_of(lot, "e")] == list(range(1, 21))


@pytest.mark.parametrize(
    ("event", "path"),
    [
        ({"event_type": "x", "sequence": 1}, "event.sequence"),
        ({"event_type": "x", "sequence": -1}, "event.sequence"),
        ({}, "event.event_type"),
        ({"event_type": "x" * 257}, "event.event_type"),
    ],
)
async def test_an_event_against_the_contract_is_refused(lot, event, path):
    await started(lot, episode_id="e")
    failed = await failure(lot.episodes.RecordEvent(episode_id="e", event=event))
    assert path in failed.fields
    assert await events_of(lot, "e") == []


async def test_unknown_episodes_are_named_in_their_namespace(lot):
    for call in (
        lot.episodes.GetEpisode(episode_id="e"),
        lot.episodes.ListEpisodeEvents(episode_id="e"),
        lot.episodes.RecordEvent(episode_id="e", event={"event_type": "x"}),
        lot.episodes.EndEpisode(episode_id="e", status=SUCCEEDED),
    ):
        failed = await failure(call)
        assert (failed.code, failed.reason) == ("NOT_FOUND", "EPISODE_NOT_FOUND")
        assert failed.metadata == {"namespace": lot.namespace, "id": "e"}
        assert failed.details["ResourceInfo"].resource_name == "e"


# --- ending -----------------------------------------------------------------------------------


async def test_an_end_comes_back_as_it_was_given(lot):
    await started(lot, "what was used", episode_id="e-1", start_time=START)
    await started(lot, episode_id="e", start_time=START, approach="standard")
    await lot.episodes.RecordEvent(episode_id="e", event={"event_type": "x"})
    answer = await lot.episodes.EndEpisode(episode_id="e", status=FAILED, **END)
    ended = answer.episode
    wanted = P.Episode(status=FAILED, **END)
    assert P.Episode(**{f.name: getattr(ended, f.name) for f, _ in wanted.ListFields()}) == wanted
    assert ended.event_count == 1
    for again in (
        (await lot.episodes.GetEpisode(episode_id="e")).episode,
        (await lot.episodes.ListEpisodes()).episodes[0],
    ):
        assert again == ended


async def test_an_end_keeps_the_approach_of_the_start_unless_it_says_another(lot):
    await started(lot, episode_id="e", approach="standard")
    answer = await lot.episodes.EndEpisode(episode_id="e", status=SUCCEEDED)
    assert answer.episode.approach == "standard"
    assert answer.episode.HasField("end_time")
    assert not answer.episode.HasField("reward")


async def test_the_same_end_again_is_answered_and_another_refused(lot):
    await started(lot, episode_id="e")
    first = await lot.episodes.EndEpisode(episode_id="e", status=SUCCEEDED, summary="s")
    for request_id in ("", "r", "r"):
        again = await lot.episodes.EndEpisode(
            episode_id="e", status=SUCCEEDED, summary="s", request_id=request_id
        )
        assert again == first
    for other in ({"status": FAILED, "summary": "s"}, {"status": SUCCEEDED, "summary": "t"}):
        failed = await failure(lot.episodes.EndEpisode(episode_id="e", **other))
        assert (failed.code, failed.reason) == ("FAILED_PRECONDITION", "EPISODE_ENDED")
        assert failed.metadata == {"episode_id": "e", "status": "SUCCEEDED"}
        assert failed.details["PreconditionFailure"].violations[0].subject == "e"
    reused = await failure(lot.episodes.EndEpisode(episode_id="e", status=FAILED, request_id="r"))
    assert reused.reason == "REQUEST_ID_REUSED"


async def test_an_ended_episode_takes_no_event(lot):
    await started(lot, episode_id="e")
    await lot.episodes.EndEpisode(episode_id="e", status=FAILED)
    failed = await failure(lot.episodes.RecordEvent(episode_id="e", event={"event_type": "x"}))
    assert (failed.code, failed.reason) == ("FAILED_PRECONDITION", "EPISODE_ENDED")
    assert failed.metadata == {"episode_id": "e", "status": "FAILED"}
    assert await events_of(lot, "e") == []


async def test_a_retried_event_is_answered_after_the_end_too(lot):
    await started(lot, episode_id="e")
    ask = {"episode_id": "e", "event": {"event_type": "x"}, "request_id": "r"}
    first = await lot.episodes.RecordEvent(**ask)
    await lot.episodes.EndEpisode(episode_id="e", status=SUCCEEDED)
    assert await lot.episodes.RecordEvent(**ask) == first


@pytest.mark.parametrize(
    ("end", "path"),
    [
        ({"status": RUNNING}, "status"),
        ({"status": P.EPISODE_STATUS_ABANDONED}, "status"),
        ({"status": 0}, "status"),
        ({"status": 99}, "status"),
        ({"status": SUCCEEDED, "error": {"type": "E"}}, "error"),
        ({"status": SUCCEEDED, "reward": 1.5}, "reward"),
        ({"status": SUCCEEDED, "metrics": {"": 1}}, 'metrics[""]'),
        ({"status": SUCCEEDED, "metrics": {"m": float("nan")}}, 'metrics["m"]'),
        ({"status": SUCCEEDED, "tools_used": ["a", "a"]}, "tools_used"),
        ({"status": SUCCEEDED, "used_pattern_ids": ["no id"]}, "used_pattern_ids[0]"),
        ({"status": SUCCEEDED, "end_time": START - timedelta(seconds=1)}, "end_time"),
        ({"status": SUCCEEDED, "end_time": datetime(1969, 1, 1, tzinfo=UTC)}, "end_time"),
    ],
)
async def test_an_end_against_the_contract_is_refused_and_the_episode_runs_on(lot, end, path):
    await started(lot, episode_id="e", start_time=START)
    failed = await failure(lot.episodes.EndEpisode(episode_id="e", **end))
    assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "REQUEST_INVALID")
    assert set(failed.fields) == {path}
    assert (await lot.episodes.GetEpisode(episode_id="e")).episode.status == RUNNING


# --- recording whole --------------------------------------------------------------------------


async def test_a_whole_episode_is_recorded_in_one_call(lot):
    await started(lot, "what was used", episode_id="e-1", start_time=START)
    given = P.Episode(**whole_start(), **END, status=FAILED)
    events = [
        {"event_type": "a", "data": {"n": 1}},
        {"event_type": "b", "sequence": 2, "event_time": START},
    ]
    answer = await lot.episodes.RecordEpisode(episode=given, events=events, episode_id="e")
    assert answer.created
    episode = answer.episode
    assert output_only(episode, *GIVEN_BY_SERVER) == given
    assert episode.event_count == 2
    assert (await lot.episodes.GetEpisode(episode_id="e")).episode == episode
    stored = await events_of(lot, "e")
    assert [(event.sequence, event.event_type) for event in stored] == [(1, "a"), (2, "b")]
    assert stored[0].data["n"] == 1
    assert stored[1].event_time.ToDatetime(UTC) == START


async def test_every_field_of_an_episode_is_tried_above():
    tried = set(whole_start()) | set(END) | {"status"}
    assert tried == set(P.Episode.DESCRIPTOR.fields_by_name) - set(GIVEN_BY_SERVER)


async def test_the_same_recording_again_is_answered_and_another_refused(lot):
    ask: dict[str, Any] = {
        "episode": {"task": "t", "status": SUCCEEDED},
        "events": [{"event_type": "a"}],
    }
    first = await lot.episodes.RecordEpisode(**ask, request_id="r")
    assert await lot.episodes.RecordEpisode(**ask, request_id="r") == first
    reused = await failure(
        lot.episodes.RecordEpisode(episode=ask["episode"], events=[], request_id="r")
    )
    assert (reused.reason, reused.metadata["method"]) == ("REQUEST_ID_REUSED", "RecordEpisode")
    named = await lot.episodes.RecordEpisode(**ask, episode_id="e")
    again = await lot.episodes.RecordEpisode(**ask, episode_id="e")
    assert (named.created, again.created) == (True, False)
    assert again.episode == named.episode
    for other in ({"task": "u", "status": SUCCEEDED}, {"task": "t", "status": FAILED}):
        failed = await failure(lot.episodes.RecordEpisode(episode=other, episode_id="e"))
        assert (failed.code, failed.reason) == ("ALREADY_EXISTS", "EPISODE_ID_IN_USE")
    assert [event.event_type for event in await events_of(lot, "e")] == ["a"]


@pytest.mark.parametrize("sequences", [[1, 3], [2], [1, 1], [0, 3], [2, 1]])
async def test_events_of_a_recording_are_in_order(lot, sequences):
    failed = await failure(
        lot.episodes.RecordEpisode(
            episode={"task": "t", "status": SUCCEEDED},
            events=[{"event_type": "x", "sequence": n} for n in sequences],
            episode_id="e",
        )
    )
    assert failed.reason == "REQUEST_INVALID"
    [path] = failed.fields
    wrong = int(path.removeprefix("events[").removesuffix("].sequence"))
    assert sequences[wrong] != wrong + 1
    assert (await failure(lot.episodes.GetEpisode(episode_id="e"))).code == "NOT_FOUND"
    assert (await lot.episodes.StartEpisode(episode={"task": "t"}, episode_id="e")).created
    assert await events_of(lot, "e") == []


@pytest.mark.parametrize(
    ("episode", "path"),
    [
        ({"status": SUCCEEDED}, "episode.task"),
        ({"task": "t"}, "episode.status"),
        ({"task": "t", "status": RUNNING}, "episode.status"),
        ({"task": "t", "status": SUCCEEDED, "error": {"type": "E"}}, "episode.error"),
        (
            {
                "task": "t",
                "status": SUCCEEDED,
                "start_time": START,
                "end_time": datetime(2001, 1, 1, tzinfo=UTC),
            },
            "episode.end_time",
        ),
        ({"task": "t", "status": SUCCEEDED, "effort": -1}, "episode.effort"),
    ],
)
async def test_a_recording_against_the_contract_is_refused_with_its_path(lot, episode, path):
    ask = {"events": [{"event_type": "x"}], "episode_id": "e", "request_id": "r"}
    failed = await failure(lot.episodes.RecordEpisode(episode=episode, **ask))
    assert set(failed.fields) == {path}
    assert await listed(lot) == []
    await started(lot, episode_id="e")
    assert await events_of(lot, "e") == [], "events of the refused recording are left"
    corrected = {"task": "t", "status": SUCCEEDED}
    assert (await lot.episodes.RecordEpisode(episode=corrected, request_id="r")).created


# --- lists ------------------------------------------------------------------------------------


async def test_a_list_is_newest_first_and_its_pages_make_it_whole(lot):
    ids = [(await started(lot, f"task {n}")).episode_id for n in range(12)]
    newest = list(reversed(ids))
    assert [e.episode_id for e in (await lot.episodes.ListEpisodes()).episodes] == newest[:10]
    found, token = [], ""
    while True:
        page = await lot.episodes.ListEpisodes(page_size=5, page_token=token)
        found += [episode.episode_id for episode in page.episodes]
        token = page.next_page_token
        if not token:
            break
    assert found == newest


async def test_events_are_listed_by_pages_and_behind_a_number(lot):
    await lot.episodes.RecordEpisode(
        episode={"task": "t", "status": SUCCEEDED},
        events=[{"event_type": f"t{n}"} for n in range(1, 106)],
        episode_id="e",
    )
    page = await lot.episodes.ListEpisodeEvents(episode_id="e")
    assert [event.sequence for event in page.events] == list(range(1, 101))
    rest = await lot.episodes.ListEpisodeEvents(episode_id="e", page_token=page.next_page_token)
    assert [event.sequence for event in rest.events] == list(range(101, 106))
    assert rest.next_page_token == ""
    whole = await lot.episodes.ListEpisodeEvents(episode_id="e", page_size=105)
    assert (len(whole.events), whole.next_page_token) == (105, "")
    behind = await lot.episodes.ListEpisodeEvents(episode_id="e", after_sequence=103)
    assert [event.sequence for event in behind.events] == [104, 105]
    page = await lot.episodes.ListEpisodeEvents(episode_id="e", after_sequence=90, page_size=10)
    rest = await lot.episodes.ListEpisodeEvents(
        episode_id="e", after_sequence=90, page_size=2, page_token=page.next_page_token
    )
    assert [event.sequence for event in rest.events] == [101, 102]
    beyond = await lot.episodes.ListEpisodeEvents(episode_id="e", after_sequence=2**63 - 1)
    assert not beyond.events


# --- namespaces -------------------------------------------------------------------------------


async def test_another_namespace_sees_and_changes_nothing(lot):
    await started(lot, "t", episode_id="e")
    await lot.episodes.RecordEvent(episode_id="e", event={"event_type": "x"})
    other = lot.on(f"{lot.namespace}-other")
    assert await listed(other) == []
    assert await recalled(other, "t") == []
    for call in (
        other.episodes.GetEpisode(episode_id="e"),
        other.episodes.ListEpisodeEvents(episode_id="e"),
        other.episodes.RecordEvent(episode_id="e", event={"event_type": "y"}),
        other.episodes.EndEpisode(episode_id="e", status=SUCCEEDED),
    ):
        failed = await failure(call)
        assert failed.reason == "EPISODE_NOT_FOUND"
        assert failed.metadata["namespace"] == other.namespace
    assert (await other.episodes.StartEpisode(episode={"task": "u"}, episode_id="e")).created
    answer = await other.episodes.RecordEvent(episode_id="e", event={"event_type": "y"})
    assert answer.event.sequence == 1
    assert [event.event_type for event in await events_of(lot, "e")] == ["x"]
    assert (await lot.episodes.GetEpisode(episode_id="e")).episode.status == RUNNING
