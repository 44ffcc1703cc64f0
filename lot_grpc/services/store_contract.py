"""What a store was made with, checked before anything is served from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from lot_grpc.domain.errors import EmbeddingModelMismatchError, SchemaVersionMismatchError
from lot_grpc.domain.ids import point_id
from lot_grpc.ports import CollectionSpec, EmbeddingContract, Record, VectorStore
from lot_grpc.services.records.collections import META, SCHEMA_VERSION, collection_specs

META_NAMESPACE = "_lot"
"""No caller can name it: namespaces begin with a letter or digit."""

_POINT = point_id(META_NAMESPACE, "meta", "contract")


async def open_store(store: VectorStore, contract: EmbeddingContract) -> None:
    """Make or check the store's contract, then make its collections complete.

    Raises:
        SchemaVersionMismatchError: It was written by a newer version of this service.
        EmbeddingModelMismatchError: Its vectors were made by another model.
    """
    await store.ensure_collections([CollectionSpec(META)])
    ours = {"schema_version": SCHEMA_VERSION, "embedding": asdict(contract)}
    await store.insert(META, [Record(_POINT, META_NAMESPACE, ours)])
    stored = (await store.get(META, META_NAMESPACE, [_POINT]))[_POINT].payload
    _check_schema(stored["schema_version"])
    _check_embedding(stored["embedding"], asdict(contract))
    await store.ensure_collections(collection_specs(contract.dimensions))


def _check_schema(stored: int) -> None:
    if stored != SCHEMA_VERSION:
        raise SchemaVersionMismatchError(
            f"the store has schema version {stored}, this version of lot-grpc works with "
            f"{SCHEMA_VERSION}; start the version that wrote it, or use another LOT_DATA_DIR",
            stored=stored,
            supported=SCHEMA_VERSION,
        )


def _check_embedding(stored: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    different = [key for key in ours if stored.get(key) != ours[key]]
    if not different:
        return
    was = ", ".join(f"{key}={stored.get(key)}" for key in different)
    now = ", ".join(f"{key}={ours[key]}" for key in different)
    raise EmbeddingModelMismatchError(
        f"the store's vectors were made with {was}; configured is {now}. Vectors of two models "
        f"cannot be compared: configure the stored model again (LOT_EMBEDDING_MODEL="
        f"{stored.get('model')}, LOT_EMBEDDING_PATH), or start with an empty LOT_DATA_DIR "
        "(LOT_QDRANT_PREFIX)",
        stored=was,
        configured=now,
    )
