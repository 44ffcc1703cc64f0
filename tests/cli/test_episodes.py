"""`lot-grpc episodes` against a server that answers as it is told."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import grpc
import pytest
from google.protobuf.json_format import ParseDict
from google.rpc import status_pb2
from rich.cells import cell_len

from lot_grpc.cli.app import app as command_line
from lot_grpc.cli.times import local_time
from lot_grpc.pb.lot.v1 import episode_pb2 as pb
from lot_grpc.pb.lot.v1 import episode_service_pb2 as service_pb
from lot_grpc.pb.lot.v1.outcome_pb2 import COMPLEXITY_MEDIUM, OutcomeStats
from tests.cli.scripted import NASTY

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def episode(number: int, status=pb.EPISODE_STATUS_SUCCEEDED, **fields) -> pb.Episode:
    made = pb.Episode(episode_id=f"e-{number}", status=status, **{"task": "t", **fields})
    made.start_time.FromDatetime(START)
    if status in (pb.EPISODE_STATUS_SUCCEEDED, pb.EPISODE_STATUS_FAILED):
        made.end_time.FromDatetime(START + timedelta(seconds=75))
    return made


def event(sequence: int, event_type: str = "note", **data) -> pb.EpisodeEvent:
    made = pb.EpisodeEvent(sequence=sequence, event_type=event_type, agent_role="coder")
    made.data.update(data)
    made.event_time.FromDatetime(START + timedelta(seconds=sequence))
    return made


def ran(runner, fake, *arguments, **environment):
    return runner.invoke(
        command_line,
        [*arguments, "-a", fake.address],
        env={k: str(v) for k, v in environment.items()},
    )


def hold(fake, *episodes: pb.Episode) -> None:
    fake.episodes.episodes = {one.episode_id: one for one in episodes}


def steering(text: str) -> list[str]:
    """What a terminal would obey."""
    return [one for one in text if not one.isprintable() and one != "\n"]


def rows_of(shown: str) -> dict[str, str]:
    """Of a block of names and what is told of each."""
    found = (re.match(r" *(\S+(?: \S+)*)  +(\S.*?) *$", line) for line in shown.splitlines())
    return {one[1]: one[2] for one in found if one}


# --- the list ---------------------------------------------------------------------------------


def test_a_row_for_each_with_all_columns(runner, fake):
    hold(
        fake,
        episode(2, pb.EPISODE_STATUS_RUNNING, event_count=1234),
        episode(1, task="[b]write[/b] :smile: it", reused_count=3),
    )
    result = ran(runner, fake, "episodes")
    assert result.exit_code == 0, result
    head, second, first = (line for line in result.stdout.splitlines() if line.strip(" ─"))
    assert head.split() == ["id", "status", "task", "events", "started", "duration", "reused"]
    started = local_time(episode(1).start_time).split()
    assert second.split() == ["e-2", "running", "t", "1,234", *started, "0"]
    assert "[b]write[/b] :smile: it" in first
    assert first.split()[-6:] == [*started, "1", "min", "15", "s", "3"][-6:]
    assert fake.episodes.requests[0].page_size == 20


def test_nothing_of_a_stored_text_steers_the_terminal(runner, fake):
    hold(fake, episode(1, pb.EPISODE_STATUS_FAILED, task=NASTY, summary=NASTY, tags=[NASTY]))
    fake.episodes.events = [event(1, NASTY, text=NASTY)]
    fake.episodes.failures = service_pb.AnalyzeFailuresResponse(
        failed_count=1, groups=[service_pb.FailureGroup(signature=NASTY, tools=[NASTY], count=1)]
    )
    for arguments in (["episodes"], ["episodes", "e-1"], ["episodes", "--failures"]):
        result = ran(runner, fake, *arguments, COLUMNS=300)
        assert result.exit_code == 0, result
        assert steering(result.output) == []
        assert "\\x1b]0;owned\\x07\\x1b[31mred\\u202egnp\\x9b2J" in result.stdout
        assert "[bold]x[/bold] :smile:" in result.stdout


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal(runner, fake, width):
    hold(fake, episode(1, task="漢字 " * 200), episode(2, task="x" * 500, event_count=10**9))
    fake.episodes.events = [event(1, "漢" * 80, text="字" * 300)]
    for arguments in (["episodes"], ["episodes", "e-1"]):
        result = ran(runner, fake, *arguments, COLUMNS=width)
        assert result.exit_code == 0, result
        assert max(cell_len(line) for line in result.stdout.splitlines()) <= width
    listed = ran(runner, fake, "episodes", COLUMNS=width).stdout
    assert "…" in listed
    assert width < 40 or "e-1" in listed


def test_where_there_is_little_room_the_task_stays(runner, fake):
    hold(fake, episode(1, task="find the bug"))
    shown = ran(runner, fake, "episodes", COLUMNS=40).stdout
    assert shown.split()[:3] == ["id", "status", "task"]
    assert "find the bug" in shown
    assert "reused" not in shown


def test_filters_go_to_the_server(runner, fake):
    before = datetime.now(UTC)
    result = ran(
        runner, fake, "episodes", "--status", "failed", "--status", "ABANDONED",
        "--category", "a", "--category", "b", "--task-type", "c", "--task-id", "d",
        "--after", "2h", "--before", "2026-03-01T12:00:00+02:00", "--limit", "7", "-n", "team",
    )  # fmt: skip
    assert (result.exit_code, result.stdout) == (0, "No episodes match.\n")
    [request] = fake.episodes.requests
    assert (request.namespace, request.page_size) == ("team", 7)
    narrowed = request.filter
    assert list(narrowed.statuses) == [pb.EPISODE_STATUS_FAILED, pb.EPISODE_STATUS_ABANDONED]
    assert (*narrowed.categories, *narrowed.task_types, *narrowed.task_ids) == ("a", "b", "c", "d")
    after = narrowed.started_after.ToDatetime(tzinfo=UTC)
    # A Timestamp given by hand has microseconds, as the clock here.
    assert before - timedelta(hours=2) <= after <= datetime.now(UTC) - timedelta(hours=2)
    assert narrowed.started_before.ToDatetime(tzinfo=UTC) == datetime(2026, 3, 1, 10, tzinfo=UTC)


def test_an_empty_time_narrows_nothing(runner, fake):
    assert ran(runner, fake, "episodes", "--after", "", "--before", "").exit_code == 0
    [request] = fake.episodes.requests
    assert request.filter == pb.EpisodeFilter()


def test_pages_are_read_up_to_the_limit(runner, fake):
    hold(fake, *(episode(n) for n in range(30)))
    fake.episodes.page = 4
    result = ran(runner, fake, "episodes", "--limit", "10", "--json")
    ids = [json.loads(line)["episode_id"] for line in result.stdout.splitlines()]
    assert ids == [f"e-{n}" for n in range(10)]
    shown = ran(runner, fake, "episodes", "--limit", "10")
    assert "note: there are more than these 10: --limit N" in shown.stderr
    assert "more" not in ran(runner, fake, "episodes", "--limit", "30").stderr


def test_json_is_an_object_a_line_with_names_of_the_contract(runner, fake):
    held = [episode(1, task=NASTY), episode(2, pb.EPISODE_STATUS_RUNNING)]
    hold(fake, *held)
    result = ran(runner, fake, "episodes", "--json")
    lines = result.stdout.splitlines()
    assert [ParseDict(json.loads(line), pb.Episode()) for line in lines] == held
    told = json.loads(lines[1])
    assert (told["status"], told["event_count"]) == ("EPISODE_STATUS_RUNNING", "0")
    assert "end_time" not in told
    assert steering(result.stdout) == []


def test_without_episodes_it_says_so(runner, fake):
    assert ran(runner, fake, "episodes").stdout == "There are no episodes.\n"
    assert ran(runner, fake, "episodes", "--json").stdout == ""


# --- one --------------------------------------------------------------------------------------


def test_one_is_shown_with_its_fields_and_last_events(runner, fake):
    one = episode(1, pb.EPISODE_STATUS_FAILED, task="line one\nline two", event_count=25)
    one.error.type, one.error.message = "TimeoutError", "too slow"
    one.complexity = COMPLEXITY_MEDIUM
    one.metrics["tokens"] = 1234567
    one.labels["team"] = "x"
    hold(fake, one)
    fake.episodes.events = [event(n, text=f"nr {n}") for n in range(1, 28)]
    result = ran(runner, fake, "episodes", "e-1", "--limit", "3")
    assert result.exit_code == 0, result
    rows = rows_of(result.stdout)
    assert rows["id"] == "e-1"
    assert rows["status"] == "failed"
    assert rows["task"] == "line one"
    assert rows["error"] == "TimeoutError: too slow"
    assert rows["complexity"] == "medium"
    assert rows["metrics"] == "tokens=1234567"
    assert rows["labels"] == "team=x"
    assert rows["duration"] == "1 min 15 s"
    assert "category" not in rows
    # Two more came after it was read.
    assert [f"nr {n}" in result.stdout for n in range(23, 28)] == [False, False, True, True, True]
    assert "the last 3 of 27 events; `lot-grpc replay e-1` shows all" in result.stderr
    assert fake.episodes.requests[-1].after_sequence == 22


def test_one_as_json_is_the_episode(runner, fake):
    hold(fake, episode(1))
    result = ran(runner, fake, "episodes", "e-1", "--json")
    [line] = result.stdout.splitlines()
    assert ParseDict(json.loads(line), pb.Episode()) == episode(1)


# --- failures ---------------------------------------------------------------------------------


def test_failures_are_shown_group_by_group(runner, fake):
    group = service_pb.FailureGroup(
        signature="TimeoutError: <path>", count=12, share=0.3, trend=0.012,
        example_episode_ids=["e-9", "e-7"], last_good_approach="incremental",
        tools=["bash", "pytest"], failed_after_event_type="tool_call",
    )  # fmt: skip
    group.last_time.FromDatetime(START)
    others = [
        service_pb.FailureGroup(signature="B", count=2, share=0.05, trend=-0.5),
        service_pb.FailureGroup(signature="C", count=1, share=0.025, trend=0.0001),
    ]
    fake.episodes.failures = service_pb.AnalyzeFailuresResponse(
        failed_count=40, groups=[group, *others]
    )
    result = ran(runner, fake, "episodes", "--failures", "--category", "ops", "--limit", "3")
    first, second, third = result.stdout.split("\n\n")
    rows = rows_of(first)
    assert rows.pop("12 of 40 failures (30.0%)") == "↑ +1.2 points per day"
    assert rows == {
        "signature": "TimeoutError: <path>",
        "failed after": "tool_call",
        "tools": "bash, pytest",
        "last good approach": "incremental",
        "last": local_time(group.last_time),
        "examples": "e-9 e-7",
    }
    assert "(5.0%)  ↓ -50.0 points per day" in second
    assert "→ steady" in third
    [request] = fake.episodes.requests
    assert (list(request.filter.categories), request.limit) == (["ops"], 3)


def test_failures_as_json_are_the_whole_answer(runner, fake):
    fake.episodes.failures = service_pb.AnalyzeFailuresResponse(
        failed_count=1, groups=[service_pb.FailureGroup(signature=NASTY)]
    )
    [line] = ran(runner, fake, "episodes", "--failures", "--json").stdout.splitlines()
    told = ParseDict(json.loads(line), service_pb.AnalyzeFailuresResponse())
    assert told == fake.episodes.failures


def test_without_failures_it_says_so(runner, fake):
    assert ran(runner, fake, "episodes", "--failures").stdout == "No episode has failed.\n"


# --- what cannot be meant, and what fails -----------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--status", "lost"], "running, succeeded, failed, abandoned"),
        (["--after", "soon"], "'--after': 'soon' is not a time"),
        (["--before", "99999999999d"], "'--before': "),
        (["--limit", "-1"], "--limit"),
        (["e-1", "--status", "failed"], "an ID only goes with --limit"),
        (["e-1", "--failures"], "an ID only goes with --limit"),
    ],
)
def test_wrong_usage_exits_2_and_asks_nothing(runner, fake, arguments, told):
    result = ran(runner, fake, "episodes", *arguments, COLUMNS=200)
    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stdout == ""
    assert fake.episodes.requests == []


def test_an_episode_that_is_not_there_exits_1_in_the_words_of_the_server(runner, fake):
    result = ran(runner, fake, "episodes", "e-9")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"error: {fake.address}: NOT_FOUND: no episode e-9\\x1b[2J\n"


def test_a_server_that_is_not_there_is_told_with_a_hint(runner, fake):
    fake.episodes.fails = (grpc.StatusCode.UNAVAILABLE, "x")
    result = ran(runner, fake, "episodes", "--json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(
        f"error: {fake.address}: UNAVAILABLE\nhint: is the server running"
    )


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED])
def test_a_failure_that_the_server_explains_is_told_with_its_reason_and_no_guess(
    runner, fake, code
):
    fake.episodes.refuses = (
        code,
        "STORE_UNAVAILABLE\x1b[2J",
        "the store is\x1b[2J away; try again",
    )
    result = ran(runner, fake, "episodes")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        f"error: {fake.address}: {code.name} STORE_UNAVAILABLE\\x1b[2J: "
        "the store is\\x1b[2J away; try again\n"
    )


@pytest.mark.parametrize("details", [b"\xff", b"", status_pb2.Status(code=3).SerializeToString()])
def test_details_that_cannot_be_read_leave_the_code_and_the_sentence(runner, fake, details):
    fake.episodes.details = details
    fake.episodes.fails = (grpc.StatusCode.NOT_FOUND, "none")
    assert ran(runner, fake, "episodes").stderr == f"error: {fake.address}: NOT_FOUND: none\n"


def test_colours_come_only_where_they_are_wanted(runner, fake):
    hold(fake, episode(1, pb.EPISODE_STATUS_FAILED))
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
    assert "\x1b[31mfailed" in ran(runner, fake, "episodes", **terminal).stdout
    assert "\x1b[31m" not in ran(runner, fake, "episodes", NO_COLOR="1", **terminal).stdout
    assert "\x1b" not in ran(runner, fake, "episodes").stdout
    assert "\x1b" not in ran(runner, fake, "episodes", "--json", **terminal).stdout


def test_an_episode_that_was_used_shows_how_that_went(runner, fake):
    used = OutcomeStats(usage_count=3, success_count=2, failure_count=1)
    hold(fake, pb.Episode(episode_id="e-1", task="t", outcomes=used))
    shown = rows_of(ran(runner, fake, "episodes", "e-1").stdout)
    assert shown["outcomes"].startswith("2 of 3 worked, 1 failed")
