"""Files are hashed once, and again whenever anything about them has changed."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from lot_grpc.embedding import fastembed, hash_record
from lot_grpc.embedding.fastembed import open_fastembed
from lot_grpc.embedding.file_hash import file_sha256
from lot_grpc.embedding.hash_record import HashRecord, default_record


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were read in full. A file may be recorded at once."""
    seen: list[Path] = []

    def reading(path: Path) -> str:
        seen.append(path)
        return file_sha256(path)

    monkeypatch.setattr(hash_record, "file_sha256", reading)
    monkeypatch.setattr(hash_record, "_QUIET_SECONDS", -1)
    return seen


@pytest.fixture
def model(tmp_path: Path) -> Path:
    made = tmp_path / "model.onnx"
    made.write_bytes(b"the model")
    return made


def hashed(tmp_path: Path, path: Path) -> str:
    """The hash as a new start gets it."""
    record = HashRecord(tmp_path / "cache" / "record.json")
    found = record.sha256(path)
    record.save()
    return found


def test_a_file_is_read_at_the_first_start_only(tmp_path: Path, model: Path, read: list[Path]):
    assert hashed(tmp_path, model) == hashed(tmp_path, model) == file_sha256(model)
    assert read == [model]


def test_other_bytes_are_noticed_though_size_and_time_are_put_back(
    tmp_path: Path, model: Path, read: list[Path]
):
    before = model.stat()
    first = hashed(tmp_path, model)
    model.write_bytes(b"THE model")
    os.utime(model, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert model.stat().st_mtime_ns == before.st_mtime_ns
    assert hashed(tmp_path, model) == file_sha256(model) != first


def test_another_file_under_the_same_name_is_noticed(tmp_path: Path, model: Path, read: list[Path]):
    first = hashed(tmp_path, model)
    other = tmp_path / "other"
    other.write_bytes(b"THE model")
    other.replace(model)
    assert hashed(tmp_path, model) == file_sha256(model) != first


def test_a_file_that_has_just_changed_is_not_recorded(
    tmp_path: Path, model: Path, read: list[Path], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(hash_record, "_QUIET_SECONDS", time.time())
    hashed(tmp_path, model)
    hashed(tmp_path, model)
    assert read == [model, model]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "no JSON",
        "[]",
        "{}",
        '{"x": 1}',
        '{"x": {"is": 1}}',
        pytest.param("[" * 10**5, id="deep"),
    ],
)
def test_a_record_that_cannot_be_read_is_made_anew(
    tmp_path: Path, model: Path, read: list[Path], content: str
):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "record.json").write_text(content)
    assert hashed(tmp_path, model) == hashed(tmp_path, model) == file_sha256(model)
    assert read == [model]


def test_a_record_that_others_may_write_is_not_used(tmp_path: Path, model: Path, read: list[Path]):
    hashed(tmp_path, model)
    (tmp_path / "cache" / "record.json").chmod(0o666)
    hashed(tmp_path, model)
    assert read == [model, model]


def test_where_no_record_can_be_written_each_start_reads(
    tmp_path: Path, model: Path, read: list[Path]
):
    (tmp_path / "cache").write_text("not a folder")
    assert hashed(tmp_path, model) == hashed(tmp_path, model) == file_sha256(model)
    assert read == [model, model]


def test_files_that_are_gone_leave_the_record(tmp_path: Path, model: Path, read: list[Path]):
    hashed(tmp_path, model)
    other = tmp_path / "other"
    other.write_bytes(b"another")
    model.unlink()
    hashed(tmp_path, other)
    content = json.loads((tmp_path / "cache" / "record.json").read_text())
    assert list(content) == [str(other)]


def test_files_that_this_user_may_no_longer_look_at_leave_the_record(
    tmp_path: Path, model: Path, read: list[Path], monkeypatch: pytest.MonkeyPatch
):
    hashed(tmp_path, model)
    other = tmp_path / "other"
    other.write_bytes(b"another")
    look = os.stat

    def refused(path: str | Path, **given: Any) -> os.stat_result:
        if path in (model, str(model)):
            raise PermissionError(13, "Permission denied")
        return look(path, **given)

    monkeypatch.setattr(os, "stat", refused)
    hashed(tmp_path, other)
    content = json.loads((tmp_path / "cache" / "record.json").read_text())
    assert list(content) == [str(other)]


def test_the_record_is_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_record() == tmp_path / "lot-grpc" / "file-hashes.json"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert default_record() == tmp_path / "home" / ".cache" / "lot-grpc" / "file-hashes.json"


def test_a_user_without_a_home_has_no_record(monkeypatch: pytest.MonkeyPatch):
    def homeless(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "expanduser", homeless)
    assert default_record() is None


@pytest.mark.model
async def test_an_opened_model_is_verified_once(tmp_path: Path, read: list[Path]):
    contracts = []
    for _ in range(2):
        embedder = await open_fastembed(threads=1, hash_record=tmp_path / "record.json")
        contracts.append(embedder.contract)
        await embedder.close()
    assert contracts[0] == contracts[1]
    assert len(read) == len(set(read)), "no file twice"
    assert any(path.name == "model.onnx" for path in read)


@pytest.mark.model
async def test_without_a_record_files_are_read_in_full(
    monkeypatch: pytest.MonkeyPatch, read: list[Path]
):
    seen: list[Path] = []

    def reading(path: Path) -> str:
        seen.append(path)
        return file_sha256(path)

    monkeypatch.setattr(fastembed, "file_sha256", reading)
    embedder = await open_fastembed(threads=1)
    await embedder.close()
    assert any(path.name == "model.onnx" for path in seen)
    assert not read
