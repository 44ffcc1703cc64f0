"""The metadata of a store, checked before anything is served from it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, TypeAlias

from lot_grpc.domain.error_text.signature import VERSION
from lot_grpc.domain.errors import (
    EmbeddingModelMismatchError,
    SchemaVersionMismatchError,
    StartupError,
)
from lot_grpc.domain.ids import point_id
from lot_grpc.lexical.bm25 import TOKENIZER
from lot_grpc.ports import CollectionSpec, EmbeddingContract, Payload, Record, VectorStore, Where
from lot_grpc.services.records.collections import META, SCHEMA_VERSION
from lot_grpc.services.registry import Registry
from lot_grpc.services.reindex.epochs import stored_spec

DERIVATION = "derivation"
"""Key of the metadata: the rules that terms and signatures are derived by (``derived_data``)."""

DERIVATION_VERSION: Final = f"{TOKENIZER}/signatures-{VERSION}"
"""The rules of this version. Data derived by another version is rebuilt at the start."""

DERIVED_UP_TO = "derived_up_to"
"""Key of the metadata: how far an unfinished rebuild of derived data came, by collection."""

EPOCH = "vector_epoch"
"""Key of the metadata: which vectors are those of its model (``reindexing.epochs``); absent: 0."""

REBUILD = "rebuild"
"""Key of the metadata: the epoch and the model that an unfinished reindex makes vectors of."""

STALE_EPOCHS = "stale_epochs"
"""Key of the metadata: epochs whose vectors are of no use and may not all be dropped."""

META_NAMESPACE = "_lot"
"""No caller can name it: namespaces begin with a letter or digit."""

_POINT = point_id(META_NAMESPACE, "meta", "contract")

REMOTE = "openai:"
"""How the name of a model begins that another server runs."""

Progress: TypeAlias = Callable[[str, int, int], None]
"""What is done, how much of it, of how much."""

_AT_ONCE = 6
"""Collections opened in one call: each call looks through all that the process has mapped."""

_QUIET_SECONDS = 1.0
"""How long opening may take before it reports its progress."""

_DERIVATIONS: Final = re.compile(r"lot-terms-(\d+)/bm25-(\d+)/signatures-(\d+)")

_USE_ANOTHER: Final = (
    "start the version that wrote it, or use another LOT_DATA_DIR (LOT_QDRANT_PREFIX)"
)


async def open_store(
    store: VectorStore,
    registry: Registry,
    contract: EmbeddingContract,
    progress: Progress | None = None,
) -> int:
    """Make or check the store's metadata, then make its collections and indexes complete.

    Returns the epoch of its vectors (``reindexing.epochs``). ``progress`` is called only when it
    takes longer than a second. What other rules derived is left as it is (``derived_data``).

    Raises:
        SchemaVersionMismatchError: Another version of this service wrote it.
        EmbeddingModelMismatchError: Its vectors were made by another model.
    """
    await store.ensure_collections([CollectionSpec(META)])
    ours = {
        "schema_version": SCHEMA_VERSION,
        "embedding": asdict(contract),
        DERIVATION: DERIVATION_VERSION,
    }
    await store.insert(META, [Record(_POINT, META_NAMESPACE, ours)])
    stored = await check_metadata(store, contract)
    epoch: int = stored.get(EPOCH, 0)
    specs = registry.collection_specs(contract.dimensions)
    await _open_collections(store, specs, epoch, progress)
    return epoch


async def check_metadata(store: VectorStore, contract: EmbeddingContract) -> Payload:
    """The metadata of a store, if it is compatible. Its ``META`` must be open.

    Raises:
        SchemaVersionMismatchError: Another version of this service wrote it.
        EmbeddingModelMismatchError: Its vectors were made by another model.
    """
    stored = await read_metadata(store)
    _check_schema(stored["schema_version"])
    check_derivation(stored)
    _check_embedding(stored["embedding"], asdict(contract))
    return stored


async def open_as_stored(store: VectorStore, registry: Registry) -> Payload:
    """Open a store by its own metadata, whatever model it names; return that metadata.

    Raises:
        StartupError: There is no store yet, or a start of the server must bring it up to date.
        SchemaVersionMismatchError: Another version of this service wrote it.
    """
    await store.ensure_collections([CollectionSpec(META)])
    try:
        stored = await read_metadata(store)
    except KeyError:
        raise StartupError("the store is empty; there is nothing to reindex") from None
    _check_schema(stored["schema_version"])
    check_derivation(stored)
    if is_outdated(stored):
        raise StartupError(
            "the store is from an older version of lot-grpc; start the server once with its model "
            f"({stored['embedding']['model']}), which updates it"
        )
    specs = registry.collection_specs(stored["embedding"]["dimensions"])
    await _open_collections(store, specs, stored.get(EPOCH, 0))
    return stored


async def _open_collections(
    store: VectorStore,
    specs: Sequence[CollectionSpec],
    epoch: int,
    progress: Progress | None = None,
) -> None:
    started, shown = time.monotonic(), False
    for first in range(0, len(specs), _AT_ONCE):
        some = specs[first : first + _AT_ONCE]
        await store.ensure_collections([stored_spec(spec, epoch) for spec in some])
        if progress and (shown or time.monotonic() - started > _QUIET_SECONDS):
            progress("opening the store", first + len(some), len(specs))
            shown = True


def same_model(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two embedding contracts make the same vectors; terms need no model."""
    return not _different(one, other)


