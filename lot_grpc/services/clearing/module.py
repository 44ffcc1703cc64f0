"""Namespaces as a whole: listing and clearing them."""

from __future__ import annotations

from lot_grpc.services.clearing.clearer import NamespaceClearer
from lot_grpc.services.clearing.namespaces import Namespaces
from lot_grpc.services.episodes.module import EpisodesModule
from lot_grpc.services.maintenance import Maintenance
from lot_grpc.services.runtime import Runtime


class ClearingModule:
    """Lists and clears namespaces. A clear stops the streams that record ``episodes``."""

    def __init__(self, runtime: Runtime, episodes: EpisodesModule) -> None:
        self.namespaces = Namespaces(runtime.store, runtime.registry, runtime.stack.clears)
        self.clearer = NamespaceClearer(runtime, episodes.active_streams, episodes.notifier)
        self.maintenance = Maintenance(recoveries={"clears": self.clearer.finish})
