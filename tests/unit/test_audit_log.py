"""The file of the audit log: rotation, what fails, and what is read back."""

from __future__ import annotations

import errno
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from lot_grpc.audit_log import AuditFile, AuditOutput, records
from lot_grpc.domain.errors import StartupError


class Reports(list[tuple[str, object]]):
    def lost(self, records: int, why: str) -> None:
        self.append((why, records))

    def recovered(self) -> None:
        self.append(("recovered", 0))

    def not_rotated(self, why: str) -> None:
        self.append(("not rotated", why))


def opened(path: Path, reports: Reports | None = None, **given: Any) -> AuditFile:
    options = {"reads": False, "max_bytes": 10_000_000, "files": 3, **given}
    return AuditFile(path, reports=reports if reports is not None else Reports(), **options)


def numbers(path: Path) -> list[int]:
    return [one["n"] for one in records(path)]


def test_a_record_is_a_line_with_its_time(tmp_path: Path) -> None:
    log = opened(tmp_path / "audit.log")
    log.write({"n": 1, "name": "Zoë\nx"})
    [line] = (tmp_path / "audit.log").read_text().splitlines()
    record = json.loads(line)
    assert list(record) == ["time", "n", "name"]
    assert len(record["time"]) == len("2026-03-01T12:00:00.123456Z")
    assert record["name"] == "Zoë\nx"
    assert (tmp_path / "audit.log").stat().st_mode & 0o777 == 0o600


def test_it_is_appended_to_by_the_next_process(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    for n in range(3):
        log = opened(path)
        log.write({"n": n})
        log.close()
    assert numbers(path) == [0, 1, 2]


def test_full_files_are_renamed_and_the_oldest_dropped(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    log = opened(path, max_bytes=200, files=2)
    for n in range(30):
        log.write({"n": n})
    kept = numbers(path)
    assert kept == list(range(kept[0], 30)), "in order, without a gap"
    assert kept[0] > 0
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "audit.log", "audit.log.1", "audit.log.2",
    ]  # fmt: skip


@pytest.mark.parametrize("away", ["renamed", "removed"])
def test_what_something_else_rotated_is_made_anew(tmp_path: Path, away: str) -> None:
    path = tmp_path / "audit.log"
    log = opened(path)
    log.write({"n": 1})
    if away == "renamed":
        path.rename(tmp_path / "audit.log.1")
    else:
        path.unlink()
    log.write({"n": 2})
    assert numbers(path) == ([1, 2] if away == "renamed" else [2])


def test_a_file_that_cannot_be_written_refuses_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="set LOT_AUDIT to a file in a folder"):
        opened(tmp_path / "missing" / "audit.log")


