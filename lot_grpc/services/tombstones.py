"""Deletes: written down first, so that one that was begun is finished, whatever happens.

A tombstone also tells a late retry that the thing it would write again was deleted meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lot_grpc.domain.ids import point_id
from lot_grpc.ports import Condition, Equals, IdIn, Record, VectorStore
from lot_grpc.services.ledger import Entry
from lot_grpc.services.records.collections import SORT_KEY, TOMBSTONES
from lot_grpc.services.time_source import TimeSource

DELETED_SINCE = "it was deleted after this request's first attempt, or has expired"
"""Message of the error that a repeated request gets."""


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A delete of (kind, id) at one revision. ``done`` once nothing of the thing is left.

    ``revision`` is 0 for a thing whose record has none.
    ``sort_key`` is that of the thing's record: another thing that took the id since has its own.
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
        """What must hold of the record that is deleted."""
        as_it_was = {SORT_KEY: self.sort_key, **self.unchanged}
        if self.revision:
            as_it_was["revision"] = self.revision
        return [Equals(key, value) for key, value in as_it_was.items()]


class Tombstones:
    """The tombstones of all kinds."""

    def __init__(self, store: VectorStore, time_source: TimeSource) -> None:
        self._store = store
        self._time = time_source

    async def begin(
        self, resource_kind: str, id: str, record: Record, unchanged: Sequence[str] = ()
    ) -> Tombstone:
        """Write down that a thing is about to be deleted, as its record stands.

        ``unchanged`` names further integers of the record on whose change it is given up.
        """
        namespace, payload = record.namespace, record.payload
        stone = Tombstone(
            namespace,
            resource_kind,
            id,
            payload.get("revision", 0),
            payload[SORT_KEY],
            self._time.now(),
            done=False,
            unchanged={key: payload[key] for key in unchanged},
        )
        payload = {
            "resource_kind": resource_kind,
            "id": id,
            "revision": stone.revision,
            SORT_KEY: stone.sort_key,
            "delete_time": stone.delete_time,
            "done": False,
        }
        if stone.unchanged:
            payload["unchanged"] = dict(stone.unchanged)
        await self._store.put(
            TOMBSTONES, [Record(_point(namespace, resource_kind, id), namespace, payload)]
        )
        return stone

    async def carry_out(self, stone: Tombstone, collection: str, point: str) -> bool:
        """Delete a thing on which nothing hangs; False if it was changed since."""
        at = (stone.namespace, [IdIn((point,)), *stone.conditions()])
        await self._store.delete(collection, *at)
        left = (await self._store.get(collection, stone.namespace, [point])).get(point)
        await self.finish(stone)
        return left is None or left.payload[SORT_KEY] != stone.sort_key

    async def finish(self, stone: Tombstone) -> None:
        """Mark a delete as carried out."""
        point = _point(stone.namespace, stone.resource_kind, stone.id)
        ours = [Equals("revision", stone.revision), Equals(SORT_KEY, stone.sort_key)]
        await self._store.update(TOMBSTONES, stone.namespace, point, set={"done": True}, when=ours)

    async def find(self, namespace: str, resource_kind: str, id: str) -> Tombstone | None:
        """The latest delete of a thing, if it ever was deleted."""
        point = _point(namespace, resource_kind, id)
        found = await self._store.get(TOMBSTONES, namespace, [point])
        return _tombstone(found[point]) if point in found else None

    async def deleted_since(
        self, entry: Entry, resource_kind: str, id: str, record: Record | None = None
    ) -> bool:
        """Whether the record of a request was deleted or has expired since.

        ``record`` is what has its id now: the same one, or another. False if no try of the request
        got as far as writing it.
        """
        if entry.result is not None:
            return record is None or not entry.is_about(record)
        stone = await self.find(entry.namespace, resource_kind, id)
        if stone is None or stone.delete_time < entry.create_time:
            return False
        return record is None or record.payload[SORT_KEY] != stone.sort_key

    async def those_of(
        self, namespace: str, things: Sequence[tuple[str, str]]
    ) -> set[tuple[str, str]]:
        """Those of the things (kind, id) that ever were deleted."""
        points = {_point(namespace, *thing): thing for thing in things}
        if not points:
            return set()
        found = await self._store.get(TOMBSTONES, namespace, list(points))
        return {points[point] for point in found}

    async def unfinished(self, limit: int = 1000) -> list[Tombstone]:
        """Deletes that were begun and not finished, in any namespace."""
        rows = await self._store.scroll(TOMBSTONES, None, [Equals("done", False)], limit=limit)
        return [_tombstone(row) for row in rows]


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
