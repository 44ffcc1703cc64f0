"""Rows of an export."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from lot_grpc.ports import IdIn, Record, VectorStore
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.registry import ExportedCollection
from lot_grpc.services.resource_spec import Place


@dataclass(frozen=True, slots=True)
class Row:
    """A record being moved.

    ``birth``: the sort key of what it belongs to, which tells that from another record that takes
    its id; 0 for what stands by itself. ``claimed``: it is the one pattern of its content, which
    saves of that content meet.
    """

    kind: ExportedCollection
    record: Record
    birth: int = 0
    claimed: bool = False


async def births_at(
    store: VectorStore, namespace: str, places: Collection[Place | None]
) -> dict[Place | None, int]:
    """The sort keys of records, by place; 0 for None, what belongs to no record."""
    births: dict[Place | None, int] = {None: 0}
    there = {place for place in places if place is not None}
    for collection in {place[0] for place in there}:
        points = tuple(point for at, point in there if at == collection)
        rows = await store.scroll(
            collection, namespace, [IdIn(points)], limit=len(points), payload=(SORT_KEY,)
        )
        births.update({(collection, row.id): row.payload[SORT_KEY] for row in rows})
    return births
