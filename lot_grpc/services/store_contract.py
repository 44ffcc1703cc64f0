"""What a store was made with, checked before anything is served from it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from lot_grpc.domain.error_signature import VERSION
from lot_grpc.domain.errors import EmbeddingModelMismatchError, SchemaVersionMismatchError
from lot_grpc.domain.ids import point_id
from lot_grpc.lexical.bm25 import TOKENIZER
from lot_grpc.ports import CollectionSpec, EmbeddingContract, Payload, Record, VectorStore
from lot_grpc.services.records.collections import META, SCHEMA_VERSION, collection_specs

CELLS_MADE = "cells_made"
"""Key of the contract: whether each outcome on a query has a cell (``cell_backfill``)."""

ERRORS_READ = "errors_read"
"""Key of the contract: by which version of the rules all errors were read (``error_backfill``)."""

META_NAMESPACE = "_lot"
"""No caller can name it: namespaces begin with a letter or digit."""

_POINT = point_id(META_NAMESPACE, "meta", "contract")

_REMOTE = "openai:"
"""How the name of a model begins that another server runs."""

_TERMS_VERSIONS: Final = re.compile(r"lot-terms-(\d+)/bm25-(\d+)")


def with_terms(contract: EmbeddingContract) -> EmbeddingContract:
    """An embedder's contract together with the terms that this version writes."""
    return replace(contract, tokenizer=TOKENIZER)


async def open_store(store: VectorStore, contract: EmbeddingContract) -> None:
    """Make or check the store's contract, then make its collections complete.

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
    stored = await contract_row(store)
    _check_schema(stored["schema_version"])
    check_terms(stored)
    _check_embedding(stored["embedding"], asdict(contract))
    await store.ensure_collections(collection_specs(contract.dimensions))


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
    different = [key for key in ours if key != "tokenizer" and stored.get(key) != ours[key]]
    if not different:
        return
    was = ", ".join(f"{key}={stored.get(key)}" for key in different)
    now = ", ".join(f"{key}={ours[key]}" for key in different)
    raise EmbeddingModelMismatchError(
        f"the store's vectors were made with {was}; configured is {now}. Vectors of two models "
        f"cannot be compared: configure the stored model again ({_settings_of(stored, ours)}), or "
        "start with an empty LOT_DATA_DIR (LOT_QDRANT_PREFIX)",
        stored=was,
        configured=now,
    )


def _settings_of(stored: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """The settings that choose the stored model."""
    model, configured = str(stored.get("model")), str(ours["model"])
    if model.startswith(_REMOTE):
        return f"LOT_EMBEDDING_PROVIDER=openai, LOT_EMBEDDING_MODEL={model.removeprefix(_REMOTE)}"
    provider = "LOT_EMBEDDING_PROVIDER=fastembed, " if configured.startswith(_REMOTE) else ""
    return f"{provider}LOT_EMBEDDING_MODEL={model}, LOT_EMBEDDING_PATH"
