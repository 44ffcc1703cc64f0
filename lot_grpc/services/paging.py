"""Pages of a list that is ordered by sort key, newest first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from lot_grpc.ports import Condition, IdIn, Not, Order, Range, Record, VectorStore
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.time_slice import TimeSlice

T = TypeVar("T")
N = TypeVar("N")

Fits: TypeAlias = Callable[[T], bool]
"""Adds one more item to a page, or returns False if it does not fit; the first always fits."""

_NEWEST_FIRST = Order(SORT_KEY, descending=True)
_FIRST_PIECE, _LARGEST_PIECE = 11, 128
"""Records per read: they may be large, and a page may end with any of them. The first read is a
page of the usual size plus one more, which shows whether it is the last page."""

_EXAMINED = 500
"""At least so many records are read before a page ends short."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a page ended: the last sort key, and the records with that key already returned.

    Two processes may make one sort key; naming the records makes such a tie harmless.
    """

    sort_key: int
    seen: tuple[str, ...]

    @classmethod
    def behind(cls, record: Record, before: Position | None) -> Position:
        """The position after a record, the next one after ``before``."""
        key = record.payload[SORT_KEY]
        seen = before.seen if before is not None and before.sort_key == key else ()
        return cls(key, (*seen, record.id))


class Page(NamedTuple, Generic[T, N]):
    """Items in order; ``next`` is where the next page begins, None at the end."""

    items: list[T]
    next: N | None


def any_size(_: object) -> bool:
    """Accept any item."""
    return True


def pieces(size: int) -> Iterator[int]:
    """How many records to read at a time for a page of this size, and the one after it."""
    left, limit = size + 1, _FIRST_PIECE
    while left > 0:
        yield min(limit, left)
        left -= limit
        limit = min(2 * limit, _LARGEST_PIECE)


async def read_each(records: Sequence[Record], read: Callable[[Record], Awaitable[T]]) -> list[T]:
    """The contents of the records; they may be large, so other calls run in between."""
    time_slice = TimeSlice()
    found = []
    for record in records:
        found.append(await read(record))
        await time_slice.give_way()
    return found


async def read_page(
    store: VectorStore,
    collection: str,
    namespace: str,
    where: Sequence[Condition],
    size: int,
    after: Position | None,
    read: Callable[[Sequence[Record]], Awaitable[list[T]]],
    fits: Fits[T] = any_size,
    *,
    passes: Callable[[T], bool] | None = None,
) -> Page[T, Position]:
    """Up to ``size`` items after ``after`` that fit, and where to continue; None at the end.

    Records created in the meantime come before the page and are not seen. Items for which
    ``passes`` is false are skipped; then a page may be short before the end.
    """
    things: list[T] = []
    at = after
    time_slice = TimeSlice()
    for limit in pieces(size if passes is None else max(size, _EXAMINED)):
        conditions = list(where)
        if at is not None:
            conditions += [Range(SORT_KEY, lte=at.sort_key), Not(IdIn(at.seen))]
        records = await store.scroll(
            collection, namespace, conditions, limit=limit, order=_NEWEST_FIRST
        )
        for record, thing in zip(records, await read(records), strict=True):
            if passes is None or passes(thing):
                if len(things) == size or not fits(thing):
                    return Page(things, at)
                things.append(thing)
            at = Position.behind(record, at)
            await time_slice.give_way()
        if len(records) < limit:
            return Page(things, None)
    return Page(things, at)
