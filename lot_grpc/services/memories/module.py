"""Memories: created, read, edited, deleted."""

from __future__ import annotations

from lot_grpc.domain.memory import Memory
from lot_grpc.services.lineage.lineage import Lineage
from lot_grpc.services.maintenance import Maintenance
from lot_grpc.services.memories.bulk_deleter import MemoryBulkDeleter
from lot_grpc.services.memories.indexing import STEP_SECONDS, MemoryIndexing
from lot_grpc.services.memories.memories import Memories
from lot_grpc.services.memories.passages import PassageMatcher
from lot_grpc.services.memories.spec import MEMORY
from lot_grpc.services.records.memories import begin_of
from lot_grpc.services.runtime import Runtime


class MemoriesModule:
    """Everything about memories except recall."""

    def __init__(self, runtime: Runtime) -> None:
        self.indexing = MemoryIndexing(runtime)
        self.lineage = lineage = Lineage[Memory](MEMORY, runtime.store, runtime.time, begin_of)
        self.memories = Memories(runtime, self.indexing, lineage)
        self.passages = PassageMatcher(runtime.store)
        self.bulk_deleter = MemoryBulkDeleter(runtime.store, self.memories)
        self.maintenance = Maintenance(
            recoveries={
                "memories": self.indexing.resume,
                "memory lineage": lineage.roll_forward,
            },
            periodic={"memories": (STEP_SECONDS, self.indexing.step)},
        )
