"""Re-embeds a store with the configured model while no server has it open."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass

from lot_grpc.adapters import make_store, open_embedder, require_store
from lot_grpc.clock import SystemClock
from lot_grpc.domain.counting import counted
from lot_grpc.domain.errors import StartupError
from lot_grpc.ports import VectorStore
from lot_grpc.reports import Progress
from lot_grpc.services.changes.replicas import SILENT, ReplicaRegistry
from lot_grpc.services.reindex.vector_rebuild import VectorRebuild, drop_stale
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.store_metadata import open_as_stored
from lot_grpc.settings import Settings


@dataclass(frozen=True, slots=True)
class ReindexReport:
    """The result. ``embedded`` records, not counting those of earlier attempts."""

    former: str
    model: str
    dimensions: int
    embedded: int
    total: int
    seconds: float

    @property
    def changed(self) -> bool:
        """Whether the store had a different model."""
        return self.former != self.model or self.embedded > 0


async def reindex_offline(settings: Settings, progress: Progress | None = None) -> ReindexReport:
    """Re-embed under the store's lock. If interrupted, the next call resumes.

    Raises:
        StartupError: A server has the store open, the store is empty or of an older version, or the
            model cannot be opened.
        EmbeddingFailedError: The model failed on a text.
    """
    require_store(settings)
    started = time.monotonic()
    async with AsyncExitStack() as stack:
        embedder = await open_embedder(settings, progress)
        stack.push_async_callback(embedder.close)
        store = make_store(settings)
        stack.push_async_callback(store.close)
        stored = await open_as_stored(store, REGISTRY)
        if not store.exclusive:
            await _require_nobody(store)
        rebuilding = VectorRebuild(store, REGISTRY, embedder, nullcontext)
        total, embedded = await rebuilding.total(), 0
        if await rebuilding.begin():
            done = total - await rebuilding.left()
            embedded = -done

            def report_progress(collection: str, count: int) -> None:
                nonlocal done
                done += count
                if progress:
                    progress(f"embedding {collection}", min(done, total), total)

            while await rebuilding.left():
                await rebuilding.embed_all(report_progress)
            await rebuilding.name_it()
            await drop_stale(store, REGISTRY)
            embedded += done
        contract = embedder.contract
        return ReindexReport(
            former=stored["embedding"]["model"],
            model=contract.model,
            dimensions=contract.dimensions,
            embedded=embedded,
            total=total,
            seconds=time.monotonic() - started,
        )


async def _require_nobody(store: VectorStore) -> None:
    """Refuse a shared store that a server is using, or was using a moment ago."""
    now = SystemClock().now()
    alive = [one for one in await ReplicaRegistry(store).all() if one.seen_time > now - SILENT]
    if alive:
        raise StartupError(
            f"{counted(len(alive), 'server')} used this store within the last "
            f"{SILENT // 1_000_000} s; stop all servers, wait that long, and run this again",
            servers=len(alive),
        )
