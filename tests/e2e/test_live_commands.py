"""`lot-grpc episodes`, `replay` and `watch`, and the page of all commands, on a real server."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import grpc
import pytest
from google.protobuf.json_format import ParseDict

from lot_grpc.pb.lot.v1 import episode_pb2 as pb
from lot_grpc.pb.lot.v1 import (
    episode_service_pb2,
    episode_service_pb2_grpc,
    memory_pb2,
    memory_service_pb2,
    memory_service_pb2_grpc,
    pattern_pb2,
    pattern_service_pb2,
    pattern_service_pb2_grpc,
)
from tests.e2e.forked import Forked
from tests.e2e.process import PATIENCE, ROOT, Served, command, environment, run, wait_for

PAGE = ROOT / "docs" / "commands.md"
NASTY = "wipe\x1b[2J it"


@dataclass
class Running:
    """A command that goes on, and what it has said so far."""

    process: Forked
    out: list[str] = field(default_factory=list)
    err: list[str] = field(default_factory=list)
    readers: list[threading.Thread] = field(default_factory=list)

    def has_said(self, *parts: str) -> None:
        """Wait until stderr has all of them."""
        wait_for(lambda: all(part in "".join(self.err) for part in parts))

    def has_printed(self, count: int) -> list[dict[str, Any]]:
        """Wait for so many lines; each is an object."""
        wait_for(lambda: len(self.out) >= count)
        return [json.loads(line) for line in self.out]

    def interrupted(self) -> int:
        """Ctrl-C, and the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.ended()

    def ended(self) -> int:
        """Wait for its end, and for all that it said; the exit code."""
        code = self.process.wait(60)
        for reader in self.readers:
            reader.join(30)
        return code


@pytest.fixture
def start(data: Path, tmp_path: Path) -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def begin(address: str, *arguments: str, folder: Path = tmp_path) -> Running:
        settings = {"LOT_ADDRESS": address, "LOT_AUTH_KEYS": str(folder / "keys.json")}
        process = Forked(arguments, env=environment(data, settings), cwd=folder)
        running = Running(process)
        for pipe, lines in ((process.stdout, running.out), (process.stderr, running.err)):
            reader = threading.Thread(target=_read, args=(pipe, lines), daemon=True)
            reader.start()
            running.readers.append(reader)
        started.append(running)
        return running

    yield begin
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.ended()


def _read(pipe: IO[str], lines: list[str]) -> None:
    with pipe:
        for line in pipe:
            lines.append(line)  # noqa: PERF402 - one by one, as they come


class Calls:
    """What the tests do to the server."""

    def __init__(self, address: str, namespace: str = "") -> None:
        self.namespace = namespace
        self.channel = grpc.insecure_channel(address)
        self.episodes = episode_service_pb2_grpc.EpisodeServiceStub(self.channel)
        self.memories = memory_service_pb2_grpc.MemoryServiceStub(self.channel)
        self.patterns = pattern_service_pb2_grpc.PatternServiceStub(self.channel)

    def start(self, episode_id: str, **fields) -> None:
        request = episode_service_pb2.StartEpisodeRequest(
            namespace=self.namespace,
            episode_id=episode_id,
            episode=pb.Episode(**{"task": NASTY, "category": "backend", **fields}),
        )
        self.episodes.StartEpisode(request, timeout=PATIENCE)

    def event(self, episode_id: str, event_type: str, **data) -> None:
        event = pb.EpisodeEvent(event_type=event_type)
        event.data.update(data)
        request = episode_service_pb2.RecordEventRequest(
            namespace=self.namespace, episode_id=episode_id, event=event
        )
        self.episodes.RecordEvent(request, timeout=PATIENCE)

    def end(self, episode_id: str, status=pb.EPISODE_STATUS_SUCCEEDED, **fields) -> None:
        request = episode_service_pb2.EndEpisodeRequest(
            namespace=self.namespace, episode_id=episode_id, status=status, **fields
        )
        self.episodes.EndEpisode(request, timeout=PATIENCE)

    def events(self, episode_id: str) -> list[pb.EpisodeEvent]:
        request = episode_service_pb2.ListEpisodeEventsRequest(
            namespace=self.namespace, episode_id=episode_id
        )
        return list(self.episodes.ListEpisodeEvents(request, timeout=PATIENCE).events)

    def remember(self, memory_id: str, content: str) -> None:
        request = memory_service_pb2.CreateMemoryRequest(
            namespace=self.namespace,
            memory_id=memory_id,
            memory=memory_pb2.Memory(kind=memory_pb2.MEMORY_KIND_FACT, content=content),
        )
        self.memories.CreateMemory(request, timeout=PATIENCE)

    def forget(self, memory_id: str) -> None:
        request = memory_service_pb2.DeleteMemoryRequest(
            namespace=self.namespace, memory_id=memory_id
        )
        self.memories.DeleteMemory(request, timeout=PATIENCE)


