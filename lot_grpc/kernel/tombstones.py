"""Tombstones: a delete is recorded first, so that an interrupted one is finished.

A tombstone also tells a late retry that what it would write again has been deleted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from lot_grpc.domain.ids import point_id
from lot_grpc.kernel.idempotency import IdempotencyRecord
from lot_grpc.kernel.intents import SORT_KEY, recover
from lot_grpc.ports import Clock, Condition, Equals, IdIn, Record, VectorStore

TOMBSTONES = "tombstones"
"""The collection."""

DELETED_SINCE = "it was deleted after this request's first attempt, or has expired"
"""Message of the error that a repeated request gets."""

DropDependents = Callable[[Record | None], Awaitable[object]]
"""Deletes what hangs on a deleted record, given the one that took its id since, if there is one."""


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A delete of (kind, id) at one revision. ``done`` once it is complete.

    ``revision`` is 0 where the record has none. ``sort_key`` is the record's.
    """

    namespace: str
    resource_kind: str
    id: str
    revision: int
    sort_key: int
    delete_time: int
    done: bool
    unchanged: Mapping[str, int] = field(default_factory=dict)
    """Further keys of the record that must be as they were, or the delete is given up."""

    def conditions(self) -> list[Condition]:
        """The conditions on the record to delete."""
        as_it_was = {SORT_KEY: self.sort_key, **self.unchanged}
        if self.revision:
            as_it_was["revision"] = self.revision
        return [Equals(key, value) for key, value in as_it_was.items()]


class Tombstones:
    """The tombstones of all kinds of records."""

    def __init__(self, store: VectorStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def begin(
        self, resource_kind: str, id: str, record: Record, unchanged: Sequence[str] = ()
    ) -> Tombstone:
        """Record that a record, in its current state, is about to be deleted.

        ``unchanged`` names further integers of the record on whose change it is given up.
        """
        namespace, payload = record.namespace, record.payload
        stone = Tombstone(
            namespace,
            resource_kind,
            id,
            payload.get("revision", 0),
            payload[SORT_KEY],
            self._clock.now(),
            done=False,
            unchanged={key: payload[key] for key in unchanged},
        )
        written = {
            "resource_kind": resource_kind,
            "id": id,
            "revision": stone.revision,
            SORT_KEY: stone.sort_key,
            "delete_time": stone.delete_time,
            "done": False,
        }
        if stone.unchanged:
            written["unchanged"] = dict(stone.unchanged)
        await self._store.put(
            TOMBSTONES, [Record(_point(namespace, resource_kind, id), namespace, written)]
        )
        return stone

    async def carry_out(
        self,
        stone: Tombstone,
        collection: str,
        point: str,
        drop_dependents: DropDependents | None = None,
    ) -> bool:
        """Delete the record, then what belongs to it; False if it has changed and stays."""
        namespace = stone.namespace
        await self._store.delete(collection, namespace, [IdIn((point,)), *stone.conditions()])
        left = (await self._store.get(collection, namespace, [point])).get(point)
        deleted = left is None or left.payload[SORT_KEY] != stone.sort_key
        if deleted and drop_dependents is not None:
            await drop_dependents(left)
        await self.finish(stone)
        return deleted

    async def finish(self, stone: Tombstone) -> None:
        """Mark a delete as done."""
        point = _point(stone.namespace, stone.resource_kind, stone.id)
        ours = [Equals("revision", stone.revision), Equals(SORT_KEY, stone.sort_key)]
        await self._store.update(TOMBSTONES, stone.namespace, point, set={"done": True}, when=ours)

    async def find(self, namespace: str, resource_kind: str, id: str) -> Tombstone | None:
        """The latest delete of an id, if there ever was one."""
        point = _point(namespace, resource_kind, id)
        found = await self._store.get(TOMBSTONES, namespace, [point])
        return _tombstone(found[point]) if point in found else None

    async def deleted_since(
        self, entry: IdempotencyRecord, resource_kind: str, id: str, record: Record | None = None
    ) -> bool:
        """Whether the record of a request was deleted or has expired since.

        ``record`` is what has its id now: the same one, or another. False if no try of the request
        got as far as writing it.
        """
        if entry.result is not None:
            return record is None or not entry.is_about(record)
        return await self.deleted_after(
            entry.namespace, resource_kind, id, entry.create_time, record
        )

    async def deleted_after(
        self, namespace: str, resource_kind: str, id: str, time: int, record: Record | None = None
    ) -> bool:
        """Whether a delete was begun at a time or later, and ``record`` is not what it deletes."""
        stone = await self.find(namespace, resource_kind, id)
        if stone is None or stone.delete_time < time:
            return False
        return record is None or record.payload[SORT_KEY] != stone.sort_key

    async def those_of(
        self, namespace: str, things: Sequence[tuple[str, str]]
    ) -> set[tuple[str, str]]:
        """Those of the records, by kind and id, that were ever deleted."""
        points = {_point(namespace, *thing): thing for thing in things}
        if not points:
            return set()
        found = await self._store.get(TOMBSTONES, namespace, list(points))
        return {points[point] for point in found}

    async def recover(self, before: int, finish: Callable[[Tombstone], Awaitable[object]]) -> int:
        """Finish deletes begun before a time and left unfinished; return how many."""

        async def finish_one(row: Record) -> None:
            await finish(_tombstone(row))

        left = Equals("done", False)
        return await recover(
            self._store, TOMBSTONES, left, finish_one, before=before, begun="delete_time"
        )


def _point(namespace: str, resource_kind: str, id: str) -> str:
    return point_id(namespace, "tombstone", resource_kind, id)


def _tombstone(record: Record) -> Tombstone:
    payload = record.payload
    return Tombstone(
        record.namespace,
        payload["resource_kind"],
        payload["id"],
        payload["revision"],
        payload[SORT_KEY],
        payload["delete_time"],
        payload["done"],
        payload.get("unchanged", {}),
    )