def test_lost_records_are_counted_and_said_once_it_works_again(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    path, reports = folder / "audit.log", Reports()
    log = opened(path, reports)
    log.write({"n": 1})
    path.unlink()
    folder.rmdir()
    for n in (2, 3):
        log.write({"n": n})
    assert reports == [("No such file or directory", 1), ("No such file or directory", 2)]
    folder.mkdir()
    log.write({"n": 4})
    lost, after = records(path)
    assert (lost["event"], lost["records"], after["n"]) == ("lost", 2, 4)
    assert reports[2:] == [("recovered", 0)]
    assert log.losses == 2


def test_a_torn_line_spoils_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the disk is full in the middle of a record, or a process ends there."""
    path, reports = tmp_path / "audit.log", Reports()
    log = opened(path, reports)
    log.write({"n": 1})
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:7]))
    log.write({"n": 2})
    monkeypatch.setattr(os, "write", _full)
    log.write({"n": 3})
    monkeypatch.setattr(os, "write", write)
    log.write({"n": 4})
    assert [one.get("n", one.get("records")) for one in records(path)] == [1, 2, 4]
    path.write_bytes(path.read_bytes()[:-3])
    again = opened(path)
    again.write({"n": 5})
    assert [one.get("n") for one in records(path)] == [1, None, 5]


def _full(file: int, data: bytes) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


# --- rotation ---------------------------------------------------------------------------------


def test_a_full_file_that_cannot_be_renamed_grows_on(tmp_path: Path) -> None:
    path, reports = tmp_path / "audit.log", Reports()
    in_the_way = tmp_path / "audit.log.2"
    in_the_way.mkdir()
    log = opened(path, reports, max_bytes=200, files=2)
    (tmp_path / "audit.log.1").touch()
    for n in range(12):
        log.write({"n": n})
    assert numbers(path) == list(range(12)), "no record is lost"
    assert log.losses == 0
    assert {what for what, _ in reports} == {"not rotated"}
    assert len(reports) <= path.stat().st_size // 200, "and it is not tried again at each record"
    in_the_way.rmdir()
    for n in range(12, 24):
        log.write({"n": n})
    assert (tmp_path / "audit.log.2").exists()


def test_two_processes_at_one_file_drop_no_file_of_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if one writes at any moment while the other rotates."""
    path = tmp_path / "audit.log"
    ours, theirs = (opened(path, max_bytes=400, files=99) for _ in range(2))
    replace, written, busy = Path.replace, 0, False

    def write(log: AuditFile) -> None:
        nonlocal written
        written += 1
        log.write({"n": written})

    def interrupted(self: Path, target: Path) -> Path:
        nonlocal busy
        if busy:
            return replace(self, target)
        busy = True
        try:
            write(theirs)
            return replace(self, target)
        finally:
            busy = False

    monkeypatch.setattr(Path, "replace", interrupted)
    for _ in range(40):
        write(ours)
    assert sorted(numbers(path)) == list(range(1, written + 1))
    assert (tmp_path / "audit.log.3").exists()


def test_what_was_cut_off_by_something_else_is_not_full(tmp_path: Path) -> None:
    """As by `copytruncate` of logrotate."""
    path = tmp_path / "audit.log"
    log = opened(path, max_bytes=200)
    for n in range(4):
        log.write({"n": n})
    os.truncate(path, 0)
    log.write({"n": 4})
    assert numbers(path)[-1] == 4
    size = path.stat().st_size
    assert 0 < size < 100
    log.write({"n": 5})
    assert path.stat().st_size > size


def test_a_link_stays_and_what_it_leads_to_is_rotated(tmp_path: Path) -> None:
    real, path = tmp_path / "real", tmp_path / "audit.log"
    real.mkdir()
    path.symlink_to(real / "file")
    log = opened(path, max_bytes=200, files=9)
    for n in range(6):
        log.write({"n": n})
    assert path.is_symlink()
    assert (real / "file.1").is_file()
    assert not (tmp_path / "audit.log.1").exists()
    assert numbers(path) == list(range(6))


def test_files_that_others_name_by_date_are_read(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    opened(path).write({"n": 1})
    path.rename(tmp_path / "audit.log.20260301")
    (tmp_path / "audit.log.7").mkdir()
    opened(path).write({"n": 2})
    assert numbers(path) == [1, 2]


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_regular_file_is_refused(tmp_path: Path, kind: str) -> None:
    """It can neither be rotated nor kept, and opening a pipe would wait for its reader."""
    path = tmp_path / "audit.log"
    if kind == "pipe":
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    else:
        path.symlink_to("/dev/null")
    with pytest.raises(StartupError, match=r"not a regular file; set LOT_AUDIT to .* to stdout"):
        opened(path)
    if kind == "pipe":
        os.close(reader)
        with pytest.raises(StartupError, match="cannot be written"):
            opened(path)


def test_a_rotation_that_was_killed_hides_no_record(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    log = opened(path, max_bytes=200, files=9)
    for n in range(12):
        log.write({"n": n})
    log.close()
    (tmp_path / "audit.log.1").rename(tmp_path / "audit.log.9")  # as when it died in between
    assert sorted(numbers(path)) == list(range(12))


def test_a_rotation_meanwhile_neither_hides_nor_doubles_a_record(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    log = opened(path, max_bytes=200, files=9)
    for n in range(12):
        log.write({"n": n})
    read = records(path)
    found = [next(read)["n"]]
    for n in range(12, 24):
        log.write({"n": n})
    found += [one["n"] for one in read]
    assert found[:12] == list(range(12))
    assert found == list(range(len(found)))


def test_what_is_no_record_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(b'\xff\n\n[1]\n{"n": 1}\n{"time": "x", "n": 2}\n')
    assert numbers(path) == [2]


def test_others_append_while_it_rotates_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    done = Event()

    def append() -> int:
        """As commands do: each opens the file for one record, and never rotates it."""
        count = 0
        while not done.is_set() or not count:
            log = opened(path, max_bytes=sys.maxsize)
            log.write({"n": -1})
            log.close()
            count += 1
        return count

    log = opened(path, max_bytes=1500, files=1000)
    with ThreadPoolExecutor(2) as pool:
        others = [pool.submit(append) for _ in range(2)]
        for n in range(400):
            log.write({"n": n})
        done.set()
        appended = sum(one.result() for one in others)
    found = numbers(path)
    assert [n for n in found if n >= 0] == list(range(400))
    assert found.count(-1) == appended
    assert len(list(tmp_path.iterdir())) > 10


def test_a_line_that_another_process_could_not_finish_stays_apart(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    log = opened(path)
    log.write({"n": 1})
    with path.open("a") as other:
        other.write('{"time": "2026-')
    log.write({"n": 2})
    assert numbers(path) == [1, 2]


@pytest.mark.parametrize(
    "fields", ['"ids": [1]', '"ids": {"a": 3}', '"ids": {"a": [{}]}', '"method": {}', '"code": []']
)
def test_what_is_a_record_of_something_else_is_passed_over(tmp_path: Path, fields: str) -> None:
    path = tmp_path / "audit.log"
    path.write_text(f'{{"time": "x", "n": 1, {fields}}}\n{{"time": "x", "n": 2}}\n')
    assert numbers(path) == [2]


@pytest.mark.parametrize("character", ["\x7f", "\x9b", "\x85", "\u2028", "\u202e", "\U000e0001"])
def test_what_steers_a_terminal_or_breaks_a_line_is_escaped(tmp_path: Path, character: str) -> None:
    path = tmp_path / "audit.log"
    opened(path).write({"id": f"é{character}😀"})
    [line] = path.read_text().splitlines()
    assert line.isprintable()
    assert "é" in line
    assert "😀" in line
    assert json.loads(line)["id"] == f"é{character}😀"


# --- standard output --------------------------------------------------------------------------


def test_standard_output_takes_lines(capfd: pytest.CaptureFixture[str]) -> None:
    AuditOutput(reads=True, reports=Reports()).write({"n": 1})
    assert json.loads(capfd.readouterr().out)["n"] == 1


def test_lines_that_standard_output_does_not_take_are_lost_and_counted(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = Reports()
    log = AuditOutput(reads=True, reports=reports)
    write = os.write
    monkeypatch.setattr(os, "write", _full)
    log.write({"n": 1})
    monkeypatch.setattr(os, "write", write)
    log.write({"n": 2})
    lost, after = map(json.loads, capfd.readouterr().out.splitlines())
    assert (lost["event"], lost["records"], after["n"]) == ("lost", 1, 2)
    assert reports == [("No space left on device", 1), ("recovered", 0)]


def test_without_standard_output_nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number may belong to a file of the store by now."""
    monkeypatch.setattr("sys.stdout", None)
    with pytest.raises(StartupError, match="standard output: it is closed; open it, or set"):
        AuditOutput(reads=True, reports=Reports())