def steering(text: str) -> list[str]:
    return [one for one in text if not one.isprintable() and one != "\n"]


# --- episodes ---------------------------------------------------------------------------------


def test_episodes_are_listed_narrowed_and_shown(running, data):
    calls = Calls(running.address, "for-the-list")
    error = pb.EpisodeError(type="TimeoutError", message="too slow")
    for name in ("good", "bad", "on"):
        calls.start(name, task_id=f"t-{name}", task_type=f"k-{name}")
    for n in range(12):
        calls.event("bad", "tool_call", tool="bash", n=n)
    calls.end("good")
    calls.end("bad", pb.EPISODE_STATUS_FAILED, error=error)

    def ids(*options: str) -> list[str]:
        ran = run(data, *asked, *options, "--json")
        assert (ran.code, ran.stderr) == (0, "")
        return [json.loads(line)["episode_id"] for line in ran.stdout.splitlines()]

    asked = ("episodes", "-a", running.address, "-n", calls.namespace)
    assert ids() == ["on", "bad", "good"]
    assert ids("--limit", "2") == ["on", "bad"]
    assert ids("--status", "failed", "--status", "running") == ["on", "bad"]
    assert ids("--task-id", "t-good") == ids("--task-type", "k-good") == ["good"]
    assert ids("--category", "backend", "--after", "1h") == ["on", "bad", "good"]
    assert ids("--category", "other") == ids("--before", "1h") == []
    table = run(data, *asked)
    assert (table.code, steering(table.stdout)) == (0, [])
    assert re.search(r"bad +failed +wipe\\x1b\[2J it +12 ", table.stdout)
    one = run(data, *asked[:1], "bad", *asked[1:], "--limit", "2")
    assert re.search(r"error +TimeoutError: too slow", one.stdout)
    assert re.findall(r"#(\d+)  tool_call", one.stdout) == ["11", "12"]
    missing = run(data, *asked[:1], "nobody", *asked[1:])
    assert (missing.code, missing.stdout) == (1, "")
    assert "NOT_FOUND" in missing.stderr


def test_failures_are_told_in_groups(running, data):
    calls = Calls(running.address, "for-the-failures")
    for n in range(4):
        calls.start(f"e-{n}")
        calls.event(f"e-{n}", "tool_call", tool="bash")
        error = pb.EpisodeError(type="TimeoutError", message=f"no answer in {n} s")
        calls.end(f"e-{n}", pb.EPISODE_STATUS_FAILED, error=error, tools_used=["bash"])
    asked = ("episodes", "--failures", "-a", running.address, "-n", calls.namespace)
    [line] = run(data, *asked, "--json").stdout.splitlines()
    answer = ParseDict(json.loads(line), episode_service_pb2.AnalyzeFailuresResponse())
    assert (answer.failed_count, [group.count for group in answer.groups]) == (4, [4])
    shown = run(data, *asked)
    assert shown.code == 0, shown
    assert shown.stdout.startswith("4 of 4 failures (100.0%)")
    assert re.search(r"tools +bash", shown.stdout)
    assert "e-3" in shown.stdout
    none = run(data, *asked, "--category", "other")
    assert (none.code, none.stdout) == (0, "No episode has failed.\n")


