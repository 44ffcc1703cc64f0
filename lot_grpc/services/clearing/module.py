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
        stack, streams = runtime.stack, episodes.active_streams
        self.namespaces = Namespaces(runtime.store, runtime.registry, stack.clears)
        self.clearer = NamespaceClearer(
            stack, runtime.time, streams, episodes.notifier, runtime.retrievals
        )
        self.maintenance = Maintenance(recoveries={"clears": self.clearer.finish})
