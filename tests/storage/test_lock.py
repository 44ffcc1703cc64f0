from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lot_grpc.domain.errors import StartupError, StoreLockedError
from lot_grpc.storage.lock import LOCK_NAME, FolderLock

_HOLDER = """
import sys, time, pathlib
from lot_grpc.storage.lock import FolderLock
lock = FolderLock(pathlib.Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


def test_the_second_to_come_is_told_who_was_first_and_what_to_do(folder: Path) -> None:
    first = FolderLock(folder)
    with pytest.raises(StoreLockedError) as caught:
        FolderLock(folder)
    first.release()
    assert caught.value.metadata["pid"] == str(os.getpid())
    assert str(os.getpid()) in caught.value.message
    assert "stop that process, or choose another data folder" in caught.value.message


def test_a_released_folder_can_be_locked_again(folder: Path) -> None:
    first = FolderLock(folder)
    first.release()
    first.release()
    FolderLock(folder).release()


def test_the_lock_of_another_process_holds_until_it_is_killed(folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(folder)], stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StoreLockedError, match=f"process {holder.pid} "):
            FolderLock(folder)
        holder.kill()
        holder.wait()
    assert (folder / LOCK_NAME).read_text() != "", "what the dead process wrote is still there"
    FolderLock(folder).release()


def test_a_damaged_lock_file_locks_nobody_out(folder: Path) -> None:
    folder.mkdir()
    (folder / LOCK_NAME).write_bytes(b"\xff[garbage")
    lock = FolderLock(folder)
    with pytest.raises(StoreLockedError):
        FolderLock(folder)
    lock.release()


def test_a_data_folder_that_is_a_file_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(StartupError, match="cannot use the data folder") as caught:
        FolderLock(file)
    assert str(file) in caught.value.message