# --- replay -----------------------------------------------------------------------------------


def test_a_replay_is_what_was_recorded(running, data):
    calls = Calls(running.address, "for-the-replay")
    calls.start("e-1")
    for n in range(1, 31):
        calls.event("e-1", "error" if n == 3 else "note", text=NASTY, n=n)
    asked = ("replay", "e-1", "-a", running.address, "-n", calls.namespace)
    ran = run(data, *asked, "--json")
    assert (ran.code, ran.stderr) == (0, "")
    told = [ParseDict(json.loads(line), pb.EpisodeEvent()) for line in ran.stdout.splitlines()]
    assert told == calls.events("e-1")
    shown = run(data, *asked, "--after", "28", "--speed", "1000")
    assert re.findall(r"#(\d+)  note", shown.stdout) == ["29", "30"]
    assert steering(shown.stdout) == []
    assert "wipe\\\\u001b[2J it" in shown.stdout or "wipe\\u001b[2J it" in shown.stdout
    missing = run(data, "replay", "nobody", "-a", running.address, "--json")
    assert (missing.code, missing.stdout, "NOT_FOUND" in missing.stderr) == (1, "", True)


def test_a_replay_follows_an_episode_over_a_restart_to_its_end(serve, data, start):
    server = serve(data)
    calls = Calls(server.address)
    calls.start("e-1")
    calls.event("e-1", "note", n=1)
    follower = start(server.address, "replay", "e-1", "--follow", "--json")
    follower.has_printed(1)
    calls.event("e-1", "note", n=2)
    follower.has_printed(2)
    assert server.stop() == 0
    follower.has_said("resuming after event 2")
    again = serve(data, {"LOT_ADDRESS": server.address})
    calls = Calls(again.address)
    calls.event("e-1", "note", n=3)
    assert [event["sequence"] for event in follower.has_printed(3)] == ["1", "2", "3"]
    calls.end("e-1")
    assert follower.ended() == 0
    follower.has_said("reconnected")


# --- watch ------------------------------------------------------------------------------------


def test_a_watch_goes_on_over_restarts_of_both(serve, data, start, tmp_path):
    server = serve(data)
    asked = ("watch", "--json", "--kind", "memory", "--cursor-file", "seen.cursor")
    first = start(server.address, *asked)
    first.has_said("watching your own namespace")
    Calls(server.address).remember("m-1", NASTY)
    [told] = first.has_printed(1)
    assert (told["type"], told["id"]) == ("CHANGE_TYPE_STORED", "m-1")
    assert told["memory"]["content"] == NASTY
    assert server.stop() == 0
    first.has_said("resuming from the last cursor")
    again = serve(data, {"LOT_ADDRESS": server.address})
    first.has_said("reconnected")
    Calls(again.address).remember("m-2", "b")
    assert [one["id"] for one in first.has_printed(2)] == ["m-1", "m-2"]
    assert first.interrupted() == 130
    calls = Calls(again.address)
    calls.remember("m-3", "c")
    calls.forget("m-1")
    second = start(server.address, *asked)
    missed = second.has_printed(2)
    assert {(one["type"], one["id"]) for one in missed} >= {
        ("CHANGE_TYPE_STORED", "m-3"),
        ("CHANGE_TYPE_DELETED", "m-1"),
    }
    assert second.interrupted() == 130
    assert (tmp_path / "seen.cursor").read_text().strip()
    assert "".join(first.err).count("\n") == 3


