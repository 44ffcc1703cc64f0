"""`lot-grpc replay` against a server that answers as it is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import grpc
import pytest
from google.protobuf.json_format import ParseDict
from rich.cells import cell_len

from lot_grpc.cli import calls
from lot_grpc.cli.times import local_time
from lot_grpc.pb.lot.v1 import episode_pb2 as pb
from lot_grpc.pb.lot.v1 import episode_service_pb2 as service_pb
from tests.cli.scripted import NASTY, held_open
from tests.cli.test_episodes import episode, event, hold, ran, steering


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(calls, "_FIRST_WAIT", 0.01)
    monkeypatch.setattr(calls, "_LONGEST_WAIT", 0.02)


def batch(*events: pb.EpisodeEvent) -> service_pb.ReplayEpisodeResponse:
    return service_pb.ReplayEpisodeResponse(events=events)


def replays(fake) -> list[service_pb.ReplayEpisodeRequest]:
    return [
        one for one in fake.episodes.requests if isinstance(one, service_pb.ReplayEpisodeRequest)
    ]


def told(stdout: str) -> list[int]:
    return [int(json.loads(line)["sequence"]) for line in stdout.splitlines()]


def test_a_block_for_each_event(runner, fake):
    hold(fake, episode(1, task="write it"))
    data = {"tool": "bash", "args": {"n": 1, "x": 1.5}, "text": "a\nb"}
    late = event(3661, "note")
    late.event_time.nanos = 250_000_000
    early = event(2, "plan")
    early.event_time.seconds -= 4
    fake.episodes.scripts = [[batch(event(1, "tool_call", **data)), batch(early, late)]]
    result = ran(runner, fake, "replay", "e-1", "--speed", "2.5", "--after", "7", "-n", "team")
    assert result.exit_code == 0, result
    title, first, shown, *others = result.stdout.splitlines()
    assert title == "e-1  succeeded  write it"
    assert first.split() == ["+0:01.000", "#1", "tool_call", "coder"]
    assert shown.strip() == '{"args":{"n":1,"x":1.5},"text":"a\\nb","tool":"bash"}'
    assert [line.split()[:3] for line in others] == [
        ["-0:02.000", "#2", "plan"],
        ["+1:01:01.250", "#3661", "note"],
    ]
    [request] = replays(fake)
    assert (request.namespace, request.episode_id, request.after_sequence) == ("team", "e-1", 7)
    assert (request.speed, request.follow) == (2.5, False)


def test_a_time_that_is_not_known_is_not_made_up(runner, fake):
    timeless, timed = event(1, "note"), event(2, "note")
    timeless.ClearField("event_time")
    with_start, without = episode(1), episode(1)
    without.ClearField("start_time")
    for held, shown in ((with_start, "+0:02.000"), (without, local_time(timed.event_time))):
        hold(fake, held)
        fake.episodes.scripts = [[batch(timeless, timed)]]
        result = ran(runner, fake, "replay", "e-1")
        assert [line.strip() for line in result.stdout.splitlines()[1:]] == [
            "#1  note  coder",
            f"{shown}  #2  note  coder",
        ]


def test_data_is_cut_to_the_width_or_shown_whole(runner, fake):
    hold(fake, episode(1))
    long = event(1, text="漢" * 500, deep={"list": [1, 2]})
    fake.episodes.scripts = [[batch(long)], [batch(long)]]
    cut = ran(runner, fake, "replay", "e-1", COLUMNS=40).stdout
    assert max(cell_len(line) for line in cut.splitlines()) <= 40
    assert cut.splitlines()[-1].endswith("…")
    whole = ran(runner, fake, "replay", "e-1", "--full", COLUMNS=40).stdout
    assert whole.count("漢") == 500
    assert max(cell_len(line) for line in whole.splitlines()) <= 40


def test_nothing_of_an_event_steers_the_terminal(runner, fake):
    nasty = event(1, NASTY, text=NASTY)
    nasty.data.update({NASTY: {NASTY: [NASTY]}})
    nasty.agent_role = NASTY
    hold(fake, episode(1, task=NASTY))
    for arguments in ([], ["--full"], ["--json"]):
        fake.episodes.scripts = [[batch(nasty)]]
        result = ran(runner, fake, "replay", "e-1", *arguments, COLUMNS=400)
        assert result.exit_code == 0, result
        assert steering(result.output) == []


@pytest.mark.parametrize(
    ("event_type", "data", "style"),
    [
        ("error", {}, "1;31"),
        ("step_failed", {}, "1;31"),
        ("ValueError", {}, "1;31"),
        ("tool_call", {"error": "it broke"}, "1;31"),
        ("tool_call", {"error": {"type": "T"}}, "1;31"),
        ("tool_call", {"error": ""}, "1;36"),
        ("test.passed", {}, "1;32"),
        ("abandoned", {}, "1"),
        ("plan", {}, "1;35"),
        ("message", {}, "1;34"),
    ],
)
def test_the_colour_tells_the_kind(runner, fake, event_type, data, style):
    hold(fake, episode(1))
    colours = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
    fake.episodes.scripts = [[batch(event(1, event_type, **data))]] * 2
    assert f"\x1b[{style}m{event_type}\x1b" in ran(runner, fake, "replay", "e-1", **colours).stdout
    plain = ran(runner, fake, "replay", "e-1", NO_COLOR="1", **colours).stdout
    assert f"\x1b[1m{event_type}\x1b" in plain


def test_json_is_an_event_a_line_and_asks_nothing_else(runner, fake):
    sent = [event(1, NASTY, text=NASTY), event(2)]
    fake.episodes.scripts = [[batch(sent[0]), batch(), batch(sent[1])]]
    result = ran(runner, fake, "replay", "e-1", "--json")
    got = [ParseDict(json.loads(line), pb.EpisodeEvent()) for line in result.stdout.splitlines()]
    assert got == sent
    assert len(fake.episodes.requests) == 1


@pytest.mark.parametrize("end", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED])
def test_a_lost_connection_goes_on_behind_the_last_event(runner, fake, end):
    gone = grpc.StatusCode.UNAVAILABLE
    fake.episodes.scripts = [
        [batch(event(1), event(2)), end],
        [gone],
        [batch(event(3)), end],
        [batch(event(4))],
    ]
    result = ran(runner, fake, "replay", "e-1", "--json", "--follow")
    assert result.exit_code == 0, result
    assert told(result.stdout) == [1, 2, 3, 4]
    assert [one.after_sequence for one in replays(fake)] == [0, 2, 2, 3]
    notes = [line.removeprefix(f"note: {fake.address}: ") for line in result.stderr.splitlines()]
    said = "UNAVAILABLE" if end is gone else "RESOURCE_EXHAUSTED: what to do next\\x1b[2J"
    assert notes == [
        f"connection lost ({said}); resuming after event 2",
        "reconnected",
        f"connection lost ({said}); resuming after event 3",
        "reconnected",
    ]


def test_a_server_that_stays_away_is_given_up(runner, fake):
    gone = grpc.StatusCode.UNAVAILABLE
    fake.episodes.scripts = [[batch(event(1)), gone], *[[gone]] * 1000]
    result = ran(runner, fake, "replay", "e-1", "--json", "--timeout", "0.05")
    assert (result.exit_code, told(result.stdout)) == (1, [1])
    assert f"error: {fake.address}: UNAVAILABLE\nhint: is the server running" in result.stderr


@pytest.mark.parametrize(
    ("begun", "end"),
    [
        ([], grpc.StatusCode.UNAVAILABLE),
        ([batch(event(1))], grpc.StatusCode.NOT_FOUND),  # deleted meanwhile
    ],
)
def test_what_trying_again_does_not_mend_is_told(runner, fake, begun, end):
    fake.episodes.scripts = [[*begun, end]]
    result = ran(runner, fake, "replay", "e-1", "--json")
    assert (result.exit_code, len(replays(fake))) == (1, 1)
    assert result.stderr.startswith(f"error: {fake.address}: {end.name}")


def test_a_followed_episode_is_told_with_its_end(runner, fake):
    hold(fake, episode(1, pb.EPISODE_STATUS_RUNNING))
    fake.episodes.scripts = [[batch(event(1)), lambda: hold(fake, episode(1))]]
    shown = ran(runner, fake, "replay", "e-1", "--follow").stdout.splitlines()
    assert (shown[0], shown[-1]) == ("e-1  running  t", "e-1  succeeded  t")


def test_an_episode_that_is_not_there_exits_1(runner, fake):
    result = ran(runner, fake, "replay", "e-9")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "NOT_FOUND: no episode e-9\\x1b[2J\n" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [[], [""], ["e-1", "--speed", "-1"], ["e-1", "--speed", "x"], ["e-1", "--after", "-1"]],
)
def test_wrong_usage_exits_2(runner, fake, arguments):
    result = ran(runner, fake, "replay", *arguments)
    assert (result.exit_code, fake.episodes.requests) == (2, [])


def test_ctrl_c_ends_it_quietly(fake):
    fake.episodes.scripts = [[batch(event(1)), held_open(fake.release)]]
    command = [sys.executable, "-m", "lot_grpc", "replay", "e-1", "--json", "-a", fake.address]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    ) as running:
        assert running.stdout is not None
        # It is there at once, though the stream goes on.
        assert told(running.stdout.readline()) == [1]
        running.send_signal(signal.SIGINT)
        rest = running.communicate(timeout=30)
    assert (running.returncode, rest) == (130, ("", ""))


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_reader_that_has_enough_ends_it_quietly(fake, options):
    hold(fake, episode(1))
    # More than a pipe holds.
    fake.episodes.scripts = [[batch(event(n, text="x" * 1000)) for n in range(1, 500)]]
    command = [sys.executable, "-m", "lot_grpc", "replay", "e-1", *options, "-a", fake.address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        said = running.stderr.read()
    assert (running.returncode, said) == (141, b"")


@pytest.mark.parametrize(("settings", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_what_goes_to_stderr_has_colours_only_where_they_are_wanted(fake, settings, coloured):
    ours, theirs = os.openpty()
    kept = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    command = [sys.executable, "-m", "lot_grpc", "replay", "e-9", "--json", "-a", fake.address]
    fake.episodes.scripts = [[grpc.StatusCode.NOT_FOUND]]
    try:
        ran = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=theirs, env=kept | settings, check=False
        )
        said = os.read(ours, 65536)
    finally:
        os.close(ours)
        os.close(theirs)
    assert (ran.returncode, ran.stdout) == (1, b"")
    assert (b"\x1b[31m" in said, b"NOT_FOUND" in said) == (coloured, True)
