"""The services over the embedded store and the models, with a clock that tests move."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from lot_grpc.adapters import make_reranker, open_served_embedder
from lot_grpc.cli.start import begin
from lot_grpc.ports import Embedder, Reranker
from lot_grpc.services.build import Services
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.runtime import open_runtime
from lot_grpc.services.store_metadata import open_store
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.testing.faults import FaultInjectingStore
from tests.contract.clock import FixedClock


@dataclass
class RealWorld:
    """One process. ``store`` dies where it is told to."""

    store: FaultInjectingStore
    clock: FixedClock
    embedder: Embedder
    reranker: Reranker
    services: Services

    async def restart(self) -> None:
        """A new process over what the one before left, which finishes what was begun."""
        self.store.revive()
        self.services = _services(self.store, self.clock, self.embedder, self.reranker)
        await self.services.runtime.stack.sequencer.open()
        await self.services.housekeeping.roll_forward(starting=True)


@asynccontextmanager
async def real_world(folder: Path) -> AsyncIterator[RealWorld]:
    """An empty store in ``folder``."""
    settings, clock = begin(None), FixedClock()
    embedder, reranker = await open_served_embedder(settings, None), make_reranker(settings)
    store = FaultInjectingStore(EdgeStore(folder, clock, min_free_bytes=0, sync_always=False))
    await open_store(store, REGISTRY, embedder.contract)
    services = _services(store, clock, embedder, reranker)
    await services.runtime.stack.sequencer.open()
    try:
        yield RealWorld(store, clock, embedder, reranker, services)
    finally:
        await reranker.close()
        await embedder.close()
        await store.inner.close()


def _services(
    store: FaultInjectingStore, clock: FixedClock, embedder: Embedder, reranker: Reranker
) -> Services:
    return Services(open_runtime(store, REGISTRY, embedder, reranker, clock))
