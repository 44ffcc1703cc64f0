"""What a store was made with, checked before anything is served from it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any, Final, TypeAlias

from lot_grpc.domain.error_text.signature import VERSION
from lot_grpc.domain.errors import (
    EmbeddingModelMismatchError,
    SchemaVersionMismatchError,
    StartupError,
)
from lot_grpc.domain.ids import point_id
from lot_grpc.lexical.bm25 import TOKENIZER
from lot_grpc.ports import CollectionSpec, EmbeddingContract, Payload, Record, VectorStore
from lot_grpc.services.records.collections import META, SCHEMA_VERSION, collection_specs
from lot_grpc.services.reindex.epochs import stored_spec

BACKFILL = "backfill"
"""Key of the contract: how far records of an older version were brought up to date (``backfill``);
None (or absent) when there is nothing to do."""

CELLS_MADE = "cells_made"
"""Key of the contract: whether each outcome on a query has a cell (``cell_backfill``)."""

EPOCH = "vector_epoch"
"""Key of the contract: which vectors are those of its model (``reindexing.epochs``); absent: 0."""

REBUILD = "rebuild"
"""Key of the contract: the epoch and the model that an unfinished reindex makes vectors of."""

STALE_EPOCHS = "stale_epochs"
"""Key of the contract: epochs whose vectors are of no use and may not all be dropped."""

ERRORS_READ = "errors_read"
"""Key of the contract: by which version of the rules all errors were read (``error_backfill``)."""

META_NAMESPACE = "_lot"
"""No caller can name it: namespaces begin with a letter or digit."""

_POINT = point_id(META_NAMESPACE, "meta", "contract")

REMOTE = "openai:"
"""How the name of a model begins that another server runs."""

Progress: TypeAlias = Callable[[str, int, int], None]
"""What is done, how much of it, of how much."""

_QUIET_SECONDS = 1.0
"""How long opening may take before it reports its progress."""

_TERMS_VERSIONS: Final = re.compile(r"lot-terms-(\d+)/bm25-(\d+)")


def with_terms(contract: EmbeddingContract) -> EmbeddingContract:
    """An embedder's contract together with the terms that this version writes."""
    return replace(contract, tokenizer=TOKENIZER)


async def open_store(
    store: VectorStore, contract: EmbeddingContract, progress: Progress | None = None
) -> int:
    """Make or check the store's contract, then make its collections complete.

    Returns the epoch of its vectors (``reindexing.epochs``). ``progress`` is called only when it
    takes longer than a second.

    Records that an older version wrote still lack vectors (``backfill.bring_up_to_date``), and its
    outcomes cells (``cell_backfill.make_cells``); its errors were read by the rules of that version
    (``error_backfill``).

    Raises:
        SchemaVersionMismatchError: It was written by a newer version of this service.
        EmbeddingModelMismatchError: Its vectors were made by another model.
    """
    await store.ensure_collections([CollectionSpec(META)])
    ours = {
        "schema_version": SCHEMA_VERSION,
        "embedding": asdict(with_terms(contract)),
        CELLS_MADE: True,
        ERRORS_READ: VERSION,
    }
    await store.insert(META, [Record(_POINT, META_NAMESPACE, ours)])
    stored = await check_contract(store, contract)
    epoch: int = stored.get(EPOCH, 0)
    await _open_collections(store, contract.dimensions, epoch, progress)
    return epoch


async def check_contract(store: VectorStore, contract: EmbeddingContract) -> Payload:
    """What a store says of itself, once it is found to fit. Its ``META`` must be open.

    Raises:
        SchemaVersionMismatchError: It was written by a newer version of this service.
        EmbeddingModelMismatchError: Its vectors were made by another model.
    """
    stored = await contract_row(store)
    _check_schema(stored["schema_version"])
    check_terms(stored)
    _check_embedding(stored["embedding"], asdict(contract))
    return stored


