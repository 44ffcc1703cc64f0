"""A key file that is not as it should be, at start and while a server runs."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
import structlog

from lot_grpc.auth import files, key_file
from lot_grpc.auth.files import FileError, WatchedFile
from lot_grpc.auth.key_file import change_keys, dump, read_keys
from lot_grpc.domain.api_key import Keys
from tests.auth.keys import add_key, make_key


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "keys.json"
    add_key(found)
    return found


@pytest.fixture
def at_once(monkeypatch) -> None:
    """A watched file is looked at whenever somebody asks."""
    monkeypatch.setattr(files, "LOOK_SECONDS", 0.0)


def watched(path: Path) -> WatchedFile[Keys]:
    def parse(found: bytes) -> Keys:
        return key_file.parse(path, found)

    return WatchedFile(path, key_file.WHAT, parse, private=True, metric="keys")


def rename_over(path: Path, content: bytes, mode: int = 0o600) -> None:
    other = path.with_name("other")
    other.write_bytes(content)
    other.chmod(mode)
    other.replace(path)


# --- what is refused --------------------------------------------------------------------------


def test_a_new_file_is_for_its_user_only(path):
    assert path.stat().st_mode & 0o7777 == 0o600
    assert [one.name for one in read_keys(path)] == ["planner"]


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        (0o644, "is open to others (mode 0644); run `chmod 600`"),
        (0o604, "open to others"),
        (0o601, "open to others"),
        (0o660, "can be written by others (mode 0660)"),
        (0o602, "can be written by others"),
    ],
)
def test_a_file_open_to_others_is_refused(path, mode, text):
    path.chmod(mode)
    with pytest.raises(FileError) as caught:
        read_keys(path)
    assert text in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o640, 0o440])
def test_a_group_may_read_it_as_where_a_cluster_mounts_it(path, mode):
    path.chmod(mode)
    assert read_keys(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(path):
    os.chown(path, 12345, -1)
    with pytest.raises(FileError, match="belongs to another user"):
        read_keys(path)


def test_what_is_no_file_is_refused_and_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(FileError, match="is not a file"):
            read_keys(path)
    with pytest.raises(FileError, match="cannot be read: No such file"):
        read_keys(tmp_path / "none")
    (tmp_path / "link").symlink_to(tmp_path / "none")
    with pytest.raises(FileError, match="cannot be read: No such file"):
        read_keys(tmp_path / "link")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(FileError, match="cannot be read"):
        read_keys(tmp_path / "loop")


def test_a_huge_file_is_refused(path):
    with path.open("ab") as file:
        file.truncate(files.MAX_BYTES + 1)
    with pytest.raises(FileError, match="more than 4 MiB"):
        read_keys(path)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (b"{", b"", "JSON"),
        (b'"version": 1', b'"version": 2', "version: Input should be 1"),
        (b'"version": 1', b'"version": "1"', "version"),
        (b'"version": 1', b'"version": 1, "owner": 1', "owner: Unexpected keyword"),
        (b'"name": "planner",', b"", "keys.0.name: Field required"),
        (b'"writer"', b'"owner"', "keys.0.role: Input should be 'reader', 'writer' or 'admin'"),
        (b'"role"', b'"revoked": true, "role"', "keys.0.revoked: Unexpected keyword"),
        (b'"create_time": "', b'"create_time": "x', "keys.0.create_time"),
        (b'Z"', b'"', "keys.0: a time should have an offset"),
        (b'"hash": "', b'"hash": "0', "keys.0: a hash should be 64"),
        (b'"team-a"', b"5", "keys.0.namespaces.0"),
        (b'"team-a"', b'"a b"', "keys.0: namespace 'a b' should"),
        (b'"team-a"', b"\xff", "JSON"),
        (b'"role"', b'"concurrent_calls": 1.5, "role"', "keys.0.concurrent_calls"),
        (b'"role"', b'"concurrent_calls": "1", "role"', "keys.0.concurrent_calls"),
        (b'"role"', b'"expire_time": 1, "role"', "keys.0.expire_time"),
    ],
)
def test_a_file_that_is_not_valid_is_refused_with_the_place_and_without_its_hashes(
    path, old, new, text
):
    found = path.read_bytes()
    assert old in found
    rename_over(path, found.replace(old, new, 1))
    with pytest.raises(FileError) as caught:
        read_keys(path)
    assert "is not a valid key file" in str(caught.value)
    assert text in str(caught.value)
    assert read_hash(found) not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def read_hash(content: bytes) -> str:
    return content.decode().partition('"hash": "')[2][:64]


def test_two_keys_of_one_name_in_a_file_are_refused(path):
    key, _ = make_key()
    rename_over(path, dump((*read_keys(path), key)))
    with pytest.raises(FileError, match="name 'planner' would belong to two keys"):
        read_keys(path)


# --- a running server -------------------------------------------------------------------------


def test_a_file_is_read_anew_when_it_changes_but_looked_at_once_a_second(path, monkeypatch):
    watch = watched(path)
    add_key(path, name="second")
    assert not watch.refresh()
    monkeypatch.setattr(files, "LOOK_SECONDS", 0.0)
    assert watch.refresh()
    assert [one.name for one in watch.value] == ["planner", "second"]
    assert not watch.refresh()


BREAKS = {
    "half written": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "emptied": lambda path: path.write_bytes(b""),
    "deleted": lambda path: path.unlink(),
    "replaced by other contents": lambda path: rename_over(path, b"[]"),
    "opened to others": lambda path: path.chmod(0o666),
    "replaced by one open to others": lambda path: rename_over(path, path.read_bytes(), 0o644),
    "made a folder": lambda path: (path.unlink(), path.mkdir()),
    "made a link to nothing": lambda path: (path.unlink(), path.symlink_to(path.parent / "x")),
}


@pytest.mark.parametrize("how", BREAKS)
def test_if_it_breaks_what_was_read_stays_and_is_said_only_once(path, how, at_once):
    watch = watched(path)
    before, content = watch.value, path.read_bytes()
    BREAKS[how](path)
    with structlog.testing.capture_logs() as log:
        assert [watch.refresh() for _ in range(5)] == [False] * 5
    assert watch.value == before
    assert [one["log_level"] for one in log] == ["error"]
    assert log[0]["event"] == "cannot use a changed file; keeping the last good state"
    assert str(path) in log[0]["why"]
    if path.is_dir():
        path.rmdir()
    path.unlink(missing_ok=True)
    rename_over(path, content)
    with structlog.testing.capture_logs() as log:
        assert not any(watch.refresh() for _ in range(3))
    assert [one["event"] for one in log] == ["can use the file again"]
    add_key(path, name="second")
    assert watch.refresh()


def test_another_mistake_is_said_anew(path, at_once):
    watch = watched(path)
    with structlog.testing.capture_logs() as log:
        path.write_bytes(b"")
        watch.refresh()
        path.unlink()
        watch.refresh()
    assert len(log) == 2


def test_a_change_in_place_that_keeps_size_and_time_is_seen(path, at_once):
    watch = watched(path)
    found, times = path.read_bytes(), path.stat()
    path.write_bytes(found.replace(b'"writer"', b'"reader"'))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert watch.refresh()
    assert watch.value[0].role == "reader"


def test_an_old_file_is_not_read_again(path, at_once, monkeypatch):
    monkeypatch.setattr(files, "_QUIET_SECONDS", -1)
    watch = watched(path)
    reads = []
    read = files.read

    def counted(path: Path, *, private: bool) -> Any:
        reads.append(path)
        return read(path, private=private)

    monkeypatch.setattr(files, "read", counted)
    assert not any(watch.refresh() for _ in range(5))
    assert reads == []
    path.chmod(0o400)
    watch.refresh()
    assert len(reads) == 1


def test_a_link_is_followed_and_its_target_replaced(tmp_path, at_once):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "keys.json", tmp_path / "keys.json"
    add_key(target)
    link.symlink_to(target)
    watch = watched(link)
    add_key(link, name="second")
    assert link.is_symlink()
    assert watch.refresh()
    assert len(watch.value) == len(read_keys(target)) == 2


# --- writing ----------------------------------------------------------------------------------


def test_a_change_keeps_the_mode_and_leaves_nothing_behind(path):
    path.chmod(0o640)
    add_key(path, name="second")
    assert path.stat().st_mode & 0o7777 == 0o640
    assert [one.name for one in path.parent.iterdir()] == ["keys.json"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_root_keeps_the_owner_of_the_file(path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 12345)  # as the server's user that reads it
    os.chown(path, 12345, 12345)
    add_key(path, name="second")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12345)


@pytest.mark.parametrize("step", ["fsync", "fchmod", "open"])
def test_a_failed_write_leaves_the_file_as_it_was(path, monkeypatch, step):
    before = path.read_bytes()
    real = getattr(os, step)

    def failing(*args, **more):
        if step == "open" and not str(args[0]).endswith(".new"):
            return real(*args, **more)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, failing)
    with pytest.raises(FileError, match="cannot be written: No space left on device"):
        add_key(path, name="second")
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == ["keys.json"]


def test_a_command_that_died_in_the_middle_is_in_nobodys_way(path):
    (path.parent / "keys.json.new").write_bytes(b"half")
    add_key(path, name="second")
    assert [one.name for one in read_keys(path)] == ["planner", "second"]
    assert [one.name for one in path.parent.iterdir()] == ["keys.json"]


def test_a_link_in_the_place_of_the_new_file_is_not_written_through(path, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "keys.json.new").symlink_to(victim)
    add_key(path, name="second")
    assert victim.read_text() == "mine"
    assert not path.is_symlink()


def test_a_file_that_is_not_valid_is_never_replaced(path):
    path.write_bytes(b"{}")
    with pytest.raises(FileError, match="not a valid key file"):
        add_key(path, name="second")
    assert path.read_bytes() == b"{}"


def test_concurrent_changes_lose_nothing(path):
    count = 24
    threads = [
        threading.Thread(target=add_key, args=(path,), kwargs={"name": f"n-{n}"})
        for n in range(count)
    ]
    for one in threads:
        one.start()
    seen = []
    while any(one.is_alive() for one in threads):
        seen.append(len(read_keys(path)))  # whole at any time
    for one in threads:
        one.join()
    assert seen == sorted(seen)
    names = {one.name for one in read_keys(path)}
    assert names == {"planner", *(f"n-{n}" for n in range(count))}


def test_a_folder_that_stays_locked_is_told(path, monkeypatch):
    monkeypatch.setattr(files, "_LOCK_SECONDS", 0.1)
    with files.locked(path), pytest.raises(FileError, match="locked by another process"):
        change_keys(path, lambda keys: (keys, None))


def test_without_its_folder_there_is_no_file(tmp_path):
    with pytest.raises(FileError, match="cannot be opened: No such file"):
        add_key(tmp_path / "none" / "keys.json")
