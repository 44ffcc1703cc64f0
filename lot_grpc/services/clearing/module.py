"""Namespaces as a whole, listed and cleared, and what in them belongs to a subject."""

from __future__ import annotations

from lot_grpc.services.clearing.clearer import NamespaceClearer
from lot_grpc.services.clearing.namespaces import Namespaces
from lot_grpc.services.clearing.subject_eraser import SubjectEraser
from lot_grpc.services.episodes.module import EpisodesModule
from lot_grpc.services.maintenance import Maintenance
from lot_grpc.services.operations import ResourcesByKind
from lot_grpc.services.runtime import Runtime


class ClearingModule:
    """Lists and clears namespaces, and erases what belongs to a subject.

    A clear stops the streams that record ``episodes``.
    """

    def __init__(
        self, runtime: Runtime, episodes: EpisodesModule, resources: ResourcesByKind
    ) -> None:
        self.namespaces = Namespaces(runtime.store, runtime.registry, runtime.stack.clears)
        self.clearer = NamespaceClearer(runtime, episodes.active_streams, episodes.notifier)
        self.eraser = SubjectEraser(runtime, resources)
        self.maintenance = Maintenance(
            recoveries={"clears": self.clearer.finish, "erasures": self.eraser.finish}
        )
