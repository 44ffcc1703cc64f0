"""Memories: create, read, delete, search."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from lot_grpc.domain.errors import (
    EtagMismatchError,
    MemoryIdInUseError,
    MemoryNotFoundError,
)
from lot_grpc.domain.ids import content_hash, new_id
from lot_grpc.domain.memory import Memory, MemoryContent, search_text
from lot_grpc.domain.sameness import same_content
from lot_grpc.ports import Equals, IdIn, Record, VectorStore
from lot_grpc.services.expiry import check_expiry, with_ttl
from lot_grpc.services.indexing import Indexing
from lot_grpc.services.ledger import Ask, Entry, Ledger
from lot_grpc.services.moments import Moments
from lot_grpc.services.records.collections import MEMORIES, SORT_KEY
from lot_grpc.services.records.memories import (
    memory_from_record,
    memory_point,
    memory_record,
)
from lot_grpc.services.tombstones import Tombstone, Tombstones

NOUN = "memory"
_METHOD = "CreateMemory"

SEEN_KEYS = ("memory_id", "revision", SORT_KEY)
"""What ``delete_as_seen`` must know of a memory."""


@dataclass(frozen=True, slots=True)
class MemoryDraft:
    """A memory to create. ``ttl`` in microseconds, instead of ``content.expire_time``."""

    content: MemoryContent
    memory_id: str = ""
    request_id: str = ""
    ttl: int | None = None

    def hash(self) -> str:
        """The same for the same request."""
        return content_hash([asdict(self.content), self.memory_id, self.ttl])


@dataclass(frozen=True, slots=True)
class Created:
    """A created memory. ``truncated``: the model did not read all of its text."""

    memory: Memory
    created: bool
    truncated: bool = False


class Memories:
    """The memories of all namespaces."""

    def __init__(
        self,
        store: VectorStore,
        indexing: Indexing,
        moments: Moments,
        ledger: Ledger,
        tombstones: Tombstones,
    ) -> None:
        self._store = store
        self._indexing = indexing
        self._moments = moments
        self._ledger = ledger
        self._tombstones = tombstones

    async def create(self, namespace: str, draft: MemoryDraft) -> Created:
        """Create a memory. Raises MemoryIdInUseError, RequestIdReusedError."""
        check_expiry(NOUN, draft.content.expire_time, self._moments.now())
        memory_id = draft.memory_id or new_id("m")
        entry = None
        if draft.request_id:
            plan = {"memory_id": memory_id}
            ask = Ask(namespace, _METHOD, draft.request_id, draft.hash(), plan)
            entry = await self._ledger.begin(ask)
            memory_id = entry.plan["memory_id"]
            if not entry.first:
                earlier = await self._earlier(namespace, memory_id, draft, entry)
                if earlier is not None:
                    return earlier
        created = await self._write(namespace, memory_id, draft, entry)
        if entry is not None:
            await self._ledger.finish(entry, {"memory_id": memory_id, "created": created.created})
        return created

    async def _earlier(
        self, namespace: str, memory_id: str, draft: MemoryDraft, entry: Entry
    ) -> Created | None:
        """The answer to a repeat; None if the first try did not get as far as the memory."""
        record = await self._record(namespace, memory_id)
        if record is not None:
            created = entry.result["created"] if entry.result else True
            if entry.result is None:
                _require_same(namespace, memory_id, memory_from_record(record), draft.content)
                await self._ledger.finish(entry, {"memory_id": memory_id, "created": created})
            return Created(memory_from_record(record), created)
        stone = await self._tombstones.find(namespace, NOUN, memory_id)
        if entry.result or (stone and stone.delete_time >= entry.create_time):
            raise MemoryNotFoundError(
                namespace, memory_id, "it was deleted after this request created it"
            )
        return None

    async def _write(
        self, namespace: str, memory_id: str, draft: MemoryDraft, entry: Entry | None
    ) -> Created:
        indexed = await self._indexing.vectors_of(search_text(draft.content))
        now = self._moments.now()
        content = with_ttl(draft.content, draft.ttl, now)
        memory = Memory(namespace, memory_id, content, 1, now, now)
        record = memory_record(memory, self._moments.sort_key(), indexed.vectors)
        if record.id in await self._store.insert(MEMORIES, [record]):
            return Created(memory, created=True, truncated=indexed.text_truncated)
        stored = await self.get(namespace, memory_id)
        _require_same(namespace, memory_id, stored, content)
        return Created(stored, created=False)

    async def get(self, namespace: str, memory_id: str) -> Memory:
        """One memory. Raises MemoryNotFoundError."""
        record = await self._record(namespace, memory_id)
        if record is None:
            raise MemoryNotFoundError(namespace, memory_id)
        return memory_from_record(record)

    async def delete(self, namespace: str, memory_id: str, etag: str) -> None:
        """Delete one. Raises MemoryNotFoundError, EtagMismatchError."""
        while True:
            record = await self._record(namespace, memory_id)
            if record is None:
                raise MemoryNotFoundError(namespace, memory_id)
            memory = memory_from_record(record)
            if etag and etag != memory.etag:
                raise EtagMismatchError(NOUN, memory_id, etag, memory.etag)
            stone = await self._tombstones.begin(NOUN, memory_id, record)
            if await self.finish_delete(stone):
                return

    async def delete_as_seen(self, record: Record) -> bool:
        """Delete a memory that is still as its record says, read with ``SEEN_KEYS`` at least.

        False for one that was edited since.
        """
        stone = await self._tombstones.begin(NOUN, record.payload["memory_id"], record)
        return await self.finish_delete(stone)

    async def finish_delete(self, stone: Tombstone) -> bool:
        """Carry out a delete that was written down; False if the memory was edited since."""
        point = memory_point(stone.namespace, stone.id)
        one = Equals(SORT_KEY, stone.sort_key)
        await self._store.delete(
            MEMORIES, stone.namespace, [IdIn((point,)), Equals("revision", stone.revision), one]
        )
        left = (await self._store.get(MEMORIES, stone.namespace, [point])).get(point)
        await self._tombstones.finish(stone)
        return left is None or left.payload[SORT_KEY] != stone.sort_key

    async def read(self, record: Record) -> Memory:
        """The memory of a record that recall found."""
        return memory_from_record(record)

    async def _record(self, namespace: str, memory_id: str) -> Record | None:
        point = memory_point(namespace, memory_id)
        return (await self._store.get(MEMORIES, namespace, [point])).get(point)


def _require_same(namespace: str, memory_id: str, stored: Memory, given: MemoryContent) -> None:
    """Refuse to take another memory of this id for the one given; a ttl moves its expiry."""
    if not same_content(stored.content, given):
        raise MemoryIdInUseError(namespace, memory_id)