def test_a_watch_from_the_start_tells_what_there_is(running, start):
    calls = Calls(running.address, "for-the-watch")
    calls.remember("m-1", NASTY)
    calls.start("e-1")
    watch = start(running.address, "watch", "--from-start", "-n", calls.namespace)
    wait_for(lambda: len(watch.out) == 2)
    calls.end("e-1")
    wait_for(lambda: len(watch.out) >= 3)
    assert watch.interrupted() == 130
    shown = sorted(line.split("  ", 1)[1] for line in watch.out)
    assert shown[:2] == [
        "record.stored  episode  e-1  running: wipe\\x1b[2J it\n",
        "record.stored  memory  m-1  wipe\\x1b[2J it\n",
    ]
    assert set(shown[2:]) == {"record.updated  episode  e-1  succeeded: wipe\\x1b[2J it\n"}


# --- the page ---------------------------------------------------------------------------------


def blocks_of_the_page() -> list[list[str]]:
    """The lines of each block, without their comments."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [
        [line.partition("  #")[0].strip() for line in block.splitlines() if line.strip()]
        for block in blocks
    ]


@pytest.fixture(scope="session")  # a process that runs tests may come to this module twice
def recorded(running: Served) -> Served:
    calls = Calls(running.address)
    calls.start("e-17")
    for n in range(5):
        calls.event("e-17", "note", n=n)
    calls.end("e-17")
    pattern = pattern_pb2.Pattern(task="retry a request", language="python")
    saved = pattern_service_pb2.SavePatternRequest(pattern_id="p-17", pattern=pattern)
    calls.patterns.SavePattern(saved, timeout=PATIENCE)
    saved.pattern_id, saved.pattern.task = "p-3", "retry an upload"
    calls.patterns.SavePattern(saved, timeout=PATIENCE)
    for memory_id in ("m-17", "m-18"):
        created = memory_service_pb2.CreateMemoryRequest(
            memory_id=memory_id, memory=memory_pb2.Memory(content=f"a note, {memory_id}")
        )
        calls.memories.CreateMemory(created, timeout=PATIENCE)
    return running


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder with the product's command, and a compiler that fails."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, line in {
        "lot-grpc": f'exec {shlex.join(command())} "$@"',
        "cargo": "echo 'error[E0425]: cannot find value `x` in this scope' >&2; exit 101",
    }.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.parametrize("block", blocks_of_the_page(), ids=lambda block: block[0].split()[1])
def test_the_commands_of_the_page_run_as_they_stand(block, recorded, start, tools, data):
    """In one folder, where later lines find the files of earlier ones."""
    for line in block:
        _runs(line, recorded, start, tools, data)


def _runs(line: str, recorded: Served, start: Callable[..., Running], tools: Path, data: Path):
    if "|" in line:
        path = f"{tools}:{os.environ['PATH']}"
        settings = {"LOT_ADDRESS": recorded.address, "PYTHONPATH": str(ROOT), "PATH": path}
        piped = subprocess.run(
            ["/bin/sh", "-c", line],
            env=environment(data, settings),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert piped.returncode == 0, piped.stderr
        return
    name, *arguments = shlex.split(line)
    assert name == "lot-grpc"
    if arguments[0] == "audit" and not (log := data.parent / "audit.log").exists():
        log.symlink_to(recorded.log.parent / "audit.log")
    ran = start(recorded.address, *arguments)
    if arguments[0] == "watch":
        ran.has_said("watching ")
        assert ran.interrupted() == 130
    elif arguments == ["clear", "team-a"]:  # nobody can be asked here
        assert ran.ended() == 2
        assert "--yes" in "".join(ran.err)
    else:
        assert ran.ended() == 0, ran.err


def test_the_page_shows_every_command_that_asks_what_there_is():
    lines = [line for block in blocks_of_the_page() for line in block]
    shown = {line.partition("lot-grpc ")[2].split()[0] for line in lines}
    patterns = {"recall", "embed", "patterns", "stats"}
    moving = {"export", "import", "namespaces", "clear", "review", "scan", "keys", "audit", "erase"}
    assert shown == {"episodes", "replay", "watch", "errors", "context"} | patterns | moving
