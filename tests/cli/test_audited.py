"""The audit records of commands that need no server."""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from lot_grpc import app, offline_reindex
from lot_grpc.audit_log import records
from lot_grpc.auth.key_file import change_keys, read_keys
from lot_grpc.cli.app import app as command_line
from lot_grpc.domain.api_key import KEY
from lot_grpc.domain.errors import StoreLockedError
from lot_grpc.reports import CompactReport

USER = pwd.getpwuid(os.getuid()).pw_name
CREATE = ("keys", "create", "planner", "-n", "team-a", "--role", "writer")


@pytest.fixture
def log(tmp_path: Path, key_file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SUDO_USER", raising=False)
    found = tmp_path / "audit.log"
    monkeypatch.setenv("LOT_AUDIT", str(found))
    return found


def ends(log: Path) -> list[dict[str, Any]]:
    """The second records of the commands; each has a first one just before it."""
    found = list(records(log))
    for first, second in zip(found[::2], found[1::2], strict=True):
        assert (first["event"], second["event"]) == ("open", "end")
        assert first["call_id"] == second["call_id"]
        assert (first["method"], first["principal"]) == (second["method"], second["principal"])
    return found[1::2]


def test_changes_of_keys_are_recorded_without_the_keys(runner, log: Path, key_file: Path):
    commands = (
        CREATE,
        ("keys", "list"),
        ("keys", "rotate", "planner"),
        ("keys", "revoke", "planner"),
    )
    made = [runner.invoke(command_line, command) for command in commands]
    assert [one.exit_code for one in made] == [0] * 4
    found = ends(log)
    assert [one["method"] for one in found] == ["keys create", "keys rotate", "keys revoke"]
    [key] = read_keys(key_file)
    for one in found:
        assert (one["principal"], one["name"], one["code"]) == (f"local:{USER}", USER, "OK")
        assert one["ids"] == {"key_name": ["planner"], "key_id": [key.id]}
        assert (one["role"], one["namespaces"]) == ("writer", ["team-a"])
    written = log.read_text()
    assert made[0].stdout.strip().rpartition("_")[2] not in written
    assert key.hash not in written


def test_a_refused_command_is_recorded_too(runner, log: Path):
    key = runner.invoke(command_line, CREATE).stdout.strip()
    assert KEY.fullmatch(key)
    for name in ("nobody", key):
        assert runner.invoke(command_line, ["keys", "revoke", name]).exit_code == 2
    _, unknown, pasted = ends(log)
    assert (unknown["code"], unknown["reason"]) == ("FAILED", "INVALID_ARGUMENT")
    assert unknown["ids"] == {"key_name": ["nobody"]}
    assert pasted["ids"] == {"key_name": ["(a key)"]}
    assert key.rpartition("_")[2] not in log.read_text()


def test_nothing_changes_if_it_cannot_be_recorded(runner, log: Path, key_file: Path):
    log.mkdir()
    for command in (CREATE, ("compact",), ("reindex", "--offline")):
        ran = runner.invoke(command_line, command)
        assert (ran.exit_code, ran.stdout) == (1, "")
        assert "cannot be written" in ran.stderr
        assert "nothing was changed. If the server can write it, run this as its user" in ran.stderr
    assert not key_file.exists()


def test_if_only_its_end_cannot_be_recorded_the_command_fails_and_says_so(
    runner, log: Path, key_file: Path, monkeypatch: pytest.MonkeyPatch
):
    def change(*arguments: Any) -> Any:
        result = change_keys(*arguments)
        log.rename(log.with_suffix(".old"))
        log.mkdir()
        return result

    monkeypatch.setattr("lot_grpc.cli.keys.change_keys", change)
    ran = runner.invoke(command_line, CREATE)
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert "the log only has the beginning of" in ran.stderr
    assert "'OK'" in ran.stderr
    assert [one.name for one in read_keys(key_file)] == ["planner"]
    assert [one["event"] for one in records(log.with_suffix(".old"))] == ["open"]


def test_without_an_audit_log_nothing_is_written(runner, key_file: Path, tmp_path: Path):
    assert runner.invoke(command_line, CREATE).exit_code == 0
    assert [one.name for one in tmp_path.iterdir() if "audit" in one.name] == []


def test_a_log_on_standard_output_leaves_that_to_the_command(
    runner, key_file: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("LOT_AUDIT", "stdout")
    ran = runner.invoke(command_line, CREATE)
    assert KEY.fullmatch(ran.stdout.strip())
    found = [json.loads(line) for line in ran.stderr.splitlines() if line.startswith("{")]
    assert [one["event"] for one in found] == ["open", "end"]


def test_compact_is_recorded(runner, log: Path, monkeypatch: pytest.MonkeyPatch):
    report = CompactReport(
        changed=True, location="/data", bytes_before=2, bytes_after=1, seconds=1.0, skipped=[]
    )
    monkeypatch.setattr(app, "compact", lambda settings, progress: report)
    assert runner.invoke(command_line, ["compact"]).exit_code == 0
    [one] = ends(log)
    assert (one["method"], one["code"]) == ("compact", "OK")


def test_an_offline_reindex_is_recorded_with_why_it_failed(
    runner, log: Path, monkeypatch: pytest.MonkeyPatch
):
    async def fails(settings: Any, progress: Any) -> None:
        raise StoreLockedError("in use")

    monkeypatch.setattr(offline_reindex, "reindex_offline", fails)
    assert runner.invoke(command_line, ["reindex", "--offline"]).exit_code == 1
    [one] = ends(log)
    assert (one["method"], one["code"], one["reason"]) == (
        "reindex --offline", "FAILED", "STORE_LOCKED"
    )  # fmt: skip


# --- as root --------------------------------------------------------------------------------------


NOBODY = 65534


@pytest.fixture
def folder(key_file: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of another user's, on a way that all may read; the audit log is in it."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with TemporaryDirectory(dir="/tmp") as made:
        Path(made).chmod(0o755)
        theirs = Path(made) / "logs"
        theirs.mkdir()
        os.chown(theirs, NOBODY, NOBODY)
        monkeypatch.setenv("LOT_AUDIT", str(theirs / "audit.log"))
        yield theirs


def test_what_root_creates_belongs_to_the_owner_of_the_folder(runner, folder: Path):
    """The server could not write a file of root's."""
    assert runner.invoke(command_line, CREATE).exit_code == 0
    assert (folder / "audit.log").stat().st_uid == NOBODY
    assert len(ends(folder / "audit.log")) == 1
    assert (os.geteuid(), os.getegid()) == (0, 0)


@pytest.mark.parametrize("link", ["audit.log", "."])
def test_root_writes_nothing_that_the_owner_of_a_link_could_not(
    runner, folder: Path, key_file: Path, link: str
):
    groups = os.getgroups()
    target = folder.parent / "of-root"
    target.mkdir()
    (target / "audit.log").write_text("of root\n")
    if link == ".":
        folder.rename(folder.with_name("away"))
        folder.symlink_to(target)
        os.chown(folder, NOBODY, NOBODY, follow_symlinks=False)
    else:
        (folder / link).symlink_to(target / link)
        os.chown(folder / link, NOBODY, NOBODY, follow_symlinks=False)
    ran = runner.invoke(command_line, CREATE)
    assert ran.exit_code == 1
    assert "nothing was changed" in ran.stderr
    assert (target / "audit.log").read_text() == "of root\n"
    assert not key_file.exists()
    assert (os.geteuid(), os.getegid(), os.getgroups()) == (0, 0, groups)


def test_the_user_behind_sudo_is_named(runner, log: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SUDO_USER", "ann")
    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert runner.invoke(command_line, CREATE).exit_code == 0
    [one] = ends(log)
    assert (one["principal"], one["name"]) == ("local:root", "ann")
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000)
    assert runner.invoke(command_line, ["keys", "revoke", "planner"]).exit_code == 0
    assert ends(log)[1]["principal"] == "local:4000000"
