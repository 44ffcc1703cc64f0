"""The audit log of a real server, and what the command shows of it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from lot_grpc.audit_log import records
from tests.e2e.process import PATIENCE, command, environment, run
from tests.leaks import audit_files, leaks


def test_what_was_acknowledged_is_in_the_log_of_a_killed_server(
    serve, data: Path, tmp_path: Path
) -> None:
    log = tmp_path / "audit.log"
    served = serve(data, {"LOT_AUDIT": str(log), "LOT_AUDIT_MAX_BYTES": "65536"})
    given = ("--address", served.address)
    for n in range(3):
        done = run(data, "erase", f"nobody-{n}", "--yes", *given)
        assert done.code == 0, done.stderr
    served.kill()
    assert [one["ids"]["subject"] for one in records(log)] == [[f"nobody-{n}"] for n in range(3)]
    assert log.stat().st_mode & 0o777 == 0o600
    shown = run(data, "audit", str(log), "--id", "nobody-1", "--json")
    [record] = map(json.loads, shown.stdout.splitlines())
    assert record["method"] == "AdminService.EraseSubject"
    table = run(data, "audit", "--outcome", "ok", settings={"LOT_AUDIT": str(log)})
    assert table.code == 0, table.stderr
    assert table.stdout.count("EraseSubject") == 3
    assert leaks([served.log, *audit_files(log)], ["sk-secret"]) == []


def test_the_log_can_fail_and_come_back_while_calls_go_on(
    serve, data: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "audit"
    folder.mkdir()
    log = folder / "audit.log"
    served = serve(data, {"LOT_AUDIT": str(log)})
    given = ("--address", served.address)
    log.unlink()
    folder.rmdir()
    assert run(data, "erase", "a", "--yes", *given).code == 0
    folder.mkdir()
    assert run(data, "erase", "b", "--yes", *given).code == 0
    lost, after = records(log)
    assert (lost["event"], lost["records"]) == ("lost", 1)
    assert after["ids"] == {"subject": ["b"]}
    assert "the audit log cannot be written; calls continue" in served.logged()
    assert served.stop() == 0


def test_a_log_that_cannot_be_opened_refuses_the_start(data: Path, tmp_path: Path) -> None:
    refused = run(data, "serve", settings={"LOT_AUDIT": str(tmp_path / "none" / "audit.log")})
    assert refused.code == 1
    assert "cannot be written" in refused.errors
    assert not (data / "memories").exists()


def test_a_closed_standard_output_refuses_the_start(data: Path) -> None:
    served = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command("serve")],
        env=environment(data, {"LOT_AUDIT": "stdout"}),
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert served.returncode == 1
    assert "standard output: it is closed" in served.stderr


def test_the_command_says_what_it_needs(data: Path, tmp_path: Path) -> None:
    off = run(data, "audit")
    assert off.code == 2
    assert "LOT_AUDIT is off" in off.errors
    missing = run(data, "audit", str(tmp_path / "none.log"))
    assert missing.code == 2
    assert "there is no audit log" in missing.errors


def test_commands_write_to_the_log_of_a_running_server(serve, data: Path, tmp_path: Path) -> None:
    settings = {"LOT_AUDIT": str(tmp_path / "a.log"), "LOT_AUTH_KEYS": str(tmp_path / "keys.json")}

    def keys(*arguments: str) -> str:
        ran = run(data, "keys", *arguments, settings=settings)
        assert ran.code == 0, ran.stderr
        return ran.stdout.strip()

    key = keys("create", "ann", "-n", "*", "-r", "admin")
    served = serve(data, settings)
    given = ("--address", served.address)
    erased = run(data, "erase", "a", "--yes", *given, settings={"LOT_CLIENT_API_KEY": key})
    assert erased.code == 0, erased.stderr
    keys("revoke", "ann")
    assert served.stop() == 0
    shown = run(data, "audit", "--json", "--outcome", "ok", settings=settings)
    assert [json.loads(line)["method"] for line in shown.stdout.splitlines()] == [
        "keys create",
        "AdminService.EraseSubject",
        "keys revoke",
    ]
    assert leaks([served.log, *audit_files(tmp_path / "a.log")], [key.rpartition("_")[2]]) == []
