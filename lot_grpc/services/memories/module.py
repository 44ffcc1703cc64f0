"""Memories: created, read, edited, deleted."""

from __future__ import annotations

from lot_grpc.services.memories.bulk_deleter import MemoryBulkDeleter
from lot_grpc.services.memories.memories import Memories
from lot_grpc.services.memories.passages import PassageMatcher
from lot_grpc.services.runtime import Runtime


class MemoriesModule:
    """Everything about memories except recall."""

    def __init__(self, runtime: Runtime) -> None:
        self.memories = Memories(runtime)
        self.passages = PassageMatcher(runtime.store)
        self.bulk_deleter = MemoryBulkDeleter(runtime.store, self.memories)