async def open_as_stored(store: VectorStore) -> Payload:
    """Open a store by its own contract, whatever model it names; return that contract.

    Raises:
        StartupError: There is no store yet, or a start of the server must bring it up to date.
        SchemaVersionMismatchError: It was written by a newer version of this service.
    """
    await store.ensure_collections([CollectionSpec(META)])
    try:
        stored = await contract_row(store)
    except KeyError:
        raise StartupError("the store is empty: there is nothing to embed anew") from None
    _check_schema(stored["schema_version"])
    check_terms(stored)
    if (
        stored["schema_version"] < SCHEMA_VERSION
        or stored.get(BACKFILL) is not None
        or stored["embedding"]["tokenizer"] != TOKENIZER
        or stored.get(ERRORS_READ) != VERSION
    ):
        raise StartupError(
            "the store is of an older version of lot-grpc: start the server once with its model "
            f"({stored['embedding']['model']}), which brings it up to date"
        )
    await _open_collections(store, stored["embedding"]["dimensions"], stored.get(EPOCH, 0))
    return stored


async def _open_collections(
    store: VectorStore, dimensions: int, epoch: int, progress: Progress | None = None
) -> None:
    specs = [stored_spec(spec, epoch) for spec in collection_specs(dimensions)]
    started, shown = time.monotonic(), False
    for number, spec in enumerate(specs, 1):
        await store.ensure_collections([spec])
        if progress and (shown or time.monotonic() - started > _QUIET_SECONDS):
            progress("opening the store", number, len(specs))
            shown = True


def same_model(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two embedding contracts make the same vectors; terms need no model."""
    return not _different(one, other)


async def contract_row(store: VectorStore) -> Payload:
    """The contract as it is stored. Raises ``KeyError`` for a store that was never opened."""
    return (await store.get(META, META_NAMESPACE, [_POINT]))[_POINT].payload


async def change_contract(store: VectorStore, changed: Mapping[str, Any]) -> None:
    """Set these keys of the stored contract, all at once."""
    await store.update(META, META_NAMESPACE, _POINT, set=changed)


def check_terms(row: Mapping[str, Any]) -> None:
    """Refuse a store with terms that this version does not know, since a later one made them.

    Raises:
        SchemaVersionMismatchError: So it is.
    """
    stored = row["embedding"]["tokenizer"]
    if not stored or _version(stored) <= _version(TOKENIZER):
        return
    raise SchemaVersionMismatchError(
        f"the store's terms are {stored}, which a newer version of lot-grpc wrote; this one works "
        f"with {TOKENIZER}: start the version that wrote it, or use another LOT_DATA_DIR "
        "(LOT_QDRANT_PREFIX)",
        stored=stored,
        supported=TOKENIZER,
    )


def _version(tokenizer: str) -> tuple[float, float]:
    """What orders the names of terms; one that is not of our kind is later than all."""
    match = _TERMS_VERSIONS.fullmatch(tokenizer)
    return (int(match[1]), int(match[2])) if match else (float("inf"), 0)


def _check_schema(stored: int) -> None:
    if stored > SCHEMA_VERSION:
        raise SchemaVersionMismatchError(
            f"the store has schema version {stored}, this version of lot-grpc works up to "
            f"{SCHEMA_VERSION}; start the version that wrote it, or use another LOT_DATA_DIR",
            stored=stored,
            supported=SCHEMA_VERSION,
        )


def _check_embedding(stored: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """All but the terms, which need no model to be made anew."""
    different = _different(stored, ours)
    if not different:
        return
    was = ", ".join(f"{key}={stored.get(key)}" for key in different)
    now = ", ".join(f"{key}={ours[key]}" for key in different)
    raise EmbeddingModelMismatchError(
        f"the store's vectors were made with {was}; configured is {now}. Vectors of two models "
        f"cannot be compared: configure the stored model again ({_settings_of(stored, ours)}), or "
        "embed everything anew with the configured one by `lot-grpc reindex --offline`",
        stored=was,
        configured=now,
    )


def _different(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    return [key for key in other if key != "tokenizer" and one.get(key) != other[key]]


def _settings_of(stored: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """The settings that choose the stored model."""
    model, configured = str(stored.get("model")), str(ours["model"])
    if model.startswith(REMOTE):
        return f"LOT_EMBEDDING_PROVIDER=openai, LOT_EMBEDDING_MODEL={model.removeprefix(REMOTE)}"
    provider = "LOT_EMBEDDING_PROVIDER=fastembed, " if configured.startswith(REMOTE) else ""
    return f"{provider}LOT_EMBEDDING_MODEL={model}, LOT_EMBEDDING_PATH"