async def read_metadata(store: VectorStore) -> Payload:
    """The stored metadata. Raises ``KeyError`` for a store that was never opened."""
    return (await store.get(META, META_NAMESPACE, [_POINT]))[_POINT].payload


async def update_metadata(store: VectorStore, changed: Mapping[str, Any], when: Where = ()) -> bool:
    """Set these keys of the stored metadata, all at once; False if ``when`` does not hold."""
    return await store.update(META, META_NAMESPACE, _POINT, set=changed, when=when)


def is_outdated(metadata: Mapping[str, Any]) -> bool:
    """Whether any terms or signatures are not those of this version."""
    return metadata.get(DERIVATION) != DERIVATION_VERSION or metadata.get(DERIVED_UP_TO) is not None


def check_derivation(metadata: Mapping[str, Any]) -> None:
    """Refuse a store whose terms or signatures a later version derived.

    Raises:
        SchemaVersionMismatchError: So it is.
    """
    stored = metadata.get(DERIVATION)
    if stored is None or _ordered(stored) <= _ordered(DERIVATION_VERSION):
        return
    raise SchemaVersionMismatchError(
        f"the store's terms and signatures are {stored}, which a newer version of lot-grpc wrote; "
        f"this one works with {DERIVATION_VERSION}: {_USE_ANOTHER}",
        stored=stored,
        supported=DERIVATION_VERSION,
    )


def _ordered(derivation: str) -> tuple[float, ...]:
    """What orders the names of derivations; one that is not of our form is later than all."""
    match = _DERIVATIONS.fullmatch(derivation)
    return tuple(map(int, match.groups())) if match else (float("inf"),)


def _check_schema(stored: int) -> None:
    if stored != SCHEMA_VERSION:
        raise SchemaVersionMismatchError(
            f"the store has schema version {stored}, this version of lot-grpc works with "
            f"{SCHEMA_VERSION}; {_USE_ANOTHER}",
            stored=stored,
            supported=SCHEMA_VERSION,
        )


def _check_embedding(stored: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    different = _different(stored, ours)
    if not different:
        return
    was = ", ".join(f"{key}={stored.get(key)}" for key in different)
    now = ", ".join(f"{key}={ours[key]}" for key in different)
    raise EmbeddingModelMismatchError(
        f"the store's vectors were made with {was}, but {now} is configured. Vectors of two models "
        f"cannot be compared: configure the stored model again ({_settings_of(stored, ours)}), or "
        "re-embed everything with the configured one by `lot-grpc reindex --offline`",
        stored=was,
        configured=now,
    )


def _different(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The keys that differ, except for the terms, which can be rebuilt without the model."""
    return [key for key in other if key != "tokenizer" and one.get(key) != other[key]]


def _settings_of(stored: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """The settings that choose the stored model."""
    model, configured = str(stored.get("model")), str(ours["model"])
    if model.startswith(REMOTE):
        return f"LOT_EMBEDDING_PROVIDER=openai, LOT_EMBEDDING_MODEL={model.removeprefix(REMOTE)}"
    provider = "LOT_EMBEDDING_PROVIDER=fastembed, " if configured.startswith(REMOTE) else ""
    return f"{provider}LOT_EMBEDDING_MODEL={model}, LOT_EMBEDDING_PATH"
