"""What every command has in common: its options, its exit codes, and what it does to a pipe."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest
import typer.main
from typer.testing import CliRunner

from lot_grpc.cli.app import app as command_line
from lot_grpc.domain.counting import counted
from lot_grpc.pb.lot.v1 import admin_service_pb2_grpc as pb_grpc
from lot_grpc.pb.lot.v1 import transfer_pb2
from tests.cli.patterns import pattern
from tests.cli.scripted import served
from tests.server.service import serving

ARGUMENTS = {
    "replay": ["e"], "recall": ["x"], "embed": ["x"], "errors": ["x"], "context": ["x"],
    "clear": ["n"],    "export": ["x.lot"], "import": ["x.lot"], "reindex": ["m"],
}  # fmt: skip
COMMANDS = typer.main.get_command(command_line).commands  # type: ignore[attr-defined]
CLIENTS = sorted(
    name for name, one in COMMANDS.items() if any(p.name == "address" for p in one.params)
)


def test_help_lists_the_commands_in_groups(runner):
    told = runner.invoke(command_line, ["--help"]).stdout
    titles = [line.strip("╭╮─ ") for line in told.splitlines() if line.startswith("╭")]
    assert titles == [
        "Options",
        "Run a server",
        "Query and report",
        "Episodes and changes",
        "Manage data",
        "Settings and evaluation",
    ]
    assert len(CLIENTS) >= 16


@pytest.mark.parametrize("command", CLIENTS)
@pytest.mark.parametrize("address", ["localhost", "[::1]", "::1:50051", "host:99999", "host:0"])
def test_an_address_is_checked_as_that_of_the_settings_is(runner, command, address):
    given = [command, *ARGUMENTS.get(command, []), "--address", address]
    result = runner.invoke(command_line, given)
    assert result.exit_code == 2
    assert "'--address'" in result.stderr


@pytest.mark.parametrize(
    "given",
    [
        ["export", "{}/x.lot"],
        ["watch", "--cursor-file", "{}/x"],
        ["eval", "--data", ".", "--save", "{}/x.json"],
        ["eval", "--data", ".", "--picture", "{}/x.svg"],
    ],
    ids=lambda given: given[0],
)
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_done(runner, tmp_path, given):
    nowhere = tmp_path / "nowhere"
    wide = {"COLUMNS": "400"}
    result = runner.invoke(command_line, [part.format(nowhere) for part in given], env=wide)
    assert result.exit_code == 2
    assert "there is no folder" in result.stderr
    taken = runner.invoke(
        command_line,
        [str(tmp_path) if part.startswith("{}") else part for part in given],
        env=wide,
    )
    assert (taken.exit_code, "is a folder" in taken.stderr) == (2, True)


@pytest.mark.parametrize(
    "command",
    [
        ["patterns"],
        ["patterns", "--json"],
        ["recall", "x"],
        ["settings"],
        ["version"],
        ["--version"],
        ["--help"],
        ["recall", "--help"],
        [],
    ],
    ids=" ".join,
)
def test_output_that_nobody_reads_ends_a_command_quietly(fake, command):
    fake.patterns.patterns = [pattern(n) for n in range(3)]
    if command[:1] == ["patterns"] or command == ["recall", "x"]:
        command = [*command, "--address", fake.address]
    with subprocess.Popen(
        [sys.executable, "-m", "lot_grpc", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        running.stdout.close()  # as `| head` does when it has enough
        assert running.stderr is not None
        assert running.stderr.read() == ""
    assert running.returncode == 141


class Exporter(pb_grpc.AdminServiceServicer):
    """Exports more than a pipe holds."""

    def Export(self, request, context):  # noqa: N802
        if request.dry_run:
            yield transfer_pb2.ExportResponse(summary=transfer_pb2.ExportSummary())
            return
        yield transfer_pb2.ExportResponse(header=transfer_pb2.ExportHeader(format_version=1))
        for _ in range(300):
            yield transfer_pb2.ExportResponse(cursor=os.urandom(1000).hex())


def test_an_export_that_nobody_reads_ends_quietly():
    with served(pb_grpc.add_AdminServiceServicer_to_server, Exporter()) as address:  # type: ignore[abstract]
        command = [sys.executable, "-m", "lot_grpc", "export", "-", "-a", address]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            assert running.stdout is not None
            assert running.stderr is not None
            assert running.stdout.read(8) == b"lot-grpc"
            running.stdout.close()
            printed = running.stderr.read()
    assert (running.returncode, printed) == (141, b"")


async def test_each_violation_is_said_once_with_its_whole_field():
    async with serving() as lot:
        given = ["recall", "x", "--category=", "--language=", "-a", lot.address]
        refused = await asyncio.to_thread(CliRunner().invoke, command_line, given)
        for field in ("filter.categories[0]: ", "filter.languages[0]: "):
            assert refused.stderr.count(field) == 1
        assert refused.exit_code == 1


@pytest.mark.parametrize(
    ("count", "word", "said"),
    [
        (0, "pattern", "0 patterns"),
        (1, "pattern", "1 pattern"),
        (2, "memory", "2 memories"),
        (1, "query", "1 query"),
        (1500, "query", "1,500 queries"),
        (2, "day", "2 days"),
    ],
)
def test_a_count_has_its_word_in_the_right_number(count, word, said):
    assert counted(count, word) == said
