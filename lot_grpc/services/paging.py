"""Pages of a list that is ordered by sort key, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lot_grpc.ports import Condition, IdIn, Not, Order, Range, Record, VectorStore
from lot_grpc.services.records.collections import SORT_KEY

_NEWEST_FIRST = Order(SORT_KEY, descending=True)


@dataclass(frozen=True, slots=True)
class Position:
    """Where a page ended: the last sort key, and the records of that key already given.

    Two processes may make one sort key; naming the records makes such a tie harmless.
    """

    sort_key: int
    seen: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """Records, and where to go on; None at the end."""

    records: list[Record]
    next: Position | None


async def read_page(
    store: VectorStore,
    collection: str,
    namespace: str,
    where: Sequence[Condition],
    size: int,
    after: Position | None,
) -> Page:
    """The page behind ``after``. What is created meanwhile comes before it and is not seen."""
    conditions = list(where)
    if after is not None:
        conditions.append(Range(SORT_KEY, lte=after.sort_key))
        conditions.append(Not(IdIn(after.seen)))
    records = await store.scroll(
        collection, namespace, conditions, limit=size + 1, order=_NEWEST_FIRST
    )
    if len(records) <= size:
        return Page(records, None)
    records = records[:size]
    edge = records[-1].payload[SORT_KEY]
    seen = tuple(record.id for record in records if record.payload[SORT_KEY] == edge)
    if after is not None and after.sort_key == edge:
        seen = after.seen + seen
    return Page(records, Position(edge, seen))
