"""Distillation: one pattern of many that are alike."""

from __future__ import annotations

from lot_grpc.services.distillation.distiller import Distiller
from lot_grpc.services.distillation.schedule import DistillSchedule
from lot_grpc.services.maintenance import Maintenance
from lot_grpc.services.runtime import Runtime


class DistillationModule:
    """Who distils, when asked and by itself."""

    def __init__(self, runtime: Runtime) -> None:
        store, time, learning = runtime.store, runtime.time, runtime.settings.learning
        self.distiller = Distiller(store, runtime.indexer, time, learning.distill)
        self.schedule = DistillSchedule(store, time, self.distiller, learning.interval)
        self.maintenance = Maintenance(sweeps={"distillation": self.schedule.sweep})
