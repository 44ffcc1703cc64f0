"""Deletes memories by a filter.

They are selected first, then each is deleted individually (``Memories.delete_as_seen``), on the
condition that it has not changed; one edited in the meantime is examined again. A call that dies
half-way has deleted some of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import invalid
from lot_grpc.domain.query import MemoryFilter
from lot_grpc.kernel.compare_and_set import ConflictError, compare_and_set
from lot_grpc.ports import Condition, Equals, IdIn, Record, VectorStore
from lot_grpc.services.memories.memories import Memories
from lot_grpc.services.memories.spec import MEMORY
from lot_grpc.services.records.collections import MEMORIES
from lot_grpc.services.records.memories import memory_conditions
from lot_grpc.services.scanning import scan
from lot_grpc.services.time_slice import TimeSlice

IDS_REPORTED = 100
"""How many of the deleted are named."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """What was or would be deleted; ``memory_ids``: the first of them, oldest first."""

    count: int
    memory_ids: tuple[str, ...]


class MemoryBulkDeleter:
    """Deletes memories by a filter."""

    def __init__(self, store: VectorStore, memories: Memories) -> None:
        self._store = store
        self._memories = memories

    async def delete(self, namespace: str, criteria: MemoryFilter, *, dry_run: bool) -> Deleted:
        """Delete all that match a filter, except pinned ones unless the filter selects them.

        Raises RequestInvalidError for a filter that matches everything, ContentionError if a memory
        keeps being edited.
        """
        where = memory_conditions(criteria)
        if not where:
            raise invalid(
                "filter",
                "delete_memories.filter",
                "an empty filter would delete everything; set a condition (max_importance 1 "
                "matches all memories; pinned ones remain)",
            )
        if criteria.pinned is None:
            where.append(Equals("pinned", False))
        doomed = await self._doomed(namespace, where)
        if dry_run:
            return _deleted(doomed)
        gone: list[Record] = []

        async def attempt() -> Deleted:
            nonlocal doomed
            spared = await self._delete(doomed, gone)
            if spared:
                ids = IdIn(tuple(record.id for record in spared))
                doomed = await self._doomed(namespace, [*where, ids])
                raise ConflictError
            return _deleted(gone)

        name = doomed[0].payload["memory_id"] if doomed else ""
        return await compare_and_set(ResourceKind.MEMORY, name, attempt)

    async def _doomed(self, namespace: str, where: Sequence[Condition]) -> list[Record]:
        records = scan(self._store, MEMORIES, namespace, where, payload=MEMORY.seen_keys)
        return [record async for record in records]

    async def _delete(self, doomed: Sequence[Record], gone: list[Record]) -> list[Record]:
        """Delete them; return those that were edited in the meantime."""
        time_slice = TimeSlice()
        spared: list[Record] = []
        for record in doomed:
            deleted = await self._memories.delete_as_seen(record)
            (gone if deleted else spared).append(record)
            await time_slice.give_way()
        return spared


def _deleted(records: Sequence[Record]) -> Deleted:
    ids = (record.payload["memory_id"] for record in records[:IDS_REPORTED])
    return Deleted(len(records), tuple(ids))
