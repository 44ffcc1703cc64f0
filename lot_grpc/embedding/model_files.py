"""Finds the model's files and verifies them.

In this order: a folder set by the operator, an installed model pack, fastembed's cache, a download.
The first place that has the model is used or refused: no other is tried because one is damaged,
since two exports of a model make different vectors.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from lot_grpc.domain.errors import ModelAbsentError, ModelUnavailableError
from lot_grpc.embedding.catalog import PACKS, ModelCard, ModelPack, RerankerCard
from lot_grpc.embedding.download import FetchedModel, Progress, fetch
from lot_grpc.embedding.file_hash import file_sha256

_MODEL_FILES = (
    "model.onnx",
    "model_optimized.onnx",
    "model_quantized.onnx",
    "onnx/model.onnx",
    "onnx/model_quantized.onnx",
)
_COMPANIONS = ("tokenizer.json", "tokenizer_config.json")

HashOf: TypeAlias = Callable[[Path], str]
"""SHA-256 of a file as hex."""

CardT = TypeVar("CardT", ModelCard, RerankerCard)


@dataclass(frozen=True, slots=True)
class Located(Generic[CardT]):
    """Verified files of a model. ``model_file`` is relative to ``folder``."""

    card: CardT
    folder: Path
    model_file: str
    sha256: str
    origin: str


ModelFiles: TypeAlias = Located[ModelCard]
RerankerFiles: TypeAlias = Located[RerankerCard]


def locate(
    card: ModelCard,
    *,
    path: Path | None = None,
    sha256: str = "",
    cache_dir: Path | None = None,
    allow_download: bool = False,
    progress: Progress | None = None,
    packs: Sequence[ModelPack] = PACKS,
    hash_of: HashOf = file_sha256,
) -> ModelFiles:
    """Find the files of a model and verify them. Reads all of the model file by default.

    Args:
        card: The model.
        path: A folder that must contain it, None for the other places.
        sha256: The hash the model file must have, "" for any known one.
        cache_dir: fastembed's cache, None for its default.
        allow_download: Whether the network may be used.
        progress: Called during a download, from another thread.
        packs: Packages that may contain the model.
        hash_of: Returns the hash of a file, computed or recorded.

    Raises:
        ModelUnavailableError: A file is missing or damaged.
        ModelAbsentError: The model was not found, and may not be downloaded.
    """
    if found := _installed(card, path, sha256, packs, hash_of):
        return found
    fetched = fetch(card, cache_dir, allow_download=allow_download, progress=progress)
    if fetched is None:
        reason = "is not on this machine and downloads are disabled (by settings or HF_HUB_OFFLINE)"
        raise _nowhere(card, packs, reason, "allow the download")
    return _from_cache(card, fetched, sha256, hash_of)


def locate_reranker(
    card: RerankerCard,
    *,
    path: Path | None = None,
    sha256: str = "",
    packs: Sequence[ModelPack] = PACKS,
) -> RerankerFiles:
    """Find the files of a reranking model and verify them. It is never downloaded.

    Args:
        card: The model.
        path: A folder that must contain it, None for the packs.
        sha256: The hash the model file must have, "" for any known one.
        packs: Packages that may contain the model.

    Raises:
        ModelUnavailableError: A file is missing or damaged, or the model was not found.
    """
    if found := _installed(card, path, sha256, packs, file_sha256):
        return found
    raise _nowhere(card, packs, "is not on this machine, and it is never downloaded")


def _installed(
    card: CardT, path: Path | None, sha256: str, packs: Sequence[ModelPack], hash_of: HashOf
) -> Located[CardT] | None:
    if path is not None:
        return _from_path(card, path, sha256, hash_of)
    for pack in packs:
        if pack.model == card.name and (found := _from_pack(card, pack, sha256, hash_of)):
            return found
    return None


def _from_path(card: CardT, folder: Path, sha256: str, hash_of: HashOf) -> Located[CardT]:
    path_hint = card.variables + "PATH"
    if not folder.is_dir():
        raise ModelUnavailableError(
            f"{path_hint} is set to {folder}, which is not a folder; set it to the folder that "
            "contains the model's ONNX file and tokenizer.json",
            path=folder,
        )
    model_file = next((name for name in _MODEL_FILES if (folder / name).is_file()), None)
    if model_file is None:
        raise _missing(folder / _MODEL_FILES[0], f"put the model there or unset {path_hint}")
    for name in _COMPANIONS:
        if not (folder / name).is_file():
            raise _missing(folder / name, "copy it again from its source")
    expected = (sha256,) if sha256 else card.sha256
    remedy = f"copy the file again; if it is another export of {card.name} that you trust, set "
    remedy += card.variables + "SHA256={actual}"
    actual = _verify(folder / model_file, expected, remedy, hash_of)
    return Located(card, folder, model_file, actual, f"path {folder}")


def _from_pack(card: CardT, pack: ModelPack, sha256: str, hash_of: HashOf) -> Located[CardT] | None:
    known = pack.files[pack.model_file]
    if sha256 not in ("", known):
        return None  # a different export is required
    # Only located, not imported: we need its data folder, not its code in our process.
    spec = importlib.util.find_spec(pack.package)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations))) / pack.subfolder
    remedy = f"reinstall the package: {pack.install} --force-reinstall --no-deps"
    for name, expected in pack.files.items():
        if not (folder / name).is_file():
            raise _missing(folder / name, remedy)
        _verify(folder / name, (expected,), remedy, hash_of)
    return Located(card, folder, pack.model_file, known, f"package {pack.package}")


def _from_cache(card: ModelCard, fetched: FetchedModel, sha256: str, hash_of: HashOf) -> ModelFiles:
    for name in (fetched.model_file, *_COMPANIONS):
        if not (fetched.folder / name).is_file():
            raise _missing(fetched.folder / name, f"delete {fetched.folder} and start again")
    model = fetched.folder / fetched.model_file
    # Without a hash from either side, fastembed's own check of the sizes remains.
    expected = sha256 or fetched.sha256 or hash_of(model)
    actual = _verify(model, (expected,), f"delete {model.resolve()} and start again", hash_of)
    return Located(card, fetched.folder, fetched.model_file, actual, "fastembed's cache")


def _verify(file: Path, expected: Sequence[str], remedy: str, hash_of: HashOf) -> str:
    actual = hash_of(file)
    if actual not in expected:
        known = " or ".join(expected) or "none is known"
        raise ModelUnavailableError(
            f"{file} is not the expected file: expected SHA-256 {known}, found {actual}; "
            + remedy.format(actual=actual),
            path=file,
            expected=known,
            actual=actual,
        )
    return actual


def _missing(file: Path, remedy: str) -> ModelUnavailableError:
    return ModelUnavailableError(f"{file} is missing; {remedy}", path=file)


def _nowhere(
    card: ModelCard | RerankerCard, packs: Sequence[ModelPack], reason: str, *more: str
) -> ModelAbsentError:
    ways = [f"run {pack.install}" for pack in packs if pack.model == card.name]
    ways += [f"set {card.variables}PATH to a folder that contains it", *more]
    return ModelAbsentError(
        f"{card.kind} {card.name} {reason}; " + ", or ".join(ways), model=card.name
    )
