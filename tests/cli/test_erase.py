"""`lot-grpc erase` against a server that answers as it is told."""

# ruff: noqa: N802 - methods are named like their RPCs

from __future__ import annotations

import json

import pytest

from lot_grpc.cli.app import app as command_line
from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1 import admin_service_pb2_grpc as pb_grpc
from lot_grpc.pb.lot.v1 import resource_kind_pb2 as kinds
from tests.cli.scripted import served


class Told(pb_grpc.AdminServiceServicer):
    def __init__(self) -> None:
        self.erased: list[pb.EraseSubjectRequest] = []

    def EraseSubject(self, request, context):
        self.erased.append(request)
        found = pb.SubjectRecord(resource_kind=kinds.RESOURCE_KIND_MEMORY, id="m-17")
        return pb.EraseSubjectResponse(
            deleted_counts={"MEMORY": 1}, deleted_count=1, records=[found], removed_text_count=2
        )


@pytest.fixture
def told():
    return Told()  # type: ignore[abstract]  # the rest is not called


@pytest.fixture
def address(told):
    with served(pb_grpc.add_AdminServiceServicer_to_server, told) as address:
        yield address


def test_it_says_what_went(runner, address, told):
    ran = runner.invoke(command_line, ["erase", "alice", "-n", "b", "--yes", "-a", address])
    assert ran.exit_code == 0, ran.output
    assert ran.stdout == (
        "1 memory deleted\nthe query and note of 2 outcomes of other records were removed\n"
    )
    assert told.erased == [pb.EraseSubjectRequest(namespace="b", subject="alice")]


def test_a_dry_run_lists_what_it_would_delete(runner, address, told):
    ran = runner.invoke(command_line, ["erase", "alice", "--dry-run", "-a", address])
    lines = [line.split() for line in ran.stdout.splitlines()]
    assert ["memory", "m-17"] in lines
    assert "1 memory would be deleted" in ran.stdout
    assert "would be removed" in ran.stdout
    assert [one.dry_run for one in told.erased] == [True]
    as_json = runner.invoke(command_line, ["erase", "alice", "--dry-run", "--json", "-a", address])
    assert json.loads(as_json.stdout)["records"][0]["id"] == "m-17"


def test_without_a_terminal_it_needs_to_be_told(runner, address, told):
    ran = runner.invoke(command_line, ["erase", "alice", "-a", address])
    assert ran.exit_code == 2
    assert "use --yes to delete" in ran.stderr
    assert told.erased == []
    assert runner.invoke(command_line, ["erase", "", "-a", address]).exit_code == 2
