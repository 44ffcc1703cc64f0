"""The processes that write to a store, and how far the changes of each are complete.

A store of one process has one row, which each run takes over. On a shared store each process has
its own row, publishes its watermark while it writes, and renews its time; rows of processes that
are long gone are deleted.
"""

from __future__ import annotations

from dataclasses import dataclass

from lot_grpc.domain.ids import point_id
from lot_grpc.ports import IdIn, Record, VectorStore
from lot_grpc.services.records.collections import REPLICAS, WRITER_ID
from lot_grpc.services.store_metadata import META_NAMESPACE

SILENT = 120 * 1_000_000
"""A process that has said nothing for so long, in microseconds, writes no more under its id: what
it left counts as settled. One that was only held up takes another id (``sequencer``)."""

OWN = "own"
"""The key of the row in an unshared store. Its id is random, so that it identifies the store."""

_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class Replica:
    """One process. ``watermark``: all its changes up to this number are stored or never will be.

    ``reserved``: it gives no number beyond. ``seen_time``: when it last said so.
    """

    writer_id: str
    watermark: int
    reserved: int
    seen_time: int

    def payload(self) -> dict[str, str | int]:
        """As it is stored."""
        return {
            WRITER_ID: self.writer_id,
            "watermark": self.watermark,
            "reserved": self.reserved,
            "seen_time": self.seen_time,
        }


class ReplicaRegistry:
    """The rows of all processes."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store

    async def find_own(self) -> Replica | None:
        """The row of a store that only one process may open."""
        point = _point(OWN)
        found = await self._store.get(REPLICAS, META_NAMESPACE, [point])
        return _replica(found[point]) if point in found else None

    async def put(self, replica: Replica, *, own: bool) -> None:
        """Write its row; ``own``: that of the store."""
        point = _point(OWN if own else replica.writer_id)
        record = Record(point, META_NAMESPACE, replica.payload())
        await self._store.put(REPLICAS, [record])

    async def all(self) -> list[Replica]:
        """All rows."""
        rows = await self._store.scroll(REPLICAS, META_NAMESPACE, (), limit=_LIMIT)
        return [_replica(row) for row in rows]

    async def drop_seen_before(self, time: int) -> int:
        """Delete the rows of processes last seen before ``time``, on a shared store."""
        old = [_point(one.writer_id) for one in await self.all() if one.seen_time < time]
        if not old:
            return 0
        return await self._store.delete(REPLICAS, META_NAMESPACE, [IdIn(tuple(old))])


def _point(writer_id: str) -> str:
    return point_id(META_NAMESPACE, "change_writer", writer_id)


def _replica(record: Record) -> Replica:
    payload = record.payload
    return Replica(
        payload[WRITER_ID], payload["watermark"], payload["reserved"], payload["seen_time"]
    )
