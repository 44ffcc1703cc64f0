"""EpisodeService on the wire: starting and ending episodes, and listing them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lot_grpc.pb.lot.v1 import outcome_pb2
from tests.server.episodes import (
    END,
    FAILED,
    GIVEN_BY_SERVER,
    RUNNING,
    START,
    SUCCEEDED,
    P,
    events_of,
    listed,
    recalled,
    started,
    whole_start,
)
from tests.server.service import output_only
from tests.server.wire import failure

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
