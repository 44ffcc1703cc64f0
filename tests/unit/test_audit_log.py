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


class Reports(list[tuple[int, str]]):
    def __call__(self, lost: int, why: str) -> None:
        self.append((lost, why))


def opened(path: Path, reports: Reports | None = None, **given: Any) -> AuditFile:
    options = {"reads": False, "max_bytes": 10_000_000, "files": 3, **given}
    return AuditFile(path, report=reports if reports is not None else Reports(), **options)


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
    assert [lost for lost, _ in reports] == [1, 2]
    assert "No such file" in reports[0][1]
    folder.mkdir()
    log.write({"n": 4})
    lost, after = records(path)
    assert (lost["event"], lost["records"], after["n"]) == ("lost", 2, 4)
    assert reports[-1] == (0, "")
    assert log.lost == 2


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


def test_standard_output_takes_lines(capsys: pytest.CaptureFixture[str]) -> None:
    AuditOutput(reads=True, report=Reports()).write({"n": 1})
    assert json.loads(capsys.readouterr().out)["n"] == 1


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
