"""Memories: creating, reading, editing, listing, deleting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import (
    LotError,
)
from lot_grpc.domain.memory import IndexingState, Memory, search_text
from lot_grpc.domain.query import MemoryFilter
from lot_grpc.kernel.compare_and_set import (
    ConflictError,
    as_read,
    compare_and_set,
)
from lot_grpc.ports import Record, Vector
from lot_grpc.services.expiry import check_expiry
from lot_grpc.services.indexer import Indexed
from lot_grpc.services.lineage.lineage import Lineage
from lot_grpc.services.lineage.resources import SupersedingResources
from lot_grpc.services.memories.conflict_finder import ConflictFinder
from lot_grpc.services.memories.drafts import (
    Created,
    MemoryDraft,
    MemoryEdit,
    Updated,
)
from lot_grpc.services.memories.indexing import MemoryIndexing
from lot_grpc.services.memories.memory_creator import MemoryCreator
from lot_grpc.services.memories.spec import MEMORY
from lot_grpc.services.records.collections import MEMORIES, SORT_KEY, TEXT_VECTOR
from lot_grpc.services.records.counters import STATS_REVISION
from lot_grpc.services.records.memories import (
    INDEXING,
    memory_from_record,
    memory_record,
    preserved_in_edits,
)
from lot_grpc.services.runtime import Runtime

_SEEN = ("revision", INDEXING, STATS_REVISION)


class Memories(SupersedingResources[Memory, MemoryFilter]):
    """The memories of all namespaces."""

    def __init__(
        self, runtime: Runtime, indexing: MemoryIndexing, lineage: Lineage[Memory]
    ) -> None:
        super().__init__(MEMORY, runtime, lineage)
        self._indexing = indexing
        self._policies = runtime.policies
        self._conflicts = ConflictFinder(runtime)
        self._creator = MemoryCreator(runtime, indexing, lineage, self._conflicts)

    async def read(self, record: Record) -> Memory:
        """The memory of a record, with a problem that could not be stored."""
        return self._indexing.with_problem(memory_from_record(record))

    async def create(self, namespace: str, draft: MemoryDraft) -> Created:
        """Create a memory.

        Raises MemoryIdInUseError, RequestIdReusedError, RequestInvalidError; MemoryNotFoundError
        where it is to supersede what is not there, or a repeat meets what was deleted since.
        """
        result = (await self.create_many(namespace, [draft]))[0]
        if isinstance(result, LotError):
            raise result
        return result

    async def create_many(
        self, namespace: str, drafts: Sequence[MemoryDraft]
    ) -> list[Created | LotError]:
        """Create each as ``create`` would; one result each, in order. Store errors end the call."""
        return await self._creator.create_many(namespace, drafts)

    # --- editing ------------------------------------------------------------------------------

    async def update(self, namespace: str, memory_id: str, edit: MemoryEdit, etag: str) -> Updated:
        """Apply an edit to the memory that has ``etag`` (empty: any).

        Raises MemoryNotFoundError (also for what it is to supersede), EtagMismatchError,
        RequestInvalidError, OriginReservedError, OriginRaisedError, ContentionError.
        """
        known: dict[str, Vector] = {}

        async def attempt() -> Updated:
            record = await self.read_record(namespace, memory_id, vectors=True, etag=etag)
            memory, now = memory_from_record(record), self._time.now()
            content = edit.apply(memory.content, now)
            content = edit.editor.apply(memory.content, content, ResourceKind.MEMORY, memory_id)
            content.check(memory.create_time)
            if content.expire_time != memory.content.expire_time:
                check_expiry(ResourceKind.MEMORY, content.expire_time, now)
            if content == memory.content:
                return Updated(memory)
            edited = replace(
                memory,
                content=content,
                revision=memory.revision + 1,
                update_time=max(now, memory.update_time),
                review=await self._policies.review_of_edit(memory, content, edit.editor),
            )
            indexed = Indexed(dict(record.vectors))
            text, old_text = search_text(content), search_text(memory.content)
            if text != old_text:
                [indexed] = await self._indexer.first_vectors([text])
                known[memory_id] = indexed.vectors[TEXT_VECTOR]
                state = IndexingState.PENDING if indexed.pending else IndexingState.COMPLETE
                edited = replace(edited, indexing=state, indexing_problem="")
            unchanged_fields = preserved_in_edits(record.payload)
            new = memory_record(edited, record.payload[SORT_KEY], indexed.vectors, unchanged_fields)
            write = partial(self._store.replace, MEMORIES, new, as_read(record, *_SEEN))
            if not await self._lineage.carry_out(record, new.payload, write):
                raise ConflictError
            return Updated(edited, indexed.text_truncated, indexed.pending, text != old_text)

        updated = await compare_and_set(ResourceKind.MEMORY, memory_id, attempt)
        self._indexing.add(updated.memory, changed=updated.reindexed)
        if not updated.reworded:
            return updated
        [conflicts] = await self._conflicts.of(namespace, [updated.memory], known)
        return replace(updated, conflicts=conflicts)
