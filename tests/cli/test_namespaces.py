"""`lot-grpc namespaces` and `lot-grpc clear` against a server that answers as it is told."""

# ruff: noqa: N802 - methods are named like their RPCs

from __future__ import annotations

import io
import json

import grpc
import pytest

from lot_grpc.cli.app import app as command_line
from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1 import admin_service_pb2_grpc as pb_grpc
from tests.cli.scripted import served

FOUND = [
    pb.NamespaceUsage(namespace="a", record_counts={"PATTERN": 1200, "MEMORY": 3}),
    pb.NamespaceUsage(namespace="b", record_counts={"EPISODE": 1}, clearing=True),
    pb.NamespaceUsage(namespace="c", record_counts={"NEWER": 7}),
]


class Told(pb_grpc.AdminServiceServicer):
    """Answers page by page, or fails with one code."""

    def __init__(self) -> None:
        self.found = list(FOUND)
        self.fails: grpc.StatusCode | None = None
        self.cleared: list[pb.ClearNamespaceRequest] = []

    def ListNamespaces(self, request, context):
        if self.fails:
            context.abort(self.fails, "what to do next")
        first = int(request.page_token or 0)
        token = str(first + 2) if first + 2 < len(self.found) else ""
        page = self.found[first : first + 2]
        return pb.ListNamespacesResponse(namespaces=page, next_page_token=token)

    def ClearNamespace(self, request, context):
        if self.fails:
            context.abort(self.fails, "what to do next")
        self.cleared.append(request)
        counts = {"PATTERN": 1200, "MEMORY": 3}
        return pb.ClearNamespaceResponse(deleted_counts=counts, deleted_count=1203)


@pytest.fixture
def told():
    return Told()  # type: ignore[abstract]  # the rest is not asked


@pytest.fixture
def address(told):
    with served(pb_grpc.add_AdminServiceServicer_to_server, told) as address:
        yield address


def test_every_page_is_shown(runner, address):
    ran = runner.invoke(command_line, ["namespaces", "-a", address])
    assert ran.exit_code == 0, ran.output
    shown = [line.split() for line in ran.output.splitlines() if line.strip()]
    assert ["a", "1,203", "3", "memories,", "1,200", "patterns"] in shown
    assert ["b", "is", "being", "cleared", "1", "1", "episode"] in shown
    assert ["c", "7", "7", "newers"] in shown


def test_each_is_a_line_of_json(runner, address):
    ran = runner.invoke(command_line, ["namespaces", "-a", address, "--json"])
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [one["namespace"] for one in lines] == ["a", "b", "c"]
    assert lines[1] == {"namespace": "b", "record_counts": {"EPISODE": "1"}, "clearing": True}


def test_an_empty_store_is_said(runner, address, told):
    told.found = []
    ran = runner.invoke(command_line, ["namespaces", "-a", address])
    assert (ran.exit_code, ran.stdout) == (0, "There are no namespaces.\n")
    assert runner.invoke(command_line, ["namespaces", "-a", address, "--json"]).stdout == ""


@pytest.mark.parametrize("command", [["namespaces"], ["clear", "a", "--yes"]])
def test_a_failure_is_told_in_the_servers_words(runner, address, told, command):
    told.fails = grpc.StatusCode.FAILED_PRECONDITION
    ran = runner.invoke(command_line, [*command, "-a", address])
    assert ran.exit_code == 1
    assert "FAILED_PRECONDITION: what to do next" in ran.stderr
    assert ran.stdout == ""


def test_clear_repeats_the_name_and_says_what_went(runner, address, told):
    ran = runner.invoke(command_line, ["clear", "a", "--yes", "-a", address])
    assert (ran.exit_code, ran.stdout) == (0, "3 memories, 1,200 patterns deleted\n")
    assert told.cleared == [pb.ClearNamespaceRequest(namespace="a", confirm_namespace="a")]


def test_clear_of_some_kinds_as_a_dry_run(runner, address, told):
    options = ["--kind", "memory", "--kind", "Preference", "--dry-run", "--json", "-a", address]
    ran = runner.invoke(command_line, ["clear", "a", *options])
    assert ran.exit_code == 0
    assert json.loads(ran.stdout)["deleted_count"] == "1203"
    (asked,) = told.cleared
    assert (list(asked.resource_kinds), asked.dry_run) == ([1, 7], True)


def test_without_a_terminal_nothing_is_cleared_unless_it_is_said(runner, address, told):
    ran = runner.invoke(command_line, ["clear", "a", "-a", address])
    assert ran.exit_code == 2
    assert "use --yes to delete" in ran.stderr
    assert told.cleared == []


@pytest.mark.parametrize(
    ("said", "exit_code", "cleared"), [("y", 0, [True, False]), ("n", 1, [True])]
)
def test_on_a_terminal_it_asks_first_and_says_how_much(
    runner, address, told, monkeypatch, said, exit_code, cleared
):
    monkeypatch.setattr("lot_grpc.cli.deletion.sys", Terminal(said))
    ran = runner.invoke(command_line, ["clear", "a", "-a", address], input=f"{said}\n")
    assert ran.exit_code == exit_code, ran.output
    assert "Permanently delete 3 memories, 1,200 patterns from a?" in ran.stderr
    assert [one.dry_run for one in told.cleared] == cleared


class Terminal:
    """``sys`` with a standard input that is a terminal."""

    def __init__(self, said: str) -> None:
        self.stdin = io.StringIO(said)
        self.stdin.isatty = lambda: True  # type: ignore[method-assign]


@pytest.mark.parametrize("arguments", [["clear", ""], ["clear", "a", "--kind", "x"], ["clear"]])
def test_wrong_usage_asks_nothing(runner, address, told, arguments):
    ran = runner.invoke(command_line, [*arguments, "-a", address, "--yes"])
    assert ran.exit_code == 2
    assert told.cleared == []
