"""`lot-grpc audit`: which records it shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lot_grpc.cli.app import app as command_line

RECORDS = [
    {
        "time": f"2026-03-01T12:00:0{n}.000000Z",
        "principal": f"key:{who}",
        "name": who,
        "method": f"MemoryService.{method}",
        "namespace": namespace,
        "ids": {"memory_id": [f"m{n}"]},
        "code": code,
        "reason": reason,
        "call_id": f"c{n}",
    }
    for n, (who, method, namespace, code, reason) in enumerate(
        [
            ("ann", "CreateMemory", "a", "OK", ""),
            ("bob", "CreateMemory", "b", "OK", ""),
            ("ann", "DeleteMemory", "a", "NOT_FOUND", "MEMORY_NOT_FOUND"),
            ("bob", "DeleteMemory", "a", "PERMISSION_DENIED", "NAMESPACE_DENIED"),
        ]
    )
]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The older half is in a rotated file."""
    file = tmp_path / "audit.log"
    for path, some in ((tmp_path / "audit.log.1", RECORDS[:2]), (file, RECORDS[2:])):
        path.write_text("".join(f"{json.dumps(one)}\n" for one in some) + '{"cut off')
    return file


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ([], [0, 1, 2, 3]),
        (["--principal", "ann"], [0, 2]),
        (["--principal", "key:bob"], [1, 3]),
        (["--method", "CreateMemory"], [0, 1]),
        (["--method", "MemoryService.DeleteMemory"], [2, 3]),
        (["--namespace", "a"], [0, 2, 3]),
        (["--id", "m1"], [1]),
        (["--id", "c3"], [3]),
        (["--outcome", "failed"], [2, 3]),
        (["--outcome", "ok"], [0, 1]),
        (["--outcome", "namespace_denied"], [3]),
        (["--after", "2026-03-01T12:00:01Z"], [2, 3]),
        (["--before", "2026-03-01T12:00:01Z"], [0]),
        (["--principal", "bob", "--outcome", "failed"], [3]),
        (["--limit", "2"], [2, 3]),
        (["--principal", "nobody"], []),
    ],
)
def test_it_filters(runner, log: Path, options: list[str], found: list[int]) -> None:
    ran = runner.invoke(command_line, ["audit", str(log), "--json", *options])
    assert ran.exit_code == 0, ran.output
    assert [json.loads(line) for line in ran.stdout.splitlines()] == [RECORDS[n] for n in found]


def test_people_get_a_table(runner, log: Path) -> None:
    ran = runner.invoke(command_line, ["audit", str(log), "--id", "m3"])
    assert "key:bob" in ran.stdout
    assert "MemoryService.DeleteMemory" in ran.stdout
    assert "PERMISSION_DENIED" in ran.stdout


def test_control_characters_never_reach_the_terminal(runner, tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(json.dumps({**RECORDS[0], "ids": {"subject": ["a\x1b[2Jb"]}}) + "\n")
    assert "\x1b" not in runner.invoke(command_line, ["audit", str(log)]).stdout
