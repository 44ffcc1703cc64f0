"""EpisodeService on the wire: one event a call, and episodes recorded whole."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

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
    started,
    whole_start,
)
from tests.server.service import output_only
from tests.server.wire import failure

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
