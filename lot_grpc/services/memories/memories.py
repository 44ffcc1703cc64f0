"""Memories: create, read, edit, list, delete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lot_grpc.domain.errors import (
    LotError,
    MemoryNotFoundError,
)
from lot_grpc.domain.memory import Memory, MemoryContent, search_text
from lot_grpc.domain.query import MemoryFilter
from lot_grpc.kernel.compare_and_set import (
    ConflictError,
    compare_and_set,
    replace_as_read,
    require_etag,
)
from lot_grpc.kernel.create import CreateOnce
from lot_grpc.kernel.tombstones import Tombstone, Tombstones
from lot_grpc.ports import Record, VectorStore
from lot_grpc.services.expiry import check_expiry
from lot_grpc.services.indexer import Indexed, Indexer
from lot_grpc.services.memories.creating import Creating
from lot_grpc.services.memories.drafts import (
    RESOURCE_KIND,
    Created,
    MemoryDraft,
    MemoryEdit,
    Updated,
)
from lot_grpc.services.paging import Fits, Position, any_size, each, read_page
from lot_grpc.services.records.collections import MEMORIES, SORT_KEY
from lot_grpc.services.records.memories import (
    memory_conditions,
    memory_from_record,
    memory_point,
    memory_record,
    preserved_in_edits,
)
from lot_grpc.services.time_source import TimeSource

SEEN_KEYS = ("memory_id", "revision", SORT_KEY)
"""What ``delete_as_seen`` must know of a memory."""


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """A page of memories, newest first; ``next`` is None at the end."""

    memories: list[Memory]
    next: Position | None


class Memories:
    """The memories of all namespaces."""

    def __init__(
        self,
        store: VectorStore,
        indexer: Indexer,
        time_source: TimeSource,
        create: CreateOnce,
        tombstones: Tombstones,
    ) -> None:
        self._store = store
        self._indexer = indexer
        self._time = time_source
        self._tombstones = tombstones
        self._creating = Creating(store, indexer, time_source, create)

    async def create(self, namespace: str, draft: MemoryDraft) -> Created:
        """Create a memory.

        Raises MemoryIdInUseError, RequestIdReusedError, RequestInvalidError; MemoryNotFoundError
        where a repeat meets what was deleted since.
        """
        result = (await self.create_many(namespace, [draft]))[0]
        if isinstance(result, LotError):
            raise result
        return result

    async def create_many(
        self, namespace: str, drafts: Sequence[MemoryDraft]
    ) -> list[Created | LotError]:
        """Create each as ``create`` would; one result each, in order. Store errors end the call."""
        return await self._creating.create_many(namespace, drafts)

    async def get(self, namespace: str, memory_id: str) -> Memory:
        """One memory. Raises MemoryNotFoundError."""
        return memory_from_record(await self._record(namespace, memory_id))

    async def read(self, record: Record) -> Memory:
        """The memory of a record that recall found."""
        return memory_from_record(record)

    async def list_page(
        self,
        namespace: str,
        criteria: MemoryFilter,
        size: int,
        after: Position | None,
        fits: Fits[Memory] = any_size,
    ) -> MemoryPage:
        """A page, newest first."""
        where, read = memory_conditions(criteria), each(memory_from_record)
        found = await read_page(self._store, MEMORIES, namespace, where, size, after, read, fits)
        return MemoryPage(*found)

    # --- editing ------------------------------------------------------------------------------

    async def update(self, namespace: str, memory_id: str, edit: MemoryEdit, etag: str) -> Updated:
        """Apply an edit to the memory that has ``etag`` (empty: any).

        Raises MemoryNotFoundError, EtagMismatchError, RequestInvalidError.
        """

        async def attempt() -> Updated:
            record = await self._record(namespace, memory_id, vectors=True)
            memory, now = memory_from_record(record), self._time.now()
            require_etag(RESOURCE_KIND, memory_id, etag, memory.etag)
            content = edit.apply(memory.content, now)
            content.check()
            if content.expire_time != memory.content.expire_time:
                check_expiry(RESOURCE_KIND, content.expire_time, now)
            if content == memory.content:
                return Updated(memory)
            indexed = await self._indexed(memory.content, content, record)
            edited = replace(
                memory,
                content=content,
                revision=memory.revision + 1,
                update_time=max(now, memory.update_time),
            )
            unchanged_fields = preserved_in_edits(record.payload)
            new = memory_record(edited, record.payload[SORT_KEY], indexed.vectors, unchanged_fields)
            await replace_as_read(self._store, MEMORIES, record, new, "revision", SORT_KEY)
            return Updated(edited, indexed.text_truncated)

        return await compare_and_set(RESOURCE_KIND, memory_id, attempt)

    async def _indexed(self, old: MemoryContent, new: MemoryContent, record: Record) -> Indexed:
        if search_text(new) == search_text(old):
            return Indexed(dict(record.vectors))
        return await self._indexer.vectors_of(search_text(new))

    # --- deleting -----------------------------------------------------------------------------

    async def delete(self, namespace: str, memory_id: str, etag: str) -> None:
        """Delete one. Raises MemoryNotFoundError, EtagMismatchError."""

        async def attempt() -> None:
            record = await self._record(namespace, memory_id)
            require_etag(RESOURCE_KIND, memory_id, etag, memory_from_record(record).etag)
            if not await self.delete_as_seen(record):
                raise ConflictError

        await compare_and_set(RESOURCE_KIND, memory_id, attempt)

    async def delete_as_seen(self, record: Record) -> bool:
        """Delete a memory that is still as its record says, read with ``SEEN_KEYS`` at least.

        False for one that was edited since.
        """
        stone = await self._tombstones.begin(RESOURCE_KIND, record.payload["memory_id"], record)
        return await self.finish_delete(stone)

    async def finish_delete(self, stone: Tombstone) -> bool:
        """Carry out a delete that was written down; False if the memory was edited since."""
        point = memory_point(stone.namespace, stone.id)
        return await self._tombstones.carry_out(stone, MEMORIES, point)

    async def _record(self, namespace: str, memory_id: str, *, vectors: bool = False) -> Record:
        point = memory_point(namespace, memory_id)
        found = await self._store.get(MEMORIES, namespace, [point], vectors=vectors)
        if point not in found:
            raise MemoryNotFoundError(namespace, memory_id)
        return found[point]
