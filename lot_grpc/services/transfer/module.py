"""Export and import."""

from __future__ import annotations

from lot_grpc.services.operations import ResourcesByKind
from lot_grpc.services.record_embedder import RecordEmbedder
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.transfer.exporter import Exporter
from lot_grpc.services.transfer.importer import Importer


class TransferModule:
    """Export and import of records."""

    def __init__(self, runtime: Runtime, resources: ResourcesByKind) -> None:
        store, embedder = runtime.store, RecordEmbedder(runtime.model)
        self.exporter = Exporter(store, resources, runtime.retrievals)
        self.importer = Importer(runtime, embedder, resources)
