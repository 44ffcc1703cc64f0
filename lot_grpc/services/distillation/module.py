"""Distillation: one pattern from many similar ones."""

from __future__ import annotations

from lot_grpc.services.distillation.distiller import Distiller
from lot_grpc.services.distillation.schedule import DistillSchedule
from lot_grpc.services.maintenance import Maintenance
from lot_grpc.services.runtime import Runtime


class DistillationModule:
    """Distils on request and periodically."""

    def __init__(self, runtime: Runtime) -> None:
        store, time, learning = runtime.store, runtime.time, runtime.settings.learning
        self.distiller = Distiller(store, runtime.indexer, time, runtime.policies, learning.distill)
        self.schedule = DistillSchedule(store, time, self.distiller, learning.interval)
        self.maintenance = Maintenance(sweeps={"distillation": self.schedule.sweep})
