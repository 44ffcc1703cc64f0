"""Policies of namespaces, and the sweep that enforces them."""

from __future__ import annotations

from lot_grpc.services.maintenance import Maintenance
from lot_grpc.services.operations import ResourcesByKind
from lot_grpc.services.retention.sweep import RetentionSweep
from lot_grpc.services.runtime import Runtime


class RetentionModule:
    """Policies and their sweep."""

    def __init__(self, runtime: Runtime, resources: ResourcesByKind) -> None:
        self.policies = runtime.policies
        self.sweep = RetentionSweep(runtime, self.policies, resources)
        self.maintenance = Maintenance(sweeps={"retention": self.sweep.sweep})
