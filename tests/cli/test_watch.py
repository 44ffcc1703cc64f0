"""`lot-grpc watch` against a server that answers as it is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import grpc
import pytest
from google.protobuf.json_format import ParseDict
from rich.cells import cell_len

from lot_grpc.cli import calls
from lot_grpc.cli.app import app as command_line
from lot_grpc.cli.times import local_time
from lot_grpc.cli.watch import summary_of
from lot_grpc.pb.lot.v1 import change_pb2 as pb
from lot_grpc.pb.lot.v1 import resource_kind_pb2
from lot_grpc.pb.lot.v1.decision_pb2 import Decision
from lot_grpc.pb.lot.v1.episode_pb2 import EPISODE_STATUS_FAILED, Episode
from lot_grpc.pb.lot.v1.error_solution_pb2 import ErrorSolution
from lot_grpc.pb.lot.v1.learning_event_pb2 import LearningEvent
from lot_grpc.pb.lot.v1.memory_pb2 import Memory
from lot_grpc.pb.lot.v1.pattern_pb2 import Pattern
from lot_grpc.pb.lot.v1.preference_pb2 import Preference
from lot_grpc.pb.lot.v1.retrieval_pb2 import Retrieval
from lot_grpc.pb.lot.v1.session_pb2 import Session
from tests.cli.scripted import NASTY, held_open
from tests.cli.test_episodes import ran, steering

GONE = grpc.StatusCode.UNAVAILABLE
OLD = grpc.StatusCode.OUT_OF_RANGE


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(calls, "_FIRST_WAIT", 0.01)
    monkeypatch.setattr(calls, "_LONGEST_WAIT", 0.02)


def change(number: int, kind=pb.CHANGE_TYPE_STORED, **payload) -> pb.ChangeEvent:
    made = pb.ChangeEvent(
        cursor=f"c{number}",
        type=kind,
        resource_kind=resource_kind_pb2.RESOURCE_KIND_MEMORY,
        id=f"m-{number}",
        **payload,
    )
    made.change_time.FromSeconds(1_772_000_000 + number)
    return made


def message(*changes: pb.ChangeEvent, cursor: str = "") -> pb.WatchChangesResponse:
    last = cursor or (changes[-1].cursor if changes else "")
    return pb.WatchChangesResponse(change_events=changes, cursor=last)


def told(stdout: str) -> list[str]:
    return [json.loads(line)["id"] for line in stdout.splitlines()]


def test_a_line_for_each_change(runner, fake):
    cleared = pb.ChangeEvent(type=pb.CHANGE_TYPE_CLEARED, cursor="c4")
    learned = change(3, pb.CHANGE_TYPE_PATTERN_LEARNED, pattern=Pattern(task="deploy\nit"))
    learned.resource_kind = resource_kind_pb2.RESOURCE_KIND_PATTERN
    changes = [
        change(1, pb.CHANGE_TYPE_UPDATED, memory=Memory(title="A [b]title[/b]", content="long")),
        change(2, pb.CHANGE_TYPE_DELETED),
        learned,
        cleared,
    ]
    suggestion = pb.ContextSuggestion(task="do it")
    kind = pb.CHANGE_TYPE_CONTEXT_SUGGESTED
    changes.append(pb.ChangeEvent(type=kind, id="r-1", context_suggestion=suggestion))
    fake.changes.scripts = [[message(cursor="c0"), message(*changes), message(cursor="c9"), OLD]]
    result = ran(runner, fake, "watch")
    clock = [local_time(one.change_time, "%H:%M:%S") for one in changes]
    assert result.stdout.splitlines() == [
        f"{clock[0]}  record.updated  memory  m-1  A [b]title[/b]",
        f"{clock[1]}  record.deleted  memory  m-2",
        f"{clock[2]}  pattern.learned  pattern  m-3  deploy it",
        f"{clock[3]}  record.cleared  all",
        f"{clock[4]}  context.suggested  r-1  do it",
    ]
    assert result.stderr.startswith(
        f"note: watching your own namespace on {fake.address}; Ctrl-C stops\n"
    )


@pytest.mark.parametrize(
    ("payload", "summary"),
    [
        ({"memory": Memory(content="c")}, "c"),
        ({"pattern": Pattern(title="t", task="x")}, "t"),
        ({"episode": Episode(task="t", status=EPISODE_STATUS_FAILED)}, "failed: t"),
        ({"error_solution": ErrorSolution(error_message="m")}, "m"),
        (
            {"error_solution": ErrorSolution(error_type="T", error_message="m", resolution="r")},
            "T: m → r",
        ),
        ({"session": Session(last_sequence=3)}, "up to message 3"),
        ({"learning_event": LearningEvent(event_type="praise", text="well")}, "praise: well"),
        ({"decision": Decision(chosen_option="a", context="b")}, "a: b"),
        ({"pattern_match": pb.PatternMatch(query="q", similarity=0.5)}, "0.50 for q"),
        ({"context_suggestion": pb.ContextSuggestion(task="t")}, "t"),
        ({"retrieval": Retrieval(query="how")}, "how"),
    ],
)
def test_every_payload_has_a_summary(payload, summary):
    assert summary_of(change(1, **payload)) == summary


def test_a_preference_is_summed_up_by_its_value():
    preference = Preference(key="k")
    preference.value.struct_value.update({"a": 1})
    assert summary_of(change(1, preference=preference)) == '{"a":1}'


def test_no_kind_of_payload_is_forgotten():
    kinds = {one.name for one in pb.ChangeEvent.DESCRIPTOR.oneofs_by_name["payload"].fields}
    shown = {
        "memory", "pattern", "episode", "error_solution", "session", "learning_event",
        "decision", "pattern_match", "context_suggestion", "preference", "retrieval",
    }  # fmt: skip
    assert kinds == shown


def test_nothing_of_a_change_steers_the_terminal_and_no_line_is_too_wide(runner, fake):
    nasty = change(1, memory=Memory(content=NASTY + "漢" * 300))
    nasty.id = NASTY
    for arguments in ([], ["--json"]):
        fake.changes.scripts = [[message(nasty), OLD]]
        result = ran(runner, fake, "watch", *arguments, COLUMNS=50)
        assert result.stdout
        assert steering(result.output) == []
        if not arguments:
            assert max(map(cell_len, result.stdout.splitlines())) <= 50


def test_what_to_watch_goes_to_the_server(runner, fake):
    fake.changes.scripts = [[OLD]]
    ran(
        runner, fake, "watch", "--kind", "memory", "--kind", "error_solution", "--type", "updated",
        "--type", "pattern.learned", "--type", "updated", "--after", "c7", "-n", "team",
    )  # fmt: skip
    [request] = fake.changes.requests
    assert (request.namespace, request.after_cursor, request.from_start) == ("team", "c7", False)
    assert list(request.resource_kinds) == [
        resource_kind_pb2.RESOURCE_KIND_MEMORY,
        resource_kind_pb2.RESOURCE_KIND_ERROR_SOLUTION,
    ]
    assert list(request.types) == [pb.CHANGE_TYPE_UPDATED, pb.CHANGE_TYPE_PATTERN_LEARNED]


def test_json_is_a_change_a_line(runner, fake):
    sent = [change(1, memory=Memory(content=NASTY)), change(2, pb.CHANGE_TYPE_DELETED)]
    fake.changes.scripts = [[message(cursor="c0"), message(*sent), OLD]]
    lines = ran(runner, fake, "watch", "--json").stdout.splitlines()
    assert [ParseDict(json.loads(line), pb.ChangeEvent()) for line in lines] == sent


def test_a_lost_connection_goes_on_from_the_last_cursor(runner, fake):
    live = pb.ChangeEvent(type=pb.CHANGE_TYPE_PATTERN_MATCHED, id="live")
    fake.changes.scripts = [
        [message(cursor="c0"), GONE],
        [message(cursor="c0"), message(change(1), change(2)), GONE],
        [GONE],
        [message(live, cursor="c2"), message(cursor="c5"), GONE],
        [message(change(6)), OLD],
    ]
    result = ran(runner, fake, "watch", "--json", "--from-start")
    assert told(result.stdout) == ["m-1", "m-2", "live", "m-6"]
    resumed = [(one.after_cursor, one.from_start) for one in fake.changes.requests]
    assert resumed == [("", True), ("c0", False), ("c2", False), ("c2", False), ("c5", False)]
    assert result.stderr.count("connection lost (UNAVAILABLE); resuming from the last cursor") == 3
    assert result.stderr.count("reconnected") == 3
    assert result.stderr.count("watching your own namespace") == 1


def test_a_cursor_that_is_too_old_says_what_to_do(runner, fake):
    fake.changes.scripts = [[(OLD, "CURSOR_EXPIRED", "that cursor is too old")]]
    result = ran(runner, fake, "watch", "--after", "c1")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "OUT_OF_RANGE CURSOR_EXPIRED: that cursor is too old" in result.stderr
    assert "hint: --from-start prints all existing records" in result.stderr


@pytest.mark.parametrize(
    ("command", "metavar", "said"),
    [
        ("episodes", "TIME", "Started after this time"),
        ("replay", "N", "Start after event number N"),
        ("watch", "CURSOR", "Resume after this cursor"),
    ],
)
def test_the_help_says_what_after_takes(runner, command, metavar, said):
    result = runner.invoke(command_line, [command, "--help"], env={"COLUMNS": "200"})
    [line] = [
        line
        for line in result.stdout.splitlines()
        if "--after" in line and "Option" not in line and metavar in line
    ]
    assert said in line


def test_a_server_that_is_not_there_is_told_at_once(runner, fake):
    fake.changes.scripts = [[GONE]]
    result = ran(runner, fake, "watch")
    assert result.exit_code == 1
    assert "UNAVAILABLE\nhint: is the server running there?" in result.stderr


# --- the file of the cursor -------------------------------------------------------------------


def test_the_next_watch_goes_on_where_the_last_one_was(runner, fake, tmp_path):
    file = tmp_path / "seen.cursor"
    kept = []
    fake.changes.scripts = [
        [message(change(1)), message(change(2)), message(cursor="c5"), OLD],
        [lambda: kept.append(file.read_text()), message(change(6)), OLD],
    ]
    for _ in range(2):
        ran(runner, fake, "watch", "--json", "--from-start", "--cursor-file", str(file))
    resumed = [(one.after_cursor, one.from_start) for one in fake.changes.requests]
    assert resumed == [("", True), ("c5", False)]
    assert kept == ["c5\n"]
    assert file.read_text() == "c6\n"
    assert [one.name for one in tmp_path.iterdir()] == ["seen.cursor"]


def test_the_cursor_is_kept_only_when_the_change_was_printed(fake, tmp_path):
    file = tmp_path / "seen.cursor"
    fake.changes.scripts = [[message(cursor="c0"), message(change(1)), held_open(fake.release)]]
    command = [
        sys.executable, "-m", "lot_grpc", "watch", "--json", "-a", fake.address,
        "--cursor-file", str(file),
    ]  # fmt: skip
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    ) as running:
        assert running.stdout is not None
        assert told(running.stdout.readline()) == ["m-1"]
        end = time.monotonic() + 30
        while file.read_text() != "c1\n" and time.monotonic() < end:
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        rest = running.communicate(timeout=30)
    note = f"note: watching your own namespace on {fake.address}; Ctrl-C stops\n"
    assert (running.returncode, rest) == (130, ("", note))
    assert file.read_text() == "c1\n"


def test_a_change_that_could_not_be_printed_is_told_again(runner, fake, tmp_path, monkeypatch):
    file = tmp_path / "seen.cursor"
    from lot_grpc.cli import watch

    def breaking(_console, one):
        if one.id == "m-2":
            raise BrokenPipeError

    monkeypatch.setattr(watch, "print_change", breaking)
    fake.changes.scripts = [[message(cursor="c0"), message(change(1), change(2), change(3))]]
    ran(runner, fake, "watch", "--cursor-file", str(file))
    assert file.read_text() == "c1\n"


@pytest.mark.parametrize("held", [b"", b"  \n", b"two words\n", b"\xff\n"])
def test_a_file_without_a_cursor_exits_2(runner, fake, tmp_path, held):
    file = tmp_path / "seen.cursor"
    file.write_bytes(held)
    result = ran(runner, fake, "watch", "--cursor-file", str(file))
    assert (result.exit_code, fake.changes.requests) == (2, [])
    assert "--cursor-file" in result.stderr
    assert file.read_bytes() == held


def test_a_file_that_cannot_be_written_is_refused_before_it_watches(runner, fake, tmp_path):
    file = tmp_path / "nowhere" / "seen.cursor"
    result = ran(runner, fake, "watch", "--json", "--cursor-file", str(file), COLUMNS=400)
    assert (result.exit_code, fake.changes.requests) == (2, [])
    assert f"there is no folder {file.parent}" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--kind", "thing"], "memory, pattern"),
        (["--type", "changed"], "record.stored, record.updated"),
        (["--after", "c", "--from-start"], "--after cannot be combined"),
        (["--after", "c", "--cursor-file", "f"], "--after cannot be combined"),
    ],
)
def test_wrong_usage_exits_2(runner, fake, arguments, said):
    result = ran(runner, fake, "watch", *arguments, COLUMNS=200)
    assert (result.exit_code, fake.changes.requests) == (2, [])
    assert said in result.stderr
