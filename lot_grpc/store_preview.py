"""Describes a store that the next start would create or complete, without creating anything."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lot_grpc.adapters import make_qdrant_store, make_store
from lot_grpc.domain.counting import counted
from lot_grpc.domain.errors import StartupError
from lot_grpc.ports import CollectionSpec, EmbeddingContract, StoreInfo
from lot_grpc.services.records.collections import META
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.store_metadata import check_metadata
from lot_grpc.settings import Settings
from lot_grpc.storage.edge_shard import shard_folders
from lot_grpc.storage.lock import LOCK_NAME, FolderLock
from lot_grpc.storage.manifest import COUNTS_NAME, FILES_NAME
from lot_grpc.storage.space import SpaceGuard


async def missing_collections(settings: Settings) -> Sequence[str]:
    """The collections that a start would create; with the embedded store, all or none.

    Raises:
        StoreUnavailableError: The Qdrant server does not respond.
    """
    if settings.storage.store == "edge":
        there = {shard.name for shard in shard_folders(settings.storage.data_dir)}
        if META in there:  # the others are created with their first records
            return ()
    else:
        store = make_qdrant_store(settings)
        try:
            there = await store.collections()
        finally:
            await store.close()
    return sorted(name for name in REGISTRY.collections if name not in there)


async def preview(
    settings: Settings, contract: EmbeddingContract, missing: Sequence[str]
) -> tuple[StoreInfo, str]:
    """What exists, and a sentence on what the next start would create.

    Raises:
        LotError: A start would fail.
    """
    edge = settings.storage.store == "edge"
    if (
        META in missing
        and edge
        and not any(
            (settings.storage.data_dir / name).exists() for name in (FILES_NAME, COUNTS_NAME)
        )
    ):
        info = _no_store_yet(settings.storage.data_dir, settings.storage.min_free_bytes)
        return info, f"the first start creates it in {info.location}"
    store = make_store(settings)
    try:
        if META not in missing:
            await store.ensure_collections([CollectionSpec(META)])
            await check_metadata(store, contract)
        info = await store.info()
    finally:
        await store.close()
    if META in missing:
        return info, f"the first start creates its collections on {info.location}"
    return info, (
        f"{info.location} lacks {counted(len(missing), 'collection')} ({', '.join(missing)}); "
        "the next start creates what is missing"
    )


def _no_store_yet(folder: Path, min_free_bytes: int) -> StoreInfo:
    """Check that a store could be created there. Raises StartupError."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        why = "is not a folder" if not there.is_dir() else "cannot be written by this user"
        raise StartupError(
            f"cannot use the data folder {folder}: {there} {why}; choose a folder this user can "
            "write to",
            path=folder,
        )
    if (folder / LOCK_NAME).exists():
        FolderLock(folder).release()
    space = SpaceGuard(there, min_free_bytes)
    space.require_open()
    free = space.free()
    return StoreInfo("edge", str(folder), {}, free_bytes=free, writable=free >= min_free_bytes)


@contextmanager
def leaving_no_files(folder: Path) -> Iterator[None]:
    """Remove the lock and other files that opening a store leaves, unless they existed before."""
    before = set(folder.iterdir()) if folder.is_dir() else set()
    try:
        yield
    finally:
        if folder.is_dir():
            for path in set(folder.iterdir()) - before:
                if path.is_file():
                    path.unlink(missing_ok=True)
