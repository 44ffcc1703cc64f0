"""Memories: created, read, edited, deleted."""

from __future__ import annotations

from lot_grpc.services.maintenance import Maintenance
from lot_grpc.services.memories.bulk_deleter import MemoryBulkDeleter
from lot_grpc.services.memories.indexing import STEP_SECONDS, MemoryIndexing
from lot_grpc.services.memories.memories import Memories
from lot_grpc.services.memories.passages import PassageMatcher
from lot_grpc.services.runtime import Runtime


class MemoriesModule:
    """Everything about memories except recall."""

    def __init__(self, runtime: Runtime) -> None:
        self.indexing = MemoryIndexing(runtime)
        self.memories = Memories(runtime, self.indexing)
        self.passages = PassageMatcher(runtime.store)
        self.bulk_deleter = MemoryBulkDeleter(runtime.store, self.memories)
        self.maintenance = Maintenance(
            recoveries={"memories": self.indexing.resume},
            periodic={"memories": (STEP_SECONDS, self.indexing.step)},
        )
